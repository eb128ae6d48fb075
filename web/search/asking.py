"""Searching for a side: from the shortlist where that can rank its setting, else by a search of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError
from langshift.plugin.listing import all_versions
from langshift.retrieval.answering import preference_notes
from langshift.retrieval.exchange import carry_out
from langshift.retrieval.hit import Hit, to_hit
from langshift.retrieval.moving import rank_at
from langshift.retrieval.ranking import rank as plain_rank
from langshift.retrieval.ranking import rankable
from langshift.retrieval.requests import request_of
from langshift.retrieval.result import SearchResult
from langshift.retrieval.search import Searcher
from langshift.retrieval.vectors import Vectors
from langshift.retrieval.wanted import Filters
from langshift.web.context import Console
from langshift.web.search.brief import brief_hit, brief_sources
from langshift.web.search.cache import Asked, Gathered, Searches
from langshift.web.search.outcome import Outcome, told_of_one_side
from langshift.web.search.sides import Choice, choices, chosen
from langshift.web.search.state import MOST_SIZE, Side, State


class Asking:
    """One request's searches.

    Args:
        console: what the pages share.
        fresh: whether the cluster is asked again for what is known already.
    """

    def __init__(self, console: Console, *, fresh: bool) -> None:
        self._console, self._fresh = console, fresh
        self._kept: Searches = console.kept(Searches, Searches)
        self._asked: dict[Asked, Gathered] = {}

    def choices(self) -> list[Choice]:
        """All that can be searched."""
        return self._kept.choices.of(None, lambda: choices(all_versions(self._console.client)), fresh=self._fresh)

    def outcome(self, state: State, side: Side, known: Sequence[Choice]) -> Outcome:
        """What a side finds, or why it finds nothing.

        Args:
            state: the whole state, settled and with words.
            side: which of its sides.
            known: what can be searched.
        """
        choice = chosen(side, known)
        try:
            if rankable(side.setting):
                return self._ranked(state, side, choice)
            return self._live(state, side, choice)
        except (LangshiftError, OpenSearchException) as error:
            # The other side may do better.
            told = told_of_one_side(self._console, error)
            return Outcome(choice, side, fixed=str(told), trouble=told)

    def gathered(self, state: State, choice: Choice) -> Gathered:
        """The shortlist for a query; both sides of an index share it."""
        asked = _asked(state, choice)
        # Within one request nothing is asked for twice, however fresh it is to be.
        if asked not in self._asked:
            made = self._kept.gathered.of(asked, lambda: self._gather(state, choice), fresh=self._fresh)
            self._asked[asked] = made
        return self._asked[asked]

    def vectors(self, gathered: Gathered) -> Vectors:
        """The vectors of a shortlist, fetched if they are not there yet."""
        searcher, shortlist = gathered.searcher, gathered.shortlist

        def fetch() -> Vectors:
            found = carry_out(self._console.client, searcher.index.index, searcher.vectors(shortlist))
            return replace(found, sources=brief_sources(found.sources, searcher.index.fields, shortlist.question.words))

        return gathered.vectors(fetch)

    def _gather(self, state: State, choice: Choice) -> Gathered:
        filters = filters_of(state)
        searcher, shortlist = self._console.carry_out(
            choice.name,
            lambda searcher: searcher.shortlist(
                state.words,
                language=state.language,
                filters=filters,
                encoded=lambda: self._kept.encoded(searcher, state.words),
            ),
            filters,
        )
        sources = brief_sources(shortlist.sources, searcher.index.fields, state.words)
        return Gathered(searcher, replace(shortlist, sources=sources))

    def _ranked(self, state: State, side: Side, choice: Choice) -> Outcome:
        gathered = self.gathered(state, choice)
        searcher, shortlist = gathered.searcher, gathered.shortlist
        fixed, question = gathered.fixed, shortlist.question
        notes = preference_notes(searcher.index, question, side.setting)
        if side.alpha is None or fixed is not None:
            found = rank(gathered, side, None)
        else:
            found = rank(gathered, side, self.vectors(gathered))
        if side.alpha is not None and fixed is not None:
            notes.append(f"Shown as indexed: {fixed}")
        exchange = searcher.exchange(question, side.setting, size=state.size, filters=shortlist.filters)
        return Outcome(
            choice=choice,
            side=side,
            hits=found,
            language=question.language,
            languages=searcher.index.languages,
            notes=tuple(notes),
            requests=(request_of(searcher.index.index, next(exchange)),),
            fixed=fixed,
        )

    def _live(self, state: State, side: Side, choice: Choice) -> Outcome:
        key = (_asked(state, choice), side.setting)
        searcher, result = self._kept.live.of(key, lambda: self._searched(state, side, choice), fresh=self._fresh)
        mode = "The mode anchored" if side.setting.mode == "anchored" else "One document per group"
        fixed = f"{mode} is searched for as the index is; alpha cannot be moved here."
        notes = [f"Shown as indexed: {fixed}"] if side.alpha is not None else []
        return Outcome(
            choice=choice,
            side=side,
            hits=result.hits,
            language=result.language,
            languages=searcher.index.languages,
            notes=(*result.notes, *notes),
            requests=result.requests,
            fixed=fixed,
        )

    def _searched(self, state: State, side: Side, choice: Choice) -> tuple[Searcher, SearchResult]:
        searcher, result = self.search(state, side, choice)
        return searcher, replace(result, hits=tuple(brief_hit(one, state.words) for one in result.hits))

    def search(
        self, state: State, side: Side, choice: Choice, *, explain: bool = False
    ) -> tuple[Searcher, SearchResult]:
        """A search by the cluster, for as many hits as a shortlist ranks."""
        filters = filters_of(state)
        return self._console.carry_out(
            choice.name,
            lambda searcher: searcher.answering(
                state.words,
                side.setting,
                language=state.language,
                size=MOST_SIZE,
                filters=filters,
                explain=explain,
            ),
            filters,
        )


def rank(gathered: Gathered, side: Side, vectors: Vectors | None) -> tuple[Hit, ...]:
    """The hits of a side's setting, best first; at its alpha where there are vectors, else as indexed."""
    fields = gathered.searcher.index.fields
    if vectors is None:
        found = plain_rank(gathered.shortlist, side.setting, size=MOST_SIZE)
    else:
        found = rank_at(gathered.shortlist, vectors, side.setting, side.alpha, size=MOST_SIZE)
    return tuple(to_hit(one, fields) for one in found.hits)


def filters_of(state: State) -> Filters:
    """The filters of a state."""
    return {"language": list(state.languages)} if state.languages else {}


def _asked(state: State, choice: Choice) -> Asked:
    return Asked(choice.uuid, state.words, state.language, state.languages)
