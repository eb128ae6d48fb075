"""Search a live index in any mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.client import HYBRID_PLUGIN, cluster_version, plugins, version_tuple
from langshift.debias.detector import Detection, open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, Encoder, VectorSpec, identity, is_given
from langshift.errors import ClusterError, UsageError
from langshift.languages import UNDETERMINED, require_tag, text_language
from langshift.plugin import metadata, stored_shift, versions
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import effects, hits, modes, settings
from langshift.retrieval.calibration import stored
from langshift.retrieval.filters import FilterCheck
from langshift.retrieval.rerank import stage
from langshift.retrieval.rerank.features import FeatureReranker, read_model
from langshift.retrieval.rerank.rerankers import Reranker, open_reranker
from langshift.retrieval.settings import AnchorModel
from langshift.retrieval.shortlist import DEPTH, Shortlist, ShortlistVectors, build_shortlist, fetch_vectors
from langshift.retrieval.steps import HttpRequest, SearchPlan, execute, recorded

if TYPE_CHECKING:
    from typing_extensions import Unpack


# Two threads that open an encoder at once would load it twice.
_OPENING = Lock()


def open_encoder_of(index: IndexInfo, options: settings.SearchOptions, opened: dict[str, Encoder]) -> Encoder:
    """The encoder that made an index.

    Args:
        index: the index.
        options: where the encoder is.
        opened: encoders by name that are open already; this one is added.

    Raises:
        UsageError: there is no such encoder, or it is on a server that the index alone names.
        FingerprintError: the encoder is not the one that made the index; of a fingerprint nothing else can differ here.
    """
    made = index.fingerprint
    name = options.encoder or made.encoder
    reading = AS_KNOWN.of(made, name)
    # Indices of one model may have been made with different prefixes.
    key = name if reading == AS_KNOWN else f"{name} {reading}"
    with _OPENING:
        # Vectors that came with one index say nothing of those of another.
        encoder = None if is_given(name) else opened.get(key)
        if encoder is None:
            encoder = opened[key] = open_encoder(
                name,
                trust_remote_code=options.trust_remote_code,
                vector_spec=VectorSpec(made.dimension, made.normalised),
                named_by="" if options.encoder else f"The index {index.name}",
                reading=reading,
            )
    installed = replace(made, **identity(encoder))
    made.require_same(installed, index.name, "search with the same encoder, or index the corpus again")
    return encoder


def language_notes(
    index: IndexInfo, question: settings.SearchQuery, setting: settings.SearchSettings, *, detected: bool
) -> list[str]:
    """That no document is in the query's language, where that was detected or takes a preference its effect."""
    language = question.language
    if language == UNDETERMINED:
        return ["The query's language is unknown, so no language is preferred: specify it."] * bool(setting.preference)
    if language in index.languages:
        return []
    if setting.preference:
        return [
            f"{index.name} has no document in {language}, the query's language, so the language preference has no "
            "effect."
        ]
    return [f"The query was read as {language}, in which {index.name} has no document."] * detected


# Fusion -> the version of the cluster from which on its legs can be weighted there.
_SINCE: dict[settings.Fusion, tuple[int, ...]] = {"min-max": (3, 0), "rrf": (3, 1)}


class Searcher:
    """Searches one index; opening it reads the fingerprint and opens the encoder it names.

    Attributes:
        client: the cluster.
        index: what stands behind the name.
        encoder: the encoder that the index was made with.
    """

    def __init__(
        self,
        client: OpenSearch,
        index: str | IndexInfo,
        options: settings.SearchOptions = settings.USUAL_OPTIONS,
        opened: dict[str, Encoder] | None = None,
    ) -> None:
        """Open an index.

        Args:
            client: the cluster.
            index: its name, that of an alias or a version; or what is known of it already.
            options: how.
            opened: encoders by name that are open already; this one's is added.

        Raises:
            ClusterError: there is no such index of langshift's, or it is not finished.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self.client, self._options = client, options
        self.index = versions.live(client, index) if isinstance(index, str) else index
        self.encoder = open_encoder_of(self.index, options, {} if opened is None else opened)
        self._detector = open_detector()
        self._filters = FilterCheck(client, self.index)
        self._rerankers: dict[str, Reranker] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Query vectors as the encoder makes them, and as they are searched with: (len(texts), dimension), float32."""
        return self.encoder.encode_queries(texts)

    def _tag(self, words: str, language: str | None) -> str:
        """The language that a person named, or the one that is detected."""
        return self.language(words).language if language is None else require_tag(language)

    def language(self, words: str) -> Detection:
        """The language of a query, detected among those of the index's documents, unless it is surely another."""
        return self._detector.detect(words, among=set(self.index.languages))

    @cached_property
    def _fusions(self) -> list[settings.Fusion]:
        """The fusions that the cluster can do; none where the user may not ask for plugins and version."""
        number = cluster_version(self.client) if HYBRID_PLUGIN in (plugins(self.client) or ()) else None
        return [fusion for fusion, since in _SINCE.items() if number is not None and version_tuple(number) >= since]

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        return metadata.read_metadata(self.client, self.index.index)

    @cached_property
    def _shift(self) -> tuple[stored_shift.StoredShift | None, str | None]:
        return effects.known_shift(self._metadata, self.index.index)

    @cached_property
    def directions(self) -> NDArray[np.float32] | None:
        """B, of which documents hold only the part 1 - gamma, shape (k, dimension); None where gamma is 0.

        Raises:
            ClusterError: the index does not hold what its documents were shifted by.
        """
        if not self.index.fingerprint.gamma:
            return None
        step = stored_shift.from_metadata(self._metadata, self.index.index).step
        return None if step is None else step.directions

    @cached_property
    def trust(self) -> AnchorModel:
        """What ``anchored`` reckons with in this index; read from the cluster at first use.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return stored.trust_of(self.client, self.index)

    def resolve(self, setting: settings.SearchSettings) -> settings.ModeChoice:
        """How the index is searched in a setting, see ``stored.resolve``.

        Raises:
            ClusterError: ``anchored`` is asked for, and the calibration that the index keeps cannot be read.
        """
        return stored.resolve(self.index, setting)

    def remarks(self, setting: settings.SearchSettings) -> list[str]:
        """What a searcher in a mode that was asked for should know of the calibration, see ``stored.remarks``."""
        reranked = stored.rerank_remarks(self.index) if setting.rerank == "features" else []
        return stored.remarks(self.index, setting) + reranked

    def plan(
        self,
        question: settings.SearchQuery,
        setting: settings.SearchSettings = settings.USUAL,
        *,
        size: int = 10,
        filters: settings.Filters = settings.NO_FILTERS,
        source: settings.Source = True,
        legs: bool = False,
        passages: int = 0,
    ) -> SearchPlan[hits.RankedHits]:
        """The search for a question.

        Args:
            question: with a vector where the setting needs one.
            setting: how to search.
            size: how many hits.
            filters: field of the index -> values, any of which a hit must have.
            source: which fields hits bring; True for all but the vector.
            legs: whether every leg's score and rank are wanted, which the cluster's own fusion does not tell.
            passages: in an index of chunks, how many further ones of each hit are wanted.

        Raises:
            UsageError: one document of each group is wanted, and the index's field does not serve for that.
        """
        if setting.one_per_group:
            self._filters.require_groups()
        setting = self.resolve(setting).setting
        target = self.target(setting, legs=legs)
        request = settings.SearchRequest(
            question, setting, target, size, filters=filters, source=source, passages=passages
        )
        if setting.rerank is None:
            return modes.search(request)
        return stage.search(request, self._reranker(setting.rerank))

    def scores(
        self,
        question: settings.SearchQuery,
        setting: settings.SearchSettings,
        how: hits.ScoringContext,
        ids: Sequence[str],
    ) -> SearchPlan[dict[str, float | None]]:
        """What a search would have given each of these documents, in any mode but ``auto``; see ``modes.scores``."""
        scores = modes.scores if setting.rerank is None else stage.scores
        return scores(settings.SearchRequest(question, setting, self.target(setting)), how, ids)

    def target(
        self, setting: settings.SearchSettings, *, trust: AnchorModel | None = None, legs: bool = False
    ) -> settings.SearchContext:
        """What a search in a setting is carried out on.

        Args:
            setting: in any mode but ``auto``.
            trust: what ``anchored`` reckons with; None for the index's own.
            legs: whether every leg's score and rank are wanted.
        """
        fuses = setting.mode == "hybrid" and setting.fusion in self._fusions and not legs
        own = (trust or self.trust) if setting.mode == "anchored" else None
        mixes = own is not None or (setting.rerank is not None and settings.by_features(setting.rerank))
        directions = self.directions if mixes else None
        return settings.SearchContext(self.index, fuses, own, directions, legs)

    def _reranker(self, name: str) -> Reranker:
        """The reranker of a name; opened at first use.

        Raises:
            UsageError: there is no such reranker.
            LangshiftError: it cannot be opened.
        """
        with _OPENING:
            found = self._rerankers.get(name)
            if found is None and settings.by_features(name):
                found = FeatureReranker(read_model(name), self.trust.spread, stored.rerank_strengths(self.index))
            elif found is None:
                found = open_reranker(name, trust_remote_code=self._options.trust_remote_code)
            self._rerankers[name] = found
            return found

    def search(
        self,
        words: str,
        setting: settings.SearchSettings = settings.RECOMMENDED,
        **how: Unpack[settings.ResultArguments],
    ) -> hits.SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            setting: how to search; in the mode ``auto`` as calibration found to be best for the index.
            **how: see ``ResultArguments``.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
            ClusterError: a part of the index did not answer.
            OpenSearchException: the cluster did not answer as it should.
        """
        plan = self.result_plan(words, setting, **how)
        try:
            return execute(self.client, self.index.index, plan)
        except (RequestError, ClusterError):
            self.require_fitting(how.get("filters", settings.NO_FILTERS))
            raise

    def result_plan(
        self,
        words: str,
        setting: settings.SearchSettings = settings.RECOMMENDED,
        *,
        language: str | None = None,
        size: int = 10,
        filters: settings.Filters = settings.NO_FILTERS,
        explain: bool = False,
        passages: int = 0,
    ) -> SearchPlan[hits.SearchResult]:
        """All of ``search``: the query is detected and encoded before this returns a plan for the rest.

        Raises:
            UsageError: as in ``search``.
        """
        settings.require_query(words, size)
        settings.require_passages(passages, self.index)
        checked = self._filters.checked(filters)
        given, chosen = setting, self.resolve(setting)
        setting, tag = chosen.setting, self._tag(words, language)
        vector = self.encode([words])[0] if explain or setting.needs_vector else None
        question = settings.SearchQuery(words, text_language(tag), vector)
        shift, unknown = self._shift if explain else (None, None)
        plan = self.plan(question, setting, size=size, filters=checked, legs=explain, passages=passages)
        notes = self.remarks(given) if chosen.origin == "asked" or given.rerank is not None else []

        def read_result() -> SearchPlan[hits.SearchResult]:
            index, requests = self.index, list[HttpRequest]()
            found = yield from recorded(plan, index.index, requests)
            seen = dict[str, hits.ShiftEffect]()
            if explain and vector is not None and found.hits:
                compared = effects.effects(vector, [hit.id for hit in found.hits], shift, index.fields, checked)
                seen = yield from recorded(compared, index.index, requests)
            return hits.SearchResult(
                index=index.index,
                setting=setting,
                mode_from=chosen.origin,
                mode_reason=chosen.reason,
                language=question.language,
                hits=tuple(hits.to_hit(hit, index.fields, seen.get(hit.id)) for hit in found.hits),
                bonus=found.how.bonus,
                anchors=found.how.anchors,
                compared=len(seen),
                notes=(
                    *notes,
                    *found.notes,
                    *language_notes(index, question, setting, detected=language is None),
                    *(effects.effect_notes(seen, unknown) if explain else ()),
                ),
                took=found.took,
                requests=tuple(requests),
            )

        return read_result()

    def require_fitting(self, filters: settings.Filters) -> None:
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
        filters: settings.Filters = settings.NO_FILTERS,
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
        settings.require_query(words, DEPTH)
        checked = self._filters.checked(filters)
        tag = self._tag(words, language)
        lacks, vector = {}, None
        try:
            vector = self.encode([words])[0] if encoded is None else encoded()
        except UsageError as error:
            # The encoder of given vectors encodes no query; words can be searched for all the same.
            lacks["dense"] = str(error)
        return build_shortlist(
            settings.SearchQuery(words, text_language(tag), vector), settings.SearchContext(self.index), checked, lacks
        )

    @cached_property
    def shiftable(self) -> str | None:
        """None where documents can be looked at under any alpha, else a sentence that says why not."""
        shift, index = self._shift[0], self.index.name
        if shift is None:
            return f"Alpha cannot be changed: {index} does not store what is needed to reverse its shift exactly."
        return None if shift.vectors else f"Alpha cannot be changed: {index} stores no language vectors."

    def vectors(self, shortlist: Shortlist) -> SearchPlan[ShortlistVectors]:
        """What a shortlist needs to be ranked at any alpha and gamma, see ``rank_at``.

        Raises:
            UsageError: alpha cannot be moved, or the query has no vector.
        """
        shift, lacks = self._shift[0], self.shiftable or shortlist.lacks.get("dense")
        if shift is None or lacks:
            raise UsageError(lacks or "")
        return fetch_vectors(shortlist, shift)
