"""Search a live index in any mode, with the encoder that made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, RequestError, TransportError

from langshift.client import HYBRID_PLUGIN, cluster_version, plugins, version_tuple
from langshift.debias.detector import Detection, open_detector
from langshift.debias.encoders import open_encoder, open_sparse
from langshift.debias.encoders.base import AS_KNOWN, Encoder, VectorSpec, identity, is_given
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, parse_weights
from langshift.debias.fingerprint import same_encoder
from langshift.errors import ClusterError, FingerprintError, LangshiftError, UsageError
from langshift.languages import require_tag, text_language
from langshift.plugin import metadata, stored_shift, versions
from langshift.plugin.native_nodes import NAME, plugin_nodes
from langshift.plugin.representations import SparseWeights
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import entries, hits, pages, result, shift_effects
from langshift.retrieval.calibration import stored
from langshift.retrieval.facets import count_values
from langshift.retrieval.filters import NO_FILTER, FieldCheck, IndexFilter
from langshift.retrieval.plans import Exchange, SearchPlan, execute, recorded
from langshift.retrieval.question import (
    USUAL_OPTIONS,
    AnchorModel,
    SearchContext,
    SearchOptions,
    SearchQuery,
    SearchRequest,
)
from langshift.retrieval.request import (
    DEFAULT,
    RECOMMENDED,
    USUAL,
    Fusion,
    SearchArguments,
    SearchSettings,
    by_features,
    read_arguments,
    require_query,
)
from langshift.retrieval.rerank import stage
from langshift.retrieval.rerank.features import FeatureReranker, read_model
from langshift.retrieval.rerank.rerankers import Reranker, open_reranker
from langshift.retrieval.result import SearchResult, ShiftEffect
from langshift.retrieval.search import search
from langshift.retrieval.shortlist import Shortlist, ShortlistVectors, build_shortlist, fetch_vectors
from langshift.retrieval.snippets import ShownText, Snippet, make_snippets

# Two threads that open an encoder at once would load it twice.
_OPENING = Lock()
#: Held by the thread that encodes: an encoder is no matter of two at once.
ENCODING = Lock()


def open_encoder_of(index: IndexInfo, options: SearchOptions, opened: dict[str, Encoder]) -> Encoder:
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
                vector_spec=VectorSpec(made.dimension, made.normalised),
                named_by="" if options.encoder else f"The index {index.name}",
                reading=reading,
            )
    installed = replace(made, **identity(encoder))
    made.require_same(installed, index.name, "search with the same encoder, or index the corpus again")
    return encoder


def require_weights(index: IndexInfo) -> SparseWeights:
    """What an index says of its weights of tokens.

    Raises:
        UsageError: it has none.
    """
    if index.sparse is None:
        raise UsageError(
            f"{index.name} has no weights of tokens, which this search needs: add them with "
            f"`langshift reencode {index.name} --sparse NAME`."
        )
    return index.sparse


def open_sparse_of(index: IndexInfo) -> SparseEncoder:
    """The learned sparse encoder that made the weights of an index.

    Raises:
        UsageError: the index has no weights, there is no such encoder, or it is on a server that the index alone names.
        FingerprintError: the encoder is not the one that made them.
    """
    made = require_weights(index)
    encoder = open_sparse(made.encoder, named_by=f"The index {index.name}")
    if not same_encoder((made.encoder, made.revision), (encoder.id, encoder.revision)):
        raise FingerprintError(
            f"The weights of tokens in {index.name} were made with {made.encoder}, revision {made.revision}, not "
            f"{encoder.revision}: search with the same encoder, or make them again with "
            f"`langshift reencode {index.name} --sparse {made.encoder}`."
        )
    return encoder


def read_vector(given: Sequence[float], index: IndexInfo) -> NDArray[np.float32]:
    """The vector that a client gives for its query, shape (dimension,).

    Raises:
        UsageError: it is none of the index's.
    """
    try:
        vector = np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise UsageError("The vector of the query must be a list of numbers.") from None
    wanted = index.fingerprint.dimension
    if vector.shape != (wanted,):
        got = len(vector) if vector.ndim == 1 else "another form"
        raise UsageError(
            f"The vector of the query has dimension {got}, and index {index.name} holds vectors of {wanted}."
        )
    if not np.isfinite(vector).all():
        raise UsageError("The vector of the query has a number that is not finite as a float.")
    return vector


def read_weights(given: object) -> TokenWeights:
    """The weights of tokens that a client gives for its query.

    Raises:
        UsageError: they are none.
    """
    try:
        return parse_weights(given)
    except ValueError as error:
        raise UsageError(f"The sparse_embedding of the query {error}.") from None


_WITHIN = "A single search has no values for within, which replays take from their queries: use filters instead."
# Fusion -> the version of the cluster from which on its legs can be weighted there.
_SINCE: dict[Fusion, tuple[int, ...]] = {"min-max": (3, 0), "rrf": (3, 1)}


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
        options: SearchOptions = USUAL_OPTIONS,
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
        self._fields = FieldCheck(client, self.index)
        self._rerankers: dict[str, Reranker] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Query vectors as the encoder makes them, and as they are searched with: (len(texts), dimension), float32."""
        return self.encoder.encode_queries(texts)

    def encode_weights(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of queries' tokens as the index's learned sparse encoder makes them.

        Raises:
            UsageError: the index has no weights of tokens.
            LangshiftError: their encoder cannot be opened, is another now, or fails.
        """
        return self._sparse.encode_queries(texts)

    @cached_property
    def _sparse(self) -> SparseEncoder:
        return open_sparse_of(self.index)

    def encode_sentences(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of parts of documents' texts, (len(texts), dimension), float32; one thread at a time encodes."""
        with ENCODING:
            return self.encoder.encode_documents(texts)

    def language(self, words: str) -> Detection:
        """The language of a query, detected among those of the index's documents, unless it is surely another."""
        return self._detector.detect(words, among=set(self.index.languages))

    @cached_property
    def _plugins(self) -> set[str] | None:
        return plugins(self.client)

    @cached_property
    def _fusions(self) -> list[Fusion]:
        """The fusions that the cluster can do; none where the user may not ask for plugins and version."""
        number = cluster_version(self.client) if HYBRID_PLUGIN in (self._plugins or ()) else None
        found = [fusion for fusion, since in _SINCE.items() if number is not None and version_tuple(number) >= since]
        return found if found and self._answers({"hybrid": {"queries": [{"match_none": {}}]}}) else []

    @cached_property
    def _native(self) -> bool:
        """Whether our plugin's query can search the index; not where the user may not ask for plugins."""
        nodes = plugin_nodes(self.client) if self.index.native else None
        query = {"vector": [1.0] * self.index.fingerprint.dimension, "mode": "dense", "k": 1}
        return nodes is not None and nodes.everywhere and self._answers({NAME: query})

    def _answers(self, query: dict[str, Any]) -> bool:
        """Whether a plugin's query answers this user: under document-level security some fail."""
        try:
            return not self.client.search(index=self.index.index, body={"size": 0, "query": query})["_shards"]["failed"]
        except TransportError as error:
            if not isinstance(error.status_code, int):
                raise
            return False

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        return metadata.read_metadata(self.client, self.index.index)

    @cached_property
    def _shift(self) -> tuple[stored_shift.StoredShift | None, str | None]:
        return shift_effects.known_shift(self._metadata, self.index.index)

    @cached_property
    def shift(self) -> stored_shift.StoredShift | None:
        """How documents are shifted, where that is by gamma or own; else None.

        Raises:
            ClusterError: the index does not hold what its documents were shifted by.
        """
        made = self.index.fingerprint
        return stored_shift.from_metadata(self._metadata, self.index.index) if made.gamma or made.own else None

    @cached_property
    def trust(self) -> AnchorModel:
        """What ``anchored`` reckons with in this index; read from the cluster at first use.

        Raises:
            ClusterError: the calibration that the index keeps cannot be read.
        """
        return stored.trust_of(self.client, self.index, self.shift)

    def resolve(self, setting: SearchSettings) -> stored.ModeChoice:
        """How the index is searched in a setting, see ``stored.resolve``.

        Raises:
            ClusterError: ``anchored`` is asked for, and the calibration that the index keeps cannot be read.
        """
        return stored.resolve(self.index, setting)

    def remarks(self, setting: SearchSettings) -> list[str]:
        """What a searcher in a mode that was asked for should know of the calibration, see ``stored.remarks``."""
        return stored.remarks(self.index, setting)

    def plan(
        self,
        question: SearchQuery,
        setting: SearchSettings = USUAL,
        *,
        legs: bool = False,
        **wanted: Any,  # noqa: ANN401 - what a request has
    ) -> SearchPlan[hits.RankedHits]:
        """The search for a question.

        Args:
            question: with a vector and weights where the setting needs them.
            setting: how to search.
            legs: whether every leg's score and rank are wanted, which the cluster's own fusion does not tell.
            **wanted: ``size``, ``filters``, ``source``, ``passages``, ``sort`` and ``start`` of ``SearchRequest``.

        Raises:
            UsageError: one document of each group is wanted, and the index's field does not serve for that; or tokens
                are to be searched for, and the index has no weights of any.
        """
        return self._plan(question, self.resolve(setting).setting, legs, wanted)

    def _plan(
        self, question: SearchQuery, setting: SearchSettings, legs: bool, wanted: Mapping[str, Any]
    ) -> SearchPlan[hits.RankedHits]:
        if setting.one_per_group:
            self._fields.require_groups()
        if setting.needs_weights:
            require_weights(self.index)
            if HYBRID_PLUGIN not in (self._plugins or {HYBRID_PLUGIN}):
                raise ClusterError(f"Weights of tokens are searched by the plugin {HYBRID_PLUGIN}: install it.")
        request = SearchRequest(question, setting, self.target(setting, legs=legs), **wanted)
        rerank = setting.rerank
        find = search if rerank is None else partial(stage.search, reranker=self._reranker(rerank))
        return find(request) if not request.sort and request.start is None else pages.arranged(request, find)

    def scores(
        self,
        question: SearchQuery,
        setting: SearchSettings,
        how: hits.ScoringContext,
        ids: Sequence[str],
        filters: IndexFilter = NO_FILTER,
    ) -> SearchPlan[dict[str, float | None]]:
        """What a search would have given each of these documents, in any mode but ``auto``; see ``entries.scores``."""
        scores = entries.scores if setting.rerank is None else stage.scores
        return scores(SearchRequest(question, setting, self.target(setting), filters=filters), how, ids)

    def target(self, setting: SearchSettings, *, trust: AnchorModel | None = None, legs: bool = False) -> SearchContext:
        """What a search in a setting is carried out on.

        Args:
            setting: in any mode but ``auto``.
            trust: what ``anchored`` reckons with; None for the index's own.
            legs: whether every leg's score and rank are wanted.
        """
        fuses = setting.mode == "hybrid" and setting.fusion in self._fusions and not legs
        own = (trust or self.trust) if setting.mode == "anchored" else None
        mixes = own is not None or (setting.rerank is not None and by_features(setting.rerank))
        shift = self.shift if mixes else None
        preferring = setting.prefer_language != setting.spread
        native = setting.mode == "dense" and preferring and setting.rerank is None and self._native
        return SearchContext(self.index, fuses, own, shift, legs, native)

    def _reranker(self, name: str) -> Reranker:
        """The reranker of a name; opened at first use.

        Raises:
            UsageError: there is no such reranker.
            LangshiftError: it cannot be opened.
        """
        with _OPENING:
            found = self._rerankers.get(name)
            if found is None and by_features(name):
                found = FeatureReranker(read_model(name), self.trust.spread, stored.rerank_strengths(self.index))
            elif found is None:
                found = open_reranker(name)
            self._rerankers[name] = found
            return found

    def search(
        self,
        words: str,
        setting: SearchSettings = RECOMMENDED,
        **how: Any,  # noqa: ANN401 - of any argument
    ) -> SearchResult:
        """The best hits for a query.

        Args:
            words: the query.
            setting: how to search, also all arguments of a search; in the mode ``auto`` as calibration found to be best
                for the index.
            **how: arguments beside these, see ``SearchArguments``.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
            ClusterError: a part of the index did not answer.
            OpenSearchException: the cluster did not answer as it should.
        """
        arguments = setting if isinstance(setting, SearchArguments) else SearchArguments(**asdict(setting))
        if how:
            given = read_arguments(SearchArguments, **how)
            arguments = arguments.but(**{name: getattr(given, name) for name in how})
        try:
            return execute(self.client, self.index.index, self.result_plan(words, arguments))
        except (OpenSearchException, ClusterError) as error:
            self.raise_cause(error, arguments)
            raise

    def result_plan(self, words: str, arguments: SearchArguments = DEFAULT) -> SearchPlan[SearchResult]:
        """All of ``search``: the query is detected and encoded before this returns a plan for the rest.

        A point in time is opened before, too, where a first page is asked for. With ``snippets``, the plan encodes what
        these are chosen from.

        Raises:
            UsageError: as in ``search``.
        """
        index, names = self.index, self.index.fields
        wanted, counted = self._wanted(arguments)
        filters, shown_fields = wanted["filters"], arguments.fields
        chosen, far = stored.resolve(index, arguments), stored.no_answer(index)
        remarks = stored.remarks(index, arguments) if chosen.origin == "asked" or arguments.rerank is not None else []
        setting = chosen.setting
        require_query(words)
        encodes = arguments.vector is None and (arguments.explain or setting.needs_vector)
        weighs = arguments.sparse_embedding is None and setting.needs_weights
        language, known, weights = arguments.language, None, None
        tag = self._detector.detect(words, set(index.languages)).language if language is None else require_tag(language)
        if encodes:
            known = self.encoder.encode_queries([words])[0]
        elif arguments.vector is not None:
            known = read_vector(arguments.vector, index)
        if weighs:
            weights = self.encode_weights([words])[0]
        elif arguments.sparse_embedding is not None:
            weights = read_weights(arguments.sparse_embedding)
        question = SearchQuery(words, text_language(tag), known, weights)
        shift, unknown = self._shift if arguments.explain else (None, None)
        plan = self._plan(question, setting, arguments.explain, wanted)
        point_in_time, exchange = arguments.point_in_time, Exchange()
        if arguments.from_ is not None and point_in_time is None:
            point_in_time, opened = pages.open_point_in_time(self.client, index.index)
            exchange.requests.append(opened)

        def read_result() -> SearchPlan[SearchResult]:
            found = yield from plan
            took = exchange.took
            facet_values = (yield from count_values(counted, filters, names)) if counted else {}
            seen = dict[str, ShiftEffect]()
            if arguments.explain and known is not None and found.hits:
                seen = yield from shift_effects.effects(known, [hit.id for hit in found.hits], shift, names, filters)
            shown = dict[str, Snippet]()
            if arguments.snippets:
                texts = {one.id: result.title_and_text(one.source, names)[1] for one in found.hits}
                raw = {one.id: ShownText(one.language, texts[one.id]) for one in found.hits}
                shown = yield from make_snippets(question, raw, names, self.encode_sentences)
            said = [
                *remarks,
                *found.notes,
                *result.nearness_notes(far, found.nearest),
                *result.language_notes(index, question, setting, detected=language is None),
            ]
            alone = result.setting_alone(setting)
            brought = [
                result.to_hit(one, names, seen.get(one.id), shown.get(one.id), shown_fields) for one in found.hits
            ]
            said += result.missing_fields(shown_fields, brought) if shown_fields else []
            said += shift_effects.effect_notes(seen, unknown) if arguments.explain else []
            return SearchResult(
                index=index.index,
                setting=alone,
                mode_from=chosen.origin,
                mode_reason=chosen.reason,
                language=question.language,
                hits=tuple(brought),
                bonus=found.how.bonus,
                anchors=found.how.anchors,
                compared=len(seen),
                notes=tuple(said),
                took=took,
                requests=tuple(exchange.requests),
                from_=arguments.from_,
                depth=found.depth if arguments.from_ is not None else 0,
                point_in_time=point_in_time,
                sorted=None if not wanted["sort"] else "all" if pages.sorts_all(setting) else "found",
                sorted_count=None if not wanted["sort"] or pages.sorts_all(setting) else found.depth,
                facets=facet_values,
                nothing_fits=None if far is None or found.nearest is None else found.nearest < far,
            )

        whole = read_result()
        whole = whole if point_in_time is None else pages.at_point_in_time(whole, point_in_time, index)
        return recorded(whole, index.index, exchange)

    def _wanted(self, arguments: SearchArguments) -> tuple[dict[str, Any], dict[str, str]]:
        """What a request has of arguments, checked against the index; and the fields whose values are counted, by name.

        Raises:
            UsageError: the index has no such field, or no passages.
        """
        names = self.index.fields
        if arguments.passages and names.parent is None:
            raise UsageError(
                f"Index {self.index.name} holds whole documents, so there are no further passages to show: documents "
                "are cut into chunks when they are loaded with --chunk."
            )
        if arguments.within is not None:
            raise UsageError(_WITHIN)
        wanted = {
            "size": arguments.size,
            "filters": self._fields.checked(arguments.filters, arguments.dsl_filter),
            "sort": pages.sort_clauses(arguments.sort, self._fields) if arguments.sort else (),
            "source": True if arguments.fields is None else [*arguments.fields, *names.text_fields, names.group],
            "passages": arguments.passages,
            "start": arguments.from_,
        }
        return wanted, {name: self._fields.exact(name, "count") for name in arguments.facets}

    def raise_cause(self, error: OpenSearchException | LangshiftError, arguments: SearchArguments) -> None:
        """Say of a search that failed whether its filters are why, or its point in time.

        Raises:
            UsageError: a value does not fit its field, a query cannot be read, or the point in time is over.
        """
        # Perhaps because a node lacks the plugin now.
        self.__dict__.pop("_native", None)
        if (over := pages.expired(error)) is not None:
            raise over from error
        if isinstance(error, RequestError | ClusterError):
            self._fields.require_fitting(arguments.filters, arguments.dsl_filter)

    def shortlist(
        self, words: str, arguments: SearchArguments = DEFAULT, encoded: Callable[[], NDArray[np.float32]] | None = None
    ) -> SearchPlan[Shortlist]:
        """The candidates of a query for any setting but ``anchored`` and one per group, see ``shortlist``.

        Args:
            words: the query.
            arguments: its language and its filters.
            encoded: gives the query's vector as the encoder makes it, shape (dimension,), where somebody keeps it.

        Returns:
            The plan; the query is encoded before this returns.

        Raises:
            UsageError: there is no such language, no such field to filter by, or the query is empty or too long.
        """
        require_query(words)
        checked = self._fields.checked(arguments.filters, arguments.dsl_filter)
        tag = self.language(words).language if arguments.language is None else require_tag(arguments.language)
        # So that no setting that is chosen later has to ask the cluster what it can do.
        _ = self._fusions, self._native
        lacks, vector = {}, None
        try:
            vector = self.encode([words])[0] if encoded is None else encoded()
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
