"""Search a live index in any mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.client import cluster_version, plugins, version_tuple
from langshift.debias.debiaser import Debiaser
from langshift.debias.detector import Detection, open_detector
from langshift.debias.encoders import Encoder, VectorSpec, identity, is_given, open_encoder
from langshift.errors import ClusterError, UsageError
from langshift.languages import UNDETERMINED, require_tag, text_language
from langshift.plugin import metadata, stored_shift, versions
from langshift.plugin.stored_shift import ShiftQueries, StoredShift
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import alpha_preview, modes
from langshift.retrieval.alpha_preview import ShortlistVectors
from langshift.retrieval.anchor_model import AnchorModel
from langshift.retrieval.calibration.stored import remarks_on, trust_of
from langshift.retrieval.dsl import Source
from langshift.retrieval.filters import FilterCheck
from langshift.retrieval.hits import (
    RankedHits,
    ScoringContext,
    SearchResult,
    ShiftEffects,
    Vector,
    effects,
    known_shift,
    to_hit,
)
from langshift.retrieval.settings import (
    FUSIONS,
    NO_FILTERS,
    USUAL,
    Filters,
    Fusion,
    SearchContext,
    SearchQuery,
    SearchSettings,
    require_query,
)
from langshift.retrieval.shortlist import DEPTH, Shortlist, build_shortlist
from langshift.retrieval.steps import HttpRequest, SearchPlan, execute, recorded


class SearchOptions(NamedTuple):
    """How an index is opened for searching.

    Attributes:
        encoder: where the index's encoder is now; None for where it was when the index was made.
        trust_remote_code: whether to run code that comes with a model.
        shift_queries: whether queries are shifted as the documents are.
    """

    encoder: str | None = None
    trust_remote_code: bool = False
    shift_queries: ShiftQueries = "auto"


USUAL_OPTIONS = SearchOptions()
# Two threads that open an encoder at once would load it twice.
_OPENING = Lock()


def open_encoder_of(index: IndexInfo, options: SearchOptions, opened: dict[str, Encoder]) -> Encoder:
    """The encoder that made an index.

    Args:
        index: the index.
        options: where the encoder is.
        opened: encoders by name that are open already; this one is added.

    Raises:
        UsageError: there is no such encoder.
        FingerprintError: the encoder is not the one that made the index.
    """
    made = index.fingerprint
    name = options.encoder or made.encoder
    with _OPENING:
        # Vectors that came with one index say nothing of those of another.
        encoder = None if is_given(name) else opened.get(name)
        if encoder is None:
            vector_spec = VectorSpec(made.dimension, made.normalised)
            encoder = opened[name] = open_encoder(
                name, trust_remote_code=options.trust_remote_code, vector_spec=vector_spec
            )
    installed = replace(made, **identity(encoder))
    made.require_same(installed, index.name, "search with the same encoder, or index the corpus again")
    return encoder


class ExplainInputs(NamedTuple):
    """What it takes to tell what the shift did.

    Attributes:
        raw: the query's vector as the encoder made it, shape (dimension,), float32.
        shift: of the index; None where it cannot be taken back.
        note: a sentence on that, where it cannot.
        filters: which documents were searched.
    """

    raw: Vector
    shift: StoredShift | None
    note: str | None
    filters: Filters


def plan_result(
    index: IndexInfo,
    question: SearchQuery,
    setting: SearchSettings,
    plan: SearchPlan[RankedHits],
    *,
    shift_queries: bool,
    explaining: ExplainInputs | None = None,
    remarks: Sequence[str] = (),
) -> SearchPlan[SearchResult]:
    """Carry on a search until it can be shown.

    Args:
        index: what is searched.
        question: the query; with its vector where the shift's effect is to be told.
        setting: how it is searched.
        plan: the search.
        shift_queries: whether the query was shifted.
        explaining: None where the shift's effect is not asked for.
        remarks: what is to be told of the index beside that.
    """
    requests: list[HttpRequest] = []
    found = yield from recorded(plan, index.index, requests)
    seen = ShiftEffects({}, 0)
    if explaining is not None and question.vector is not None and found.hits:
        ids = [hit.id for hit in found.hits]
        effects_plan = effects(explaining.raw, question.vector, ids, explaining.shift, index.fields, explaining.filters)
        seen = yield from recorded(effects_plan, index.index, requests)
    return SearchResult(
        index=index.index,
        setting=setting,
        language=question.language,
        shift_queries=shift_queries,
        hits=tuple(to_hit(hit, index.fields, seen.by_id.get(hit.id)) for hit in found.hits),
        bonus=found.how.bonus,
        anchors=found.how.anchors,
        compared=seen.compared,
        notes=(*remarks, *found.notes, *_notes(index, question, setting, explaining, seen)),
        took=found.took,
        requests=tuple(requests),
    )


def _notes(
    index: IndexInfo,
    question: SearchQuery,
    setting: SearchSettings,
    explaining: ExplainInputs | None,
    seen: ShiftEffects,
) -> list[str]:
    notes = preference_notes(index, question, setting)
    unknown = any(effect.similarity_before is None for effect in seen.by_id.values())
    if explaining is not None and unknown:
        notes.append(explaining.note or "Some documents were shifted by other language vectors than the index's own.")
    return notes


def preference_notes(index: IndexInfo, question: SearchQuery, setting: SearchSettings) -> list[str]:
    """Why a language preference has no effect, where it has none."""
    if not setting.preference:
        return []
    if question.language == UNDETERMINED:
        return ["The query's language is unknown, so no language is preferred: name it."]
    if question.language not in index.languages:
        return [
            f"{index.name} holds no document in {question.language}, the query's language, so the preference "
            "changes no order."
        ]
    return []


_PLUGIN = "opensearch-neural-search"
# Fusion -> the version of the cluster from which on its legs can be weighted there.
_SINCE: dict[Fusion, tuple[int, ...]] = {"min-max": (3, 0), "rrf": (3, 1)}


def fusions(client: OpenSearch) -> frozenset[Fusion]:
    """The fusions that the cluster can do; none where the user may not ask for plugins and version."""
    number = cluster_version(client) if _PLUGIN in (plugins(client) or ()) else None
    return frozenset(fusion for fusion in FUSIONS if number is not None and version_tuple(number) >= _SINCE[fusion])


class QueryEncoder:
    """Makes the questions of one index.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self, client: OpenSearch, index: IndexInfo, options: SearchOptions, opened: dict[str, Encoder]
    ) -> None:
        """Open the encoder of an index.

        Args:
            client: the cluster.
            index: the index.
            options: how.
            opened: encoders by name that are open already; this one is added.

        Raises:
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self._client, self._options = client, options
        self.index = index
        self.encoder = open_encoder_of(index, options, opened)
        self._detector = open_detector()

    @cached_property
    def query_debias(self) -> Debiaser:
        """What moves queries, if anything does; read from the index at first use.

        Raises:
            UsageError: queries are to be shifted always, and the index holds nothing to shift them by.
        """
        return stored_shift.of_index(self._client, self.index, self._options.shift_queries)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Query vectors as the encoder makes them, shape (len(texts), dimension), float32."""
        return self.encoder.encode_queries(texts)

    def move(self, vectors: NDArray[np.float32], languages: Sequence[str | None]) -> NDArray[np.float32]:
        """Query vectors as they are searched with.

        Args:
            vectors: as the encoder makes them, shape (n, dimension), float32.
            languages: each query's tag, None where unknown.

        Returns:
            Shape (n, dimension), float32; the same bits where queries are not shifted.
        """
        return self.query_debias.queries(vectors, languages)

    def language(self, words: str, setting: SearchSettings = USUAL) -> Detection:
        """The language of a query, detected among those of the index's documents.

        Where a vector is searched with and queries are shifted, languages without a document may be meant just as well.
        """
        among = set(self.index.languages)
        if setting.needs_vector and self.query_debias.vectors is not None:
            known = self.query_debias.vectors
            among |= {text_language(tag) for tag in (known.pivot, *known.vectors)}
        return self._detector.detect(words, among=among)

    def question(
        self,
        words: str,
        setting: SearchSettings = USUAL,
        *,
        language: str | None = None,
        vector: NDArray[np.float32] | None = None,
    ) -> SearchQuery:
        """A query, with all that the setting needs.

        Args:
            words: the query.
            setting: in which it will be asked.
            language: of the query, detected if None.
            vector: the vector to search with, shape (dimension,), as ``move`` gives it, if it is known already.

        Raises:
            UsageError: there is no such language, or the index's encoder cannot encode.
        """
        tag = self.language(words, setting).language if language is None else require_tag(language)
        if vector is None and setting.needs_vector:
            vector = self.move(self.encode([words]), [tag])[0]
        return SearchQuery(words, text_language(tag), vector)


class ShortlistBuilder(QueryEncoder):
    """Makes what ``rank`` and ``rank_at`` rank, of the questions of one index."""

    def __init__(
        self, client: OpenSearch, index: IndexInfo, options: SearchOptions, opened: dict[str, Encoder]
    ) -> None:
        """As ``Asker`` is made."""
        super().__init__(client, index, options, opened)
        self._filters = FilterCheck(client, index)

    @cached_property
    def _shift(self) -> tuple[StoredShift | None, str | None]:
        return known_shift(metadata.read_metadata(self._client, self.index.index), self.index.index)

    def shortlist(
        self,
        words: str,
        *,
        language: str | None = None,
        filters: Filters = NO_FILTERS,
        encoded: Callable[[], NDArray[np.float32]] | None = None,
    ) -> SearchPlan[Shortlist]:
        """The candidates of a query for any setting but ``anchored`` and one per group, see ``ingest.shortlist``.

        Args:
            words: the query.
            language: of the query, detected if None.
            filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
            encoded: gives the query's vector as the encoder makes it, shape (dimension,), where somebody keeps it.

        Returns:
            The exchange; the query is encoded before this returns.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
        """
        require_query(words, DEPTH)
        checked = self._filters.checked(filters)
        tag = self.language(words).language if language is None else require_tag(language)
        lacks = {}
        try:
            raw = self.encode([words])[0] if encoded is None else encoded()
            question = self.question(words, language=tag, vector=self.move(raw[np.newaxis], [tag])[0])
        except UsageError as error:
            # The encoder of given vectors encodes no query; words can be searched for all the same.
            lacks["dense"], question = str(error), SearchQuery(words, text_language(tag))
        return build_shortlist(question, SearchContext(self.index), checked, lacks)

    @cached_property
    def shiftable(self) -> str | None:
        """None where documents can be looked at under any alpha, else a sentence that says why not."""
        shift, index = self._shift[0], self.index.name
        if shift is None:
            return f"Alpha cannot be moved: {index} does not hold what could take its shift back exactly."
        return None if shift.vectors else f"Alpha cannot be moved: {index} keeps no language vectors."

    def vectors(self, shortlist: Shortlist) -> SearchPlan[ShortlistVectors]:
        """What a shortlist needs to be ranked at any alpha, see ``ingest.shortlist.moving``.

        Raises:
            UsageError: alpha cannot be moved, or the query has no vector.
        """
        shift, _ = self._shift
        if shift is None or self.shiftable is not None:
            raise UsageError(self.shiftable or "")
        if "dense" in shortlist.lacks:
            raise UsageError(shortlist.lacks["dense"])
        return alpha_preview.fetch(shortlist, shift)


class Searcher(ShortlistBuilder):
    """Searches one index; opening it reads the fingerprint and opens the encoder it names.

    Attributes:
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self,
        client: OpenSearch,
        name: str,
        options: SearchOptions = USUAL_OPTIONS,
        opened: dict[str, Encoder] | None = None,
        *,
        also_unfinished: bool = False,
    ) -> None:
        """Open the index ``name``.

        Args:
            client: the cluster.
            name: the index, an alias or a version.
            options: how.
            opened: encoders by name that are open already; this one's is added.
            also_unfinished: whether a version that is being made may be opened, by who makes it.

        Raises:
            ClusterError: there is no such index of langshift's, or it is not finished.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        index = versions.live(client, name, also_unfinished=also_unfinished)
        super().__init__(client, index, options, {} if opened is None else opened)

    @cached_property
    def _fusions(self) -> frozenset[Fusion]:
        return fusions(self._client)

    @cached_property
    def trust(self) -> AnchorModel:
        """What ``anchored`` reckons with in this index; read from the cluster at first use.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return trust_of(self._client, self.index)

    @cached_property
    def remarks(self) -> list[str]:
        """What a searcher in ``anchored`` should know of ``trust``; empty where all is as it should be.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return remarks_on(self._client, self.index, self.trust)

    def plan(
        self,
        question: SearchQuery,
        setting: SearchSettings = USUAL,
        *,
        size: int = 10,
        filters: Filters = NO_FILTERS,
        source: Source = True,
        legs: bool = False,
    ) -> SearchPlan[RankedHits]:
        """The search for a question.

        Args:
            question: as ``question`` makes it for this setting.
            setting: how to search.
            size: how many hits.
            filters: field of the index -> values, any of which a hit must have.
            source: which fields hits bring; True for all but the vector.
            legs: whether every leg's score and rank are wanted, which the cluster's own fusion does not tell.

        Raises:
            UsageError: one document of each group is wanted, and the index's field does not serve for that.
        """
        if setting.one_per_group:
            self._filters.require_groups()
        target = self._target(setting)
        target = replace(target, fuses=target.fuses and not legs, legs=legs)
        return modes.search(question, setting, target, size=size, filters=filters, source=source)

    def scores(
        self, question: SearchQuery, setting: SearchSettings, how: ScoringContext, ids: Sequence[str]
    ) -> SearchPlan[dict[str, float | None]]:
        """What a search would have given each of these documents; see ``plugin.search.modes.scores``."""
        return modes.scores(question, setting, self._target(setting), how, ids)

    def _target(self, setting: SearchSettings) -> SearchContext:
        fuses = setting.mode == "hybrid" and setting.fusion in self._fusions
        return SearchContext(self.index, fuses, self.trust if setting.mode == "anchored" else None)

    def search(
        self,
        words: str,
        setting: SearchSettings = USUAL,
        *,
        language: str | None = None,
        size: int = 10,
        filters: Filters = NO_FILTERS,
        explain: bool = False,
    ) -> SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            setting: how to search.
            language: of the query, detected if None.
            size: how many hits, 1 to 1,000.
            filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
            explain: whether to tell what the shift did to each hit, which costs one request more.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
            ClusterError: a part of the index did not answer.
            OpenSearchException: the cluster did not answer as it should.
        """
        answering = self.result_plan(words, setting, language=language, size=size, filters=filters, explain=explain)
        try:
            return execute(self._client, self.index.index, answering)
        except (RequestError, ClusterError):
            self.require_fitting(filters)
            raise

    def result_plan(
        self, words: str, setting: SearchSettings, *, language: str | None, size: int, filters: Filters, explain: bool
    ) -> SearchPlan[SearchResult]:
        """All of ``search`` that needs no search: what is left of it is an exchange to carry out.

        Raises:
            UsageError: as in ``search``.
        """
        require_query(words, size)
        checked = self._filters.checked(filters)
        if explain:
            tag = self.language(words, setting).language if language is None else require_tag(language)
            raw = self.encode([words])
            question = self.question(words, setting, language=tag, vector=self.move(raw, [tag])[0])
            explaining = ExplainInputs(raw[0], *self._shift, checked)
        else:
            question, explaining = self.question(words, setting, language=language), None
        return plan_result(
            self.index,
            question,
            setting,
            self.plan(question, setting, size=size, filters=checked, legs=explain),
            shift_queries=setting.needs_vector and self.query_debias.shift_queries,
            explaining=explaining,
            remarks=self.remarks if setting.mode == "anchored" else (),
        )

    def require_fitting(self, filters: Filters) -> None:
        """Say of a search that failed whether its filters are why.

        Raises:
            UsageError: a value does not fit its field.
        """
        self._filters.require_fitting(self._filters.checked(filters))
