"""All that a query's hits may be, gathered in one step, and ranked in any setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.retrieval.dense import POOL, best_of_each_language, rank_dense
from langshift.retrieval.dsl import preferred_clause
from langshift.retrieval.hits import (
    Pool,
    RankedHits,
    ScoredDoc,
    ScoringContext,
    best_first,
    candidates,
    pooled,
    sources,
)
from langshift.retrieval.hybrid import Parts, fuse, nearest_bodies, word_bodies
from langshift.retrieval.settings import USUAL, Filters, SearchContext, SearchQuery, SearchRequest, SearchSettings
from langshift.retrieval.steps import Body, SearchPlan, timed_step

# As many as the live search asks of each leg for up to as many hits.
DEPTH: Final = 100

Part = tuple[str, str]
"""Leg and part: ``dense`` or ``lexical``; ``all`` or ``shard N``, ``own`` and ``others``."""


@dataclass(frozen=True)
class Shortlist:
    """The candidates of one query in one index.

    Attributes:
        question: what was asked, with its vector where it has one.
        target: what was searched.
        filters: what all candidates match, by field of the index.
        legs: leg and part -> what that search retrieved, best first, without fields. Parts: ``all`` documents (by
            words in an index of several shards: ``shard N``), those in the searcher's ``own`` language, and all
            ``others``; the last two are absent where the language is not known.
        sources: document -> its fields but the vector.
        lacks: leg -> a sentence that says why it could not be asked.
        took: milliseconds that the server says it took.
    """

    question: SearchQuery
    target: SearchContext
    filters: Filters
    legs: Mapping[Part, tuple[ScoredDoc, ...]]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    lacks: Mapping[str, str] = field(default_factory=dict)
    took: float = 0.0

    @cached_property
    def languages(self) -> dict[str, str]:
        """Document -> its language; of every candidate."""
        return {one.id: one.language for found in self.legs.values() for one in found}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every candidate."""
        return tuple(self.languages)

    def request(self, setting: SearchSettings, size: int = DEPTH) -> SearchRequest:
        """The search in a setting that the shortlist stands for."""
        return SearchRequest(self.question, setting, self.target, size, DEPTH, self.filters)

    def leg(self, leg: str) -> list[ScoredDoc]:
        """What a leg retrieved among all documents, of all shards."""
        return [
            one
            for (name, part), found in self.legs.items()
            if name == leg and part not in {"own", "others"}
            for one in found
        ]


def build_shortlist(
    question: SearchQuery, target: SearchContext, filters: Filters, lacks: Mapping[str, str]
) -> SearchPlan[Shortlist]:
    """Ask for every candidate; one step.

    By vector and by words the 100 best, those in the searcher's language and those in all others: what the live search
    looks at for up to 100 hits, with any preference.

    Args:
        question: what is asked.
        target: what is searched.
        filters: field of the index -> values, any of which a hit must have.
        lacks: leg -> why it is known that it cannot be asked.

    Returns:
        Of the plan: the shortlist.
    """
    request = SearchRequest(question, USUAL, target, depth=DEPTH, filters=filters)
    lacking, language = dict(lacks), question.language
    bodies: dict[Part, Body] = {}
    parts: Parts = {}
    if language != UNDETERMINED:
        wishes = {"own": 1.0, "others": -1.0}
        parts = {part: preferred_clause(language, sign, request.fields) for part, sign in wishes.items()}
    for leg, bodies_of in (("dense", nearest_bodies), ("lexical", word_bodies)):
        if leg in lacking:
            continue
        try:
            found = bodies_of(request, parts, target.index.shards)
        except UsageError as error:
            lacking[leg] = str(error)
        else:
            bodies |= {(leg, part): body for part, body in found.items()}
    responses, took = yield from timed_step(bodies.values())
    legs = {
        (leg, part): tuple(one._replace(source={}) for one in candidates(response, leg, request.fields))
        for (leg, part), response in zip(bodies, responses, strict=True)
    }
    return Shortlist(question, target, filters, legs, sources(responses), lacking, took)


def rankable(setting: SearchSettings) -> bool:
    """Whether a shortlist tells what a setting finds: not where a search goes on from what it found itself."""
    return setting.mode != "anchored" and not setting.one_per_group


def rank(shortlist: Shortlist, setting: SearchSettings, *, size: int = DEPTH) -> RankedHits:
    """What the live search finds in a setting: the same documents in the same order, with the same scores.

    Scores are the same to rounding in float32, and documents whose scores are that near may come in another order. In
    an index of several shards, too: the shortlist holds what each shard brings.

    Args:
        shortlist: of the query.
        setting: how it is searched; one that is ``rankable``.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs; ``took`` is that of the shortlist.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if not rankable(setting):
        raise ValueError(f"a shortlist cannot be ranked in {setting}")
    _require_legs(shortlist, setting)
    found = _ranked(shortlist, shortlist.request(setting, size))
    hits = tuple(hit._replace(source=shortlist.sources.get(hit.id, {})) for hit in found.hits)
    return found._replace(hits=hits, took=shortlist.took)


def part_of(shortlist: Shortlist, setting: SearchSettings) -> str | None:
    """The part of the documents that the setting's preference favours; None where it favours none."""
    beta = shortlist.request(setting).preference
    return ("own" if beta > 0 else "others") if beta else None


def _require_legs(shortlist: Shortlist, setting: SearchSettings) -> None:
    needed = {"dense"} if setting.mode in {"dense", "balanced"} else {"lexical"}
    if setting.mode == "hybrid" or part_of(shortlist, setting):
        needed.add("dense")
    for leg, why in shortlist.lacks.items():
        if leg in needed:
            raise UsageError(why)


def _ranked(shortlist: Shortlist, request: SearchRequest) -> RankedHits:
    mode, size = request.setting.mode, request.size

    def legs_pool(leg: str, depth: int | None = None) -> Pool:
        """What a leg retrieved, of all and of the favoured as many as are looked at."""
        part = part_of(shortlist, request.setting)
        favoured = shortlist.legs.get((leg, part), ())[:depth] if part else ()
        return pooled(leg, best_first(shortlist.leg(leg))[:depth], favoured)

    if mode == "dense":
        return rank_dense(legs_pool("dense").candidates, request)
    if mode == "balanced":
        return rank_dense(best_of_each_language(legs_pool("dense", POOL).candidates), request)
    if mode == "lexical" and not request.preference:
        return RankedHits(tuple(legs_pool("lexical", DEPTH).candidates[:size]), ScoringContext())
    # In hybrid every shard brings as many, in lexical all together.
    depth = None if mode == "hybrid" else DEPTH
    hits, how = fuse({leg: legs_pool(leg, depth) for leg in ("dense", "lexical")}, request)
    return RankedHits(tuple(hits[:size]), how)
