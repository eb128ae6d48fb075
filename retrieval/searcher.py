"""Search a live index in any mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

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
from langshift.retrieval.filters import FilterCheck
from langshift.retrieval.hits import (
    RankedHits,
    ScoringContext,
    SearchResult,
    ShiftEffects,
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
    ResultArguments,
    SearchContext,
    SearchQuery,
    SearchRequest,
    SearchSettings,
    Source,
    require_query,
)
from langshift.retrieval.shortlist import DEPTH, Shortlist, build_shortlist
from langshift.retrieval.steps import HttpRequest, SearchPlan, execute, recorded

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        FingerprintError: the encoder is not the one that made the index; of a fingerprint nothing else can differ here,
            since queries are shifted by what the index itself holds.
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

    def _tag(self, words: str, setting: SearchSettings, language: str | None) -> str:
        """The language that a person named, or the one that is detected."""
        return self.language(words, setting).language if language is None else require_tag(language)

    def language(self, words: str, setting: SearchSettings = USUAL) -> Detection:
        """The language of a query, detected among those of the index's documents.

        Where a vector is searched with and queries are shifted, languages without a document may be meant just as well.
        """
        among = set(self.index.languages)
        if setting.needs_vector and self.query_debias.vectors is not None:
            known = self.query_debias.vectors
            among |= {text_language(tag) for tag in (known.pivot, *known.vectors)}
        return self._detector.detect(words, among=among)


class Searcher(QueryEncoder):
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
        self._filters = FilterCheck(client, index)

    @cached_property
    def _fusions(self) -> frozenset[Fusion]:
        return fusions(self._client)

    @cached_property
    def _shift(self) -> tuple[StoredShift | None, str | None]:
        return known_shift(metadata.read_metadata(self._client, self.index.index), self.index.index)

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
            question: with a vector where the setting needs one.
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
        target = self._target(setting, legs=legs)
        return modes.search(SearchRequest(question, setting, target, size, filters=filters, source=source))

    def scores(
        self, question: SearchQuery, setting: SearchSettings, how: ScoringContext, ids: Sequence[str]
    ) -> SearchPlan[dict[str, float | None]]:
        """What a search would have given each of these documents; see ``modes.scores``."""
        return modes.scores(SearchRequest(question, setting, self._target(setting)), how, ids)

    def _target(self, setting: SearchSettings, *, legs: bool = False) -> SearchContext:
        fuses = setting.mode == "hybrid" and setting.fusion in self._fusions and not legs
        return SearchContext(self.index, fuses, self.trust if setting.mode == "anchored" else None, legs)

    def search(self, words: str, setting: SearchSettings = USUAL, **how: Unpack[ResultArguments]) -> SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            setting: how to search.
            **how: see ``ResultArguments``.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
            ClusterError: a part of the index did not answer.
            OpenSearchException: the cluster did not answer as it should.
        """
        plan = self.result_plan(words, setting, **how)
        try:
            return execute(self._client, self.index.index, plan)
        except (RequestError, ClusterError):
            self.require_fitting(how.get("filters", NO_FILTERS))
            raise

    def result_plan(
        self,
        words: str,
        setting: SearchSettings = USUAL,
        *,
        language: str | None = None,
        size: int = 10,
        filters: Filters = NO_FILTERS,
        explain: bool = False,
    ) -> SearchPlan[SearchResult]:
        """All of ``search``: the query is detected, encoded and shifted before this returns a plan for the rest.

        Raises:
            UsageError: as in ``search``.
        """
        require_query(words, size)
        checked = self._filters.checked(filters)
        tag = self._tag(words, setting, language)
        raw = self.encode([words]) if explain or setting.needs_vector else None
        vector = None if raw is None else self.move(raw, [tag])[0]
        question = SearchQuery(words, text_language(tag), vector)
        shift, unknown = self._shift if explain else (None, None)
        plan = self.plan(question, setting, size=size, filters=checked, legs=explain)
        shift_queries = setting.needs_vector and self.query_debias.shift_queries
        notes = self.remarks if setting.mode == "anchored" else []

        def read_result() -> SearchPlan[SearchResult]:
            index, requests = self.index, list[HttpRequest]()
            found = yield from recorded(plan, index.index, requests)
            seen = ShiftEffects({}, 0)
            if explain and raw is not None and vector is not None and found.hits:
                compared = effects(raw[0], vector, [hit.id for hit in found.hits], shift, index.fields, checked)
                seen = yield from recorded(compared, index.index, requests)
            return SearchResult(
                index=index.index,
                setting=setting,
                language=question.language,
                shift_queries=shift_queries,
                hits=tuple(to_hit(hit, index.fields, seen.by_id.get(hit.id)) for hit in found.hits),
                bonus=found.how.bonus,
                anchors=found.how.anchors,
                compared=seen.compared,
                notes=(*notes, *found.notes, *preference_notes(index, question, setting), *seen.notes(unknown)),
                took=found.took,
                requests=tuple(requests),
            )

        return read_result()

    def require_fitting(self, filters: Filters) -> None:
        """Say of a search that failed whether its filters are why.

        Raises:
            UsageError: a value does not fit its field.
        """
        self._filters.require_fitting(self._filters.checked(filters))

    def shortlist(
        self,
        words: str,
        *,
        language: str | None = None,
        filters: Filters = NO_FILTERS,
        encoded: Callable[[], NDArray[np.float32]] | None = None,
    ) -> SearchPlan[Shortlist]:
        """The candidates of a query for any setting but ``anchored`` and one per group, see ``shortlist``.

        Args:
            words: the query.
            language: of the query, detected if None.
            filters: field of the index -> values, any of which a hit must have; ``language`` is by language.
            encoded: gives the query's vector as the encoder makes it, shape (dimension,), where somebody keeps it.

        Returns:
            The plan; the query is encoded before this returns.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
        """
        require_query(words, DEPTH)
        checked = self._filters.checked(filters)
        tag = self._tag(words, USUAL, language)
        lacks, vector = {}, None
        try:
            raw = self.encode([words])[0] if encoded is None else encoded()
            vector = self.move(raw[np.newaxis], [tag])[0]
        except UsageError as error:
            # The encoder of given vectors encodes no query; words can be searched for all the same.
            lacks["dense"] = str(error)
        return build_shortlist(
            SearchQuery(words, text_language(tag), vector), SearchContext(self.index), checked, lacks
        )

    @cached_property
    def shiftable(self) -> str | None:
        """None where documents can be looked at under any alpha, else a sentence that says why not."""
        shift, index = self._shift[0], self.index.name
        if shift is None:
            return f"Alpha cannot be moved: {index} does not hold what could take its shift back exactly."
        return None if shift.vectors else f"Alpha cannot be moved: {index} keeps no language vectors."

    def vectors(self, shortlist: Shortlist) -> SearchPlan[ShortlistVectors]:
        """What a shortlist needs to be ranked at any alpha, see ``alpha_preview``.

        Raises:
            UsageError: alpha cannot be moved, or the query has no vector.
        """
        shift, _ = self._shift
        if shift is None or self.shiftable is not None:
            raise UsageError(self.shiftable or "")
        if "dense" in shortlist.lacks:
            raise UsageError(shortlist.lacks["dense"])
        return alpha_preview.fetch(shortlist, shift)
