"""Searching for a side: from the shortlist where that can rank its setting, else by a search of its own."""

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError, UnavailableError
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.inventory import versions_of
from langshift.plugin.metadata import FieldNames
from langshift.retrieval.hits import Hit, SearchResult, group_of, title_and_text, to_hit
from langshift.retrieval.searcher import Searcher, language_notes
from langshift.retrieval.settings import MOST_PASSAGES, SearchSettings
from langshift.retrieval.shortlist import Shortlist, ShortlistVectors, rank_at, rankable
from langshift.retrieval.shortlist import rank as plain_rank
from langshift.retrieval.steps import HttpRequest, SearchPlan, execute, request_of
from langshift.web.context import AppContext, LruCache
from langshift.web.search.state import MOST_SIZE, IndexChoice, SearchSide, SearchState, choice_of, choices

# Two sides of some dozens of queries; with what lists show of its documents a shortlist is a few megabytes at most.
_MOST: Final = 32


class CachedShortlist:
    """A shortlist, and the vectors that are fetched for it once.

    Attributes:
        searcher: what was searched.
        shortlist: what it gave.
    """

    def __init__(self, searcher: Searcher, shortlist: Shortlist) -> None:
        self.searcher, self.shortlist = searcher, shortlist
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
                index, words = self.searcher.index, self.shortlist.question.words
                found = execute(console.client, index.index, self.searcher.vectors(self.shortlist))
                self._vectors = replace(found, sources=truncated_sources(found.sources, index.fields, words))
            return self._vectors


class SearchCache:
    """All that the search pages keep between requests.

    Attributes:
        choices: what can be searched, as it was listed last.
        gathered: shortlists.
        live: what searches gave that no shortlist can rank.
    """

    def __init__(self) -> None:
        self.choices: LruCache[list[IndexChoice]] = LruCache(1)
        self.gathered: LruCache[CachedShortlist] = LruCache(_MOST)
        self.live: LruCache[tuple[Searcher, SearchResult]] = LruCache(_MOST)
        self._encoded: LruCache[NDArray[np.float32]] = LruCache(256)

    def encoded(self, searcher: Searcher, words: str) -> NDArray[np.float32]:
        """The query's vector as the encoder makes it, shape (dimension,): made once for all indices of one encoder."""
        made = searcher.index.fingerprint
        key = (made.encoder, made.revision, made.query_prefix, words)
        return self._encoded.of(key, lambda: searcher.encode([words])[0])


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


SNIPPET: Final = 240
TITLE: Final = 160
# How much of a text is shown before the first of the query's words in it.
_BEFORE = 60
# What is kept of a text, and how much of it before that word: more than any list shows.
_EXCERPT_LENGTH, _EXCERPT_BEFORE = 2_000, 500
_SHORTEST_WORD = 3
# No script puts more marks on a character.
_MOST_MARKS = 16
# A query may be as long as a page.
_MOST_WORDS = 32


class HitRow(NamedTuple):
    """One hit of a list.

    Attributes:
        hit: what was found.
        title: of the document; empty where it has none.
        snippet: the beginning of its text, or what is around a word of the query.
        movement: which way it stands against the other side: up, down, same or absent.
        moved: the same in words.
        others: the other documents of its group: their languages, and their titles or the beginnings of their texts.
        passage: which part of the document is shown, in an index of chunks; empty where that is the whole.
        more: whether the document may have other passages.
    """

    hit: Hit
    title: str
    snippet: str
    movement: str
    moved: str
    others: tuple[tuple[str, str], ...]
    passage: str
    more: bool


def rows(hits: Sequence[Hit], words: str, there: Mapping[str, int]) -> list[HitRow]:
    """The hits as they are listed.

    Args:
        hits: best first.
        words: the query.
        there: document -> rank on the other side, from ``places``.
    """
    return [
        HitRow(
            hit,
            truncate(hit.title, TITLE),
            snippet(hit.text, words),
            *_moved(rank, _place(hit, there)),
            others=tuple((one.language, truncate(one.title or one.text, TITLE)) for one in hit.others),
            passage=passage(hit),
            more=hit.passage is not None and (hit.passage.place is None or hit.passage.place.count > 1),
        )
        for rank, hit in enumerate(hits, start=1)
    ]


def passage(hit: Hit) -> str:
    """``Passage 3 of 12``; empty where the place is not known, and where it is all of the document."""
    place = None if hit.passage is None else hit.passage.place
    return "" if place is None or place.count == 1 else f"Passage {place.ordinal + 1:,} of {place.count:,}"


def places(hits: Iterable[Hit]) -> dict[str, int]:
    """Document -> its rank; one inside a hit has that of the hit."""
    found: dict[str, int] = {}
    for rank, hit in enumerate(hits, start=1):
        for name in (hit.id, *(one.id for one in hit.others)):
            found.setdefault(name, rank)
    return found


def shares(hits: Sequence[Hit]) -> list[tuple[str, int]]:
    """Language -> how many of the hits are in it, most first."""
    counted = Counter(hit.language for hit in hits)
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def snippet(text: str, words: str, most: int = SNIPPET) -> str:
    """The beginning of a text, or what is around the first of the query's words in it where that is further on."""
    text = " ".join(text.split())
    found = _first_word(text, words, most)
    if found is None:
        return truncate(text, most)
    start = max(0, min(found - _BEFORE, len(text) - most))
    space = text.find(" ", start, found)
    start = space + 1 if space >= 0 else _whole(text, start)
    return f"…{truncate(text[start:], most)}"


def truncate(text: str, most: int) -> str:
    """The beginning of a text, to the end of a word where one ends soon."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    end = _whole(text, most)
    space = text.rfind(" ", most * 3 // 4, end)
    return f"{text[: space if space > 0 else end].rstrip()}…"


def excerpt(text: str, words: str = "") -> str:
    """As much of a text as ``cut`` and ``snippet`` need to make the same of it as of the whole."""
    # Most are short, and to part them into words is the slowest here.
    if len(text) <= _EXCERPT_LENGTH:
        return text
    text = " ".join(text.split())
    if len(text) <= _EXCERPT_LENGTH:
        return text
    found = _first_word(text, words, SNIPPET)
    start = 0 if found is None else max(0, found - _EXCERPT_BEFORE)
    return text[start : start + _EXCERPT_LENGTH]


def ordinal(rank: int) -> str:
    """``1st``, ``22nd``, ``113th``."""
    teens = 10 < rank % 100 < 14
    return f"{rank}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th')}"


def _first_word(text: str, words: str, most: int) -> int | None:
    """Where the first of the query's words begins in a text; None where it is in the beginning, or there is none."""
    if len(text) <= most:
        return None
    words = normal_form(words)
    lowered = text.lower()
    # Of some letters it makes two.
    searched = lowered if len(lowered) == len(text) else text
    wanted = [word.lower() for word in words.split()[:_MOST_WORDS] if len(word) >= _SHORTEST_WORD]
    start, end = min(
        ((place, place + len(word)) for word in wanted if (place := searched.find(word)) >= 0), default=(0, 0)
    )
    return start if end > most else None


def _whole(text: str, place: int) -> int:
    """The place, further on where it would part a character from its marks."""
    furthest = min(len(text), place + _MOST_MARKS)
    while place < furthest and unicodedata.category(text[place])[0] == "M":
        place += 1
    return place


def _place(hit: Hit, there: Mapping[str, int]) -> int | None:
    return there.get(hit.id, min((there[one.id] for one in hit.others if one.id in there), default=None))


def _moved(rank: int, there: int | None) -> tuple[str, str]:
    if there is None:
        return "absent", "not among the first 100 on the other side"
    if there == rank:
        return "same", "same rank"
    direction = "up" if rank < there else "down"
    return direction, f"{direction} {abs(there - rank)}, {ordinal(there)} on the other side"


def truncated_sources(
    sources: Mapping[str, Mapping[str, Any]], fields: FieldNames, words: str
) -> dict[str, Mapping[str, Any]]:
    """Documents with nothing but title, text and group, the texts cut down.

    Args:
        sources: document -> its fields.
        fields: the names of the index's.
        words: the query, around whose words lists show a text.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for name, source in sources.items():
        title, text = title_and_text(source, fields)
        texts, group = {fields.main_text: excerpt(text, words)}, group_of(source, fields)
        if fields.title_field is not None:
            texts = {fields.title_field: excerpt(title), **texts}
        found[name] = texts if group is None else {**texts, fields.group: group}
    return found


def truncated_hit(hit: Hit, words: str) -> Hit:
    """A hit, and what is inside it, without any other fields, the texts cut down."""
    others = tuple(
        replace(one, title=excerpt(one.title), text=excerpt(one.text), source={}, passage=None) for one in hit.others
    )
    shown = None if hit.passage is None else replace(hit.passage, text="")
    text = excerpt(hit.text, words)
    return replace(hit, title=excerpt(hit.title), text=text, others=others, source={}, passage=shown)


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
            find = self._ranked if rankable(side.setting) else self._live
            found = find(state, side, choice)._replace(mode_reason=reason)
        except (LangshiftError, OpenSearchException) as error:
            # The other side may do better.
            langshift_error = side_error(self.console, error)
            return SideResult(choice, side, fixed=str(langshift_error), trouble=langshift_error)
        if not side.scales or found.fixed is None:
            return found
        return found._replace(notes=(*found.notes, f"Shown as indexed: {found.fixed}"))

    def resolved(self, side: SearchSide, choice: IndexChoice) -> tuple[SearchSide, str]:
        """The side in the mode that ``auto`` stands for, and why; in any other mode as it is, without a reason."""
        if side.setting.mode != "auto":
            return side, ""
        if side.scales:
            dense = replace(side.setting, mode="dense")
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
            made = self._cache.gathered.of(key, lambda: self._gather(state, choice), fresh=self._fresh)
            self._shortlists[key] = made
        return self._shortlists[key]

    def _gather(self, state: SearchState, choice: IndexChoice) -> CachedShortlist:
        searcher, shortlist = self.console.opened(choice.name).execute(
            lambda searcher: searcher.shortlist(
                state.words,
                language=state.language,
                filters=state.filters,
                encoded=lambda: self._cache.encoded(searcher, state.words),
            ),
            state.filters,
        )
        sources = truncated_sources(shortlist.sources, searcher.index.fields, state.words)
        return CachedShortlist(searcher, replace(shortlist, sources=sources))

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
            hits=found,
            language=question.language,
            languages=searcher.index.languages,
            notes=tuple(language_notes(searcher.index, question, side.setting, detected=state.language is None)),
            requests=(request_of(searcher.index.index, next(exchange)),),
            fixed=gathered.fixed,
        )

    def _live(self, state: SearchState, side: SearchSide, choice: IndexChoice) -> SideResult:
        key = (_search_key(state, choice), side.setting)
        searcher, result = self._cache.live.of(key, lambda: self._searched(state, side, choice), fresh=self._fresh)
        mode = "mode anchored" if side.setting.mode == "anchored" else "one hit per translation group"
        mode = "reranking" if side.setting.rerank else mode
        return SideResult(
            choice=choice,
            side=side,
            hits=result.hits,
            language=result.language,
            languages=searcher.index.languages,
            notes=result.notes,
            requests=result.requests,
            fixed=f"With {mode}, the index is searched as it is, so alpha cannot be changed here.",
        )

    def _searched(self, state: SearchState, side: SearchSide, choice: IndexChoice) -> tuple[Searcher, SearchResult]:
        searcher, result = self.search(state, side, choice)
        return searcher, replace(result, hits=tuple(truncated_hit(one, state.words) for one in result.hits))

    def search(
        self, state: SearchState, side: SearchSide, choice: IndexChoice, *, explain: bool = False
    ) -> tuple[Searcher, SearchResult]:
        """A search by the cluster, for as many hits as a shortlist ranks."""
        return self.console.opened(choice.name).execute(
            lambda searcher: searcher.result_plan(
                state.words,
                side.setting,
                language=state.language,
                size=MOST_SIZE,
                filters=state.filters,
                explain=explain,
            ),
            state.filters,
        )

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

        def plan(searcher: Searcher) -> SearchPlan[SearchResult]:
            return searcher.result_plan(
                state.words,
                SearchSettings("lexical" if by_words else "dense"),
                language=state.language,
                size=1,
                filters={**state.filters, searcher.index.fields.document_key: [name]},
                passages=MOST_PASSAGES,
            )

        _, found = self.console.opened(choice.name).execute(plan, state.filters)
        return next(iter(found.hits), None)


def rank(gathered: CachedShortlist, side: SearchSide, vectors: ShortlistVectors | None) -> tuple[Hit, ...]:
    """The hits of a side's setting, best first; at its scales where there are vectors, else as indexed."""
    index, shortlist = gathered.searcher.index, gathered.shortlist
    if vectors is None:
        found = plain_rank(shortlist, side.setting, size=MOST_SIZE)
    else:
        found = rank_at(shortlist, vectors, side.setting, side.alpha, side.gamma, size=MOST_SIZE)
    return tuple(to_hit(one, index.fields) for one in found.hits)


def _search_key(state: SearchState, choice: IndexChoice) -> tuple[Hashable, ...]:
    """What is searched for, beside the setting; a version is known by the server's own id of it."""
    return choice.version.uuid, state.words, state.language, state.languages
