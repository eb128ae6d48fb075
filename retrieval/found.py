"""What a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Leg(NamedTuple):
    """What one leg of a search said of a document.

    Attributes:
        score: as the leg gave it: ``(1 + cos) / 2`` of vectors, BM25 of words.
        rank: among what the leg retrieved, counted from 1; of ``anchored`` among the hits. None where the leg did not
            rank the document: where it was looked at for the language preference, or put with the bonus in one score.
    """

    score: float
    rank: int | None


@dataclass(frozen=True)
class Anchor:
    """A document that the query's vector was moved towards.

    Attributes:
        id: its ``_id``.
        trust: how probable it is that it answers the query, 0 to 1.
        weight: what its unit vector was multiplied with before it was added to the query's; 0 where it was not used.
        evidence: the figures that trust was computed from, by name.
    """

    id: str
    trust: float
    weight: float
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class How:
    """All that is needed, beside question and setting, to score one more document as the search would have.

    Attributes:
        bonus: what a document in the searcher's language is given more than others, on the scale of the scores. Below
            0 its amount is added to the scores of the others.
        ranges: leg -> lowest and highest score that it retrieved, where scores were normalised by these.
        anchors: what the query was moved by.
        kept: document -> score, where it cannot be told from the document alone: by RRF, and where shards
            retrieved for themselves.
        depth: how many documents each leg was asked for; 0 where that has no part in the scores.
        given: document -> what it alone was given, in ``anchored`` for words in other languages.
    """

    bonus: float = 0.0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    anchors: tuple[Anchor, ...] = ()
    kept: Mapping[str, float] = field(default_factory=dict)
    depth: int = 0
    given: Mapping[str, float] = field(default_factory=dict)


class Candidate(NamedTuple):
    """One document found.

    Attributes:
        id: its ``_id``.
        score: by which it is ranked.
        language: as it stands in the index, or ``und``.
        source: the fields that were asked for; empty where none were.
        legs: leg -> what it said; a leg that did not retrieve the document is absent.
        others: with ``one_per_group`` the other documents of its translation group, best first; one without a
            score matched nothing.
    """

    id: str
    score: float | None
    language: str
    source: Mapping[str, Any] = {}
    legs: Mapping[str, Leg] = {}
    others: tuple[Candidate, ...] = ()


class Found(NamedTuple):
    """The outcome of a search.

    Attributes:
        hits: best first, as many as were asked for at most.
        how: how the scores were put together.
        took: milliseconds that the server says it took, all steps together.
        notes: sentences that a person should be told with the hits.
    """

    hits: tuple[Candidate, ...]
    how: How = How()
    took: float = 0.0
    notes: tuple[str, ...] = ()
