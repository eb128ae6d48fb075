"""All that a query's hits may be in any setting, asked for in one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.retrieval.exchange import Body, Exchange, timed
from langshift.retrieval.found import Candidate
from langshift.retrieval.legs import nearest_bodies, word_bodies
from langshift.retrieval.preferring import favoured
from langshift.retrieval.reading import candidates, sources
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import Filters, Question

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

    question: Question
    target: Target
    filters: Filters
    legs: Mapping[Part, tuple[Candidate, ...]]
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

    def leg(self, leg: str) -> list[Candidate]:
        """What a leg retrieved among all documents, of all shards."""
        return [
            one
            for (name, part), found in self.legs.items()
            if name == leg and part not in {"own", "others"}
            for one in found
        ]


def gather(question: Question, target: Target, filters: Filters, lacks: Mapping[str, str]) -> Exchange[Shortlist]:
    """Ask for every candidate; one step.

    By vector and by words the 100 best, those in the searcher's language and those in all others: what the live search
    looks at for up to 100 hits, with any preference.

    Args:
        question: what is asked.
        target: what is searched.
        filters: field of the index -> values, any of which a hit must have.
        lacks: leg -> why it is known that it cannot be asked.

    Returns:
        Of the exchange: the shortlist.
    """
    lacking = dict(lacks)
    asked: dict[Part, Body] = {}
    parts = _parts(question, target)
    for leg, bodies_of in (("dense", nearest_bodies), ("lexical", word_bodies)):
        if leg in lacking:
            continue
        try:
            found = bodies_of(question, target, DEPTH, parts, filters=filters, shards=target.index.shards, source=True)
        except UsageError as error:
            lacking[leg] = str(error)
        else:
            asked |= {(leg, part): body for part, body in found.items()}
    responses, took = yield from timed(_answered(tuple(asked.values())))
    legs = {
        (leg, part): tuple(one._replace(source={}) for one in candidates(response, leg, target.index.fields))
        for (leg, part), response in zip(asked, responses, strict=True)
    }
    return Shortlist(question, target, filters, legs, sources(responses), lacking, took)


def _parts(question: Question, target: Target) -> dict[str, Mapping[str, Any]]:
    """Part -> its clause; without a language nothing is preferred."""
    if question.language == UNDETERMINED:
        return {}
    fields = target.index.fields
    return {"own": favoured(question.language, 1, fields), "others": favoured(question.language, -1, fields)}


def _answered(bodies: tuple[Body, ...]) -> Exchange[list[Any]]:
    return list((yield bodies)) if bodies else []
