"""Searching for a side: from the shortlist where that can rank its setting, else by a search of its own."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray
from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError, UnavailableError, UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.inventory import versions_of
from langshift.plugin.metadata import FieldNames
from langshift.retrieval.facets import Facet, count_values
from langshift.retrieval.filters import FieldCheck, IndexFilter
from langshift.retrieval.pages import at_point_in_time
from langshift.retrieval.plans import Exchange, HttpRequest, SearchPlan, execute, recorded, request_of
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import MOST_PASSAGES, SearchArguments
from langshift.retrieval.result import Hit, SearchResult, group_of, language_notes, title_and_text, to_hit
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.shortlist import Shortlist, ShortlistVectors, rank_at, rankable
from langshift.retrieval.shortlist import rank as plain_rank
from langshift.retrieval.snippets import ShownText, Snippet, Texts, make_snippets, nearest_sentences
from langshift.web.context import AppContext, LruCache
from langshift.web.search.state import MOST_SIZE, IndexChoice, SearchSide, SearchState, choice_of, choices, shows_once

# Two sides of some dozens of queries; with what lists show of its documents a shortlist is a few megabytes at most.
_MOST: Final = 32
_MOST_SENTENCES: Final = 2_000
# What is kept of a text: more than any list shows, and than is read for a snippet.
_KEPT: Final = 4_000


class CachedShortlist:
    """A shortlist, and the vectors that are fetched for it once.

    Attributes:
        searcher: what was searched.
        shortlist: what it gave.
        marked: snippets of the entries in which words of the query stand.
    """

    def __init__(self, searcher: Searcher, shortlist: Shortlist, marked: Mapping[str, Snippet]) -> None:
        self.searcher, self.shortlist, self.marked = searcher, shortlist, marked
        self._vectors: ShortlistVectors | None = None
        self._fetching = Lock()

    @property
    def fixed(self) -> str | None:
        """Why alpha cannot be moved here: by the index, or as the query has no vector; None where it can."""
        return self.searcher.shiftable or self.shortlist.lacks.get("dense")

    def vectors(self, console: AppContext) -> ShortlistVectors:
        """The vectors; fetched by the first who asks, while others wait."""
        with self._fetching:
            if self._vectors is None:
                index = self.searcher.index
                found, marked = execute(console.client, index.index, self._plan())
                self.marked = {**self.marked, **marked}
                self._vectors = replace(found, sources=truncated_sources(found.sources, index.fields))
            return self._vectors

    def _plan(self) -> SearchPlan[tuple[ShortlistVectors, dict[str, Snippet]]]:
        found = yield from self.searcher.vectors(self.shortlist)
        languages, fields = {one.id: one.language for one in found.found}, self.searcher.index.fields
        texts = shown_texts(found.sources, languages, fields)
        return found, (yield from marked_words(self.shortlist.question, texts, fields))


def marked_words(question: SearchQuery, texts: Texts, fields: FieldNames) -> SearchPlan[dict[str, Snippet]]:
    """Choose snippets of the entries in which words of the query stand; one request.

    Args:
        question: what is searched for.
        texts: entry -> its text.
        fields: the index's names of fields.
    """
    found = yield from make_snippets(question, texts, fields, None)
    return {name: one for name, one in found.items() if one.by == "words"}


def shown_texts(sources: Mapping[str, Mapping[str, Any]], languages: Mapping[str, str], fields: FieldNames) -> Texts:
    """What snippets of entries are made of.

    Args:
        sources: entry -> its fields.
        languages: entry -> its language; ``und`` where it is not there.
        fields: the index's names of fields.
    """
    texts = {name: title_and_text(source, fields)[1] for name, source in sources.items()}
    return {name: ShownText(languages.get(name, UNDETERMINED), text) for name, text in texts.items()}


class SideFacets(NamedTuple):
    """The values that a side's documents have.

    Attributes:
        counts: field -> its most frequent values, over the documents that match all filters but those by its values.
        requests: by which they were counted.
    """

    counts: Mapping[str, Facet]
    requests: tuple[HttpRequest, ...] = ()


class SearchCache:
    """All that the search pages keep between requests.

    Attributes:
        choices: what can be searched, as it was listed last.
        gathered: shortlists.
        live: what searches gave that no shortlist can rank.
        facets: counted values.
    """

    def __init__(self) -> None:
        self.choices: LruCache[list[IndexChoice]] = LruCache(1)
        self.gathered: LruCache[CachedShortlist] = LruCache(_MOST)
        self.live: LruCache[tuple[Searcher, SearchResult, SearchQuery]] = LruCache(_MOST)
        self.facets: LruCache[SideFacets] = LruCache(_MOST)
        self._encoded: LruCache[NDArray[np.float32]] = LruCache(256)
        self._sentences: LruCache[NDArray[np.float32]] = LruCache(_MOST_SENTENCES)

    def encoded(self, searcher: Searcher, words: str) -> NDArray[np.float32]:
        """The query's vector as the encoder makes it, shape (dimension,): made once for all indices of one encoder."""
        made = searcher.index.fingerprint
        key = (made.encoder, made.revision, made.query_prefix, words)
        return self._encoded.of(key, lambda: searcher.encode([words])[0])

    def sentences(self, searcher: Searcher, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of sentences, shape (len(texts), dimension): of lists that differ in one hit hardly any is made."""
        made = searcher.index.fingerprint
        keys = {text: (made.encoder, made.revision, text) for text in texts}
        vectors = {text: found for text, key in keys.items() if (found := self._sentences.get(key)) is not None}
        if new := [text for text in keys if text not in vectors]:
            vectors |= dict(zip(new, searcher.encode_sentences(new), strict=True))
        for text, key in keys.items():
            self._sentences.of(key, partial(vectors.__getitem__, text))
        return np.array([vectors[text] for text in texts], dtype=np.float32)


class SideResult(NamedTuple):
    """What a side found.

    Attributes:
        choice: what was searched.
        side: how, with the mode that ``auto`` stands for.
        mode_reason: why in that mode; empty where it was chosen.
        hits: best first, 100 at most.
        language: of the query, ``und`` where unknown.
        languages: those of the index's documents, most frequent first.
        notes: sentences for a person.
        requests: what a search in this setting sends, or begins with.
        fixed: why alpha and gamma cannot be moved here; None where they can.
        facets: the values of its documents.
        order: what was sorted, as a sentence; empty where hits are by score.
        depth: how many hits pages are cut from; 0 without pages.
        point_in_time: of the pages; None without.
        trouble: why nothing was found; None where the search went well.
    """

    choice: IndexChoice
    side: SearchSide
    mode_reason: str = ""
    hits: tuple[Hit, ...] = ()
    language: str = UNDETERMINED
    languages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    requests: tuple[HttpRequest, ...] = ()
    fixed: str | None = None
    facets: SideFacets = SideFacets({})
    order: str = ""
    depth: int = 0
    point_in_time: str | None = None
    trouble: LangshiftError | None = None

    @property
    def moved(self) -> bool:
        """Whether it was looked at by other scales than those it is indexed with."""
        return bool(self.side.scales) and self.fixed is None


def side_error(console: AppContext, error: LangshiftError | OpenSearchException) -> LangshiftError:
    """Why one index cannot be searched, as an error with a sentence.

    Raises:
        UnavailableError: none can be for now.
    """
    langshift_error = console.failure(error)
    if isinstance(langshift_error, UnavailableError):
        raise langshift_error
    return langshift_error


def truncated_sources(sources: Mapping[str, Mapping[str, Any]], fields: FieldNames) -> dict[str, Mapping[str, Any]]:
    """Documents with nothing but title, text and group, the texts cut down.

    Args:
        sources: document -> its fields.
        fields: the names of the index's.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for name, source in sources.items():
        title, text = title_and_text(source, fields)
        texts = {fields.title_field: title[:_KEPT], fields.main_text: text[:_KEPT]}
        kept = {**texts, fields.group: group_of(source, fields)}
        found[name] = {field: value for field, value in kept.items() if field is not None and value is not None}
    return found


def truncated_hit(hit: Hit) -> Hit:
    """A hit, and what is inside it, without any other fields, the texts cut down."""
    others = tuple(
        replace(one, title=one.title[:_KEPT], text=one.text[:_KEPT], source={}, passage=None) for one in hit.others
    )
    shown = None if hit.passage is None else replace(hit.passage, text="")
    return replace(hit, title=hit.title[:_KEPT], text=hit.text[:_KEPT], others=others, source={}, passage=shown)


def entry_of(hit: Hit) -> str:
    """The ``_id`` of what stands for a document: its best chunk, or itself."""
    return hit.id if hit.passage is None else hit.passage.id


class SideSearcher:
    """One request's searches.

    Args:
        console: what the pages share.
        fresh: whether the cluster is asked again for what is known already.
    """

    def __init__(self, console: AppContext, *, fresh: bool) -> None:
        self.console, self._fresh = console, fresh
        self._cache: SearchCache = console.shared(SearchCache, SearchCache)
        self._shortlists: dict[Hashable, CachedShortlist] = {}

    def choices(self) -> list[IndexChoice]:
        """All that can be searched."""
        return self._cache.choices.of(None, lambda: choices(versions_of(self.console.client)), fresh=self._fresh)

    def outcome(self, state: SearchState, side: SearchSide, known: Sequence[IndexChoice]) -> SideResult:
        """What a side finds, or why it finds nothing.

        Args:
            state: the whole state, settled and with words.
            side: which of its sides.
            known: what can be searched.
        """
        choice = choice_of(side, known)
        try:
            side, reason = self.resolved(side, choice)
            by_default = shows_once(state.left, state.right, known)
            state = replace(state, once=by_default if state.once is None else state.once)
            find = self._ranked if rankable(side.setting) and state == state.by_score else self._live
            found = find(state, side, choice)._replace(mode_reason=reason)
            found = found._replace(facets=self._facets(state, choice, found.point_in_time))
        except (LangshiftError, OpenSearchException) as error:
            # The other side may do better.
            langshift_error = side_error(self.console, error)
            return SideResult(choice, side, fixed=str(langshift_error), trouble=langshift_error)
        if side.scales and found.fixed is not None:
            found = found._replace(notes=(*found.notes, f"Shown as indexed: {found.fixed}"))
        return found

    def resolved(self, side: SearchSide, choice: IndexChoice) -> tuple[SearchSide, str]:
        """The side in the mode that ``auto`` stands for, and why; in any other mode as it is, without a reason."""
        if side.setting.mode != "auto":
            return side, ""
        if side.scales:
            dense = side.setting.but(mode="dense")
            return replace(side, setting=dense), f"Mode dense: a calibration is for {choice.name} as it is indexed."
        opened = self.console.opened(choice.name)
        # On a fresh page also a calibration that was made meanwhile counts.
        current = opened.checked() if self._fresh else opened.current()
        chosen = current.searcher.resolve(side.setting)
        return replace(side, setting=chosen.setting), chosen.reason

    def gathered(self, state: SearchState, choice: IndexChoice) -> CachedShortlist:
        """The shortlist for a query; both sides of an index share it."""
        key = _search_key(state, choice)
        # Within one request nothing is asked for twice, however fresh it is to be.
        if key not in self._shortlists:
            made = partial(self._gather, state, choice)
            self._shortlists[key] = self._cache.gathered.of(key, made, fresh=self._fresh)
        return self._shortlists[key]

    def _gather(self, state: SearchState, choice: IndexChoice) -> CachedShortlist:
        def plan(searcher: Searcher) -> SearchPlan[tuple[Shortlist, dict[str, Snippet]]]:
            made = searcher.shortlist(state.words, state.arguments, lambda: self._cache.encoded(searcher, state.words))

            def with_marks() -> SearchPlan[tuple[Shortlist, dict[str, Snippet]]]:
                found, fields = (yield from made), searcher.index.fields
                texts = shown_texts(found.sources, found.languages, fields)
                return found, (yield from marked_words(found.question, texts, fields))

            return with_marks()

        searcher, (shortlist, marked) = self.console.opened(choice.name).execute(plan, state.arguments)
        sources = truncated_sources(shortlist.sources, searcher.index.fields)
        return CachedShortlist(searcher, replace(shortlist, sources=sources), marked)

    def _with_snippets(
        self, searcher: Searcher, question: SearchQuery, found: Sequence[Hit], size: int
    ) -> tuple[Hit, ...]:
        """The hits; those that are shown with snippets, where they have a text."""
        lacking = [hit for hit in found[:size] if hit.snippet is None and hit.text.strip()]
        texts = {entry_of(hit): ShownText(hit.language, hit.text) for hit in lacking}
        near = nearest_sentences(question, texts, partial(self._cache.sentences, searcher))
        return tuple(replace(hit, snippet=hit.snippet or near.get(entry_of(hit))) for hit in found)

    def _facets(self, state: SearchState, choice: IndexChoice, point_in_time: str | None) -> SideFacets:
        """The values of the documents that could be chosen beside those that are."""
        filters, dsl_filter = state.filters

        def plan(searcher: Searcher) -> SearchPlan[SideFacets]:
            index, check = searcher.index, FieldCheck(searcher.client, searcher.index)
            counted: dict[str, tuple[str, IndexFilter]] = {}
            for name in dict.fromkeys(["language", *filter(None, [state.facet])]):
                others = {field: dict(one) for field, one in filters.items()}
                others.get(name, {}).pop("in", None)
                try:
                    field = check.exact(name, "count")
                except UsageError:
                    # It is counted without being asked for, and an adopted index may have none that can be.
                    if name == state.facet:
                        raise
                else:
                    others = {field: one for field, one in others.items() if one}
                    counted[name] = field, check.checked(others, dsl_filter)

            def count() -> SearchPlan[SideFacets]:
                found, exchange = dict[str, Facet](), Exchange()
                for name, (field, checked) in counted.items():
                    part = count_values({name: field}, checked, index.fields)
                    if point_in_time is not None:
                        part = at_point_in_time(part, point_in_time, index)
                    found |= yield from recorded(part, index.index, exchange)
                return SideFacets(found, tuple(exchange.requests))

            return count()

        key = (choice.version.uuid, state.filter_texts, state.facet, point_in_time)
        opened = self.console.opened(choice.name)
        return self._cache.facets.of(key, lambda: opened.execute(plan, state.arguments)[1], fresh=self._fresh)

    def _ranked(self, state: SearchState, side: SearchSide, choice: IndexChoice) -> SideResult:
        gathered = self.gathered(state, choice)
        searcher, question = gathered.searcher, gathered.shortlist.question
        moving = bool(side.scales) and gathered.fixed is None
        exchange = searcher.plan(question, side.setting, size=state.size, filters=gathered.shortlist.filters)
        found = rank(gathered, side, gathered.vectors(self.console) if moving else None)
        if searcher.index.fields.parent is not None and len(found) < state.size and not moving:
            # All chunks of the shortlist may be of a few documents; the live search looks deeper.
            found = self._live(state, side, choice).hits
        return SideResult(
            choice=choice,
            side=side,
            hits=self._with_snippets(searcher, question, _shown(state, found), state.size),
            language=question.language,
            languages=searcher.index.languages,
            notes=tuple(language_notes(searcher.index, question, side.setting, detected=state.language is None)),
            requests=(request_of(searcher.index.index, next(exchange)),),
            fixed=gathered.fixed,
        )

    def _live(self, state: SearchState, side: SearchSide, choice: IndexChoice) -> SideResult:
        shown = (state.sort, state.start, side.point_in_time, 0 if state == state.by_score else state.size)
        key = (_search_key(state, choice), side.setting, shown)
        made = partial(self._searched, state, side, choice)
        searcher, result, question = self._cache.live.of(key, made, fresh=self._fresh)
        mode = "mode anchored" if side.setting.mode == "anchored" else "one hit per translation group"
        mode = "reranking" if side.setting.rerank else mode
        mode = "a sort" if state.sort else mode if state.start is None else "pages"
        order = ""
        if result.sorted is not None:
            order = "all that match" if result.sorted == "all" else f"the {result.sorted_count:,} hits found"
            order = f"Sorted by {', '.join(state.sort)}: {order}."
        return SideResult(
            choice=choice,
            side=side,
            hits=self._with_snippets(searcher, question, _shown(state, result.hits), state.size),
            language=result.language,
            languages=searcher.index.languages,
            notes=result.notes,
            requests=result.requests,
            fixed=f"With {mode}, the index is searched as it is, so alpha cannot be changed here.",
            order=order,
            depth=result.depth,
            point_in_time=result.point_in_time,
        )

    def _searched(
        self, state: SearchState, side: SearchSide, choice: IndexChoice
    ) -> tuple[Searcher, SearchResult, SearchQuery]:
        def plan(searcher: Searcher) -> SearchPlan[tuple[SearchResult, SearchQuery, dict[str, Snippet]]]:
            made = searcher.result_plan(state.words, _arguments(state, side))
            vector = self._cache.encoded(searcher, state.words) if side.setting.needs_vector else None

            def with_marks() -> SearchPlan[tuple[SearchResult, SearchQuery, dict[str, Snippet]]]:
                result = yield from made
                question = SearchQuery(state.words, result.language, vector)
                # A hit's own fields are no more than its document came with.
                texts = {entry_of(hit): ShownText(hit.language, hit.text) for hit in result.hits}
                return result, question, (yield from marked_words(question, texts, searcher.index.fields))

            return with_marks()

        searcher, (result, question, marked) = self.console.opened(choice.name).execute(plan, state.arguments)
        hits = tuple(truncated_hit(replace(one, snippet=marked.get(entry_of(one)))) for one in result.hits)
        return searcher, replace(result, hits=hits), question

    def explained(self, state: SearchState, side: SearchSide, choice: IndexChoice) -> tuple[Searcher, SearchResult]:
        """A search by the cluster that explains its hits, as many as a shortlist ranks."""
        arguments = _arguments(state, side).but(explain=True)
        return self.console.opened(choice.name).execute(lambda one: one.result_plan(state.words, arguments), arguments)

    def passages(self, state: SearchState, side: SearchSide, choice: IndexChoice, name: str) -> Hit | None:
        """A document with all of its passages that match, the best one first; None where none does.

        They are ranked by meaning; in the mode ``lexical``, and where the query has no vector, by words.

        Args:
            state: settled, with words.
            side: the side on which the document stands.
            choice: what is searched there.
            name: the document's id.
        """
        by_words = side.setting.mode == "lexical" or self.gathered(state, choice).shortlist.question.vector is None

        mode = "lexical" if by_words else "dense"
        arguments = state.by_score.arguments.but(mode=mode, size=1, passages=MOST_PASSAGES)

        def plan(searcher: Searcher) -> SearchPlan[SearchResult]:
            of_one = {**arguments.filters, searcher.index.fields.document_key: [name]}
            return searcher.result_plan(state.words, arguments.but(filters=of_one))

        _, found = self.console.opened(choice.name).execute(plan, arguments)
        return next(iter(found.hits), None)


def _arguments(state: SearchState, side: SearchSide) -> SearchArguments:
    """What a search by the cluster is asked."""
    # What is only ranked is compared with the other side further down.
    size = MOST_SIZE if state == state.by_score else state.size
    return state.arguments.but(**asdict(side.setting), size=size, point_in_time=side.point_in_time)


def rank(gathered: CachedShortlist, side: SearchSide, vectors: ShortlistVectors | None) -> tuple[Hit, ...]:
    """The hits of a side's setting, best first; at its scales where there are vectors, else as indexed."""
    index, shortlist = gathered.searcher.index, gathered.shortlist
    if vectors is None:
        found = plain_rank(shortlist, side.setting, size=MOST_SIZE)
    else:
        found = rank_at(shortlist, vectors, side.setting, side.alpha, side.gamma, size=MOST_SIZE)
    return tuple(to_hit(one, index.fields, snippet=gathered.marked.get(one.id)) for one in found.hits)


def _shown(state: SearchState, hits: Sequence[Hit]) -> list[Hit]:
    """Each page once, by its best hit, as `collapse` would; all hits where that is not asked for, and of pages."""
    if not state.once or state != state.by_score:
        return list(hits)
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.group or hit.id, hit)
    return list(best.values())


def _search_key(state: SearchState, choice: IndexChoice) -> tuple[Hashable, ...]:
    """What is searched for, beside the setting; a version is known by the server's own id of it."""
    return choice.version.uuid, state.words, state.language, state.filter_texts
