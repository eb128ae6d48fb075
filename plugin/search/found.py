"""What a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Leg(NamedTuple):
    """What one leg of a search said of a document.

    Attributes:
        score: as the leg gave it: ``(1 + cos) / 2`` of vectors, BM25 of words.
        rank: among what the leg retrieved, counted from 1.
    """

    score: float
    rank: int


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
        bonus: added to the score of a document in the searcher's language, on the scale of the scores.
        ranges: leg -> lowest and highest score that it retrieved, where scores were normalised by these.
        anchors: what the query was moved by.
        kept: document -> score, where it cannot be told from the document alone: by RRF, and where shards
            retrieved for themselves.
        depth: how many documents each leg was asked for; 0 where that has no part in the scores.
        words: what BM25 of words in other languages was multiplied with before it was added.
    """

    bonus: float = 0.0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    anchors: tuple[Anchor, ...] = ()
    kept: Mapping[str, float] = field(default_factory=dict)
    depth: int = 0
    words: float = 0.0


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
    """

    hits: tuple[Candidate, ...]
    how: How = How()
    took: float = 0.0
