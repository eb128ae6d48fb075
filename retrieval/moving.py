"""A shortlist ranked at any alpha as an index of that alpha would be, and why a document is where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from langshift.retrieval.found import Candidate, Found, Leg
from langshift.retrieval.gathering import DEPTH, Part, Shortlist
from langshift.retrieval.ranking import part_of, rank
from langshift.retrieval.vectors import Vectors
from langshift.retrieval.wanted import Setting


def rank_at(
    shortlist: Shortlist, vectors: Vectors, setting: Setting, alpha: float | None, *, size: int = DEPTH
) -> Found:
    """What the live search would find if all documents were shifted by one alpha: ``z̃ = z - α V``.

    Similarities are exact in double precision, and documents that the graph search of such an index would miss by
    chance are not missed: at the index's own alpha this may find one more than ``rank``. The first 20 by vector are
    those of such an index; further down, and in the range that ``hybrid`` normalises by, a document may be missing that
    the index's own alpha put far down in a language with many near documents. The query's vector and the leg of words
    stay as they are.

    Args:
        shortlist: of the query.
        vectors: of the shortlist.
        setting: how it is searched; one that is ``rankable``.
        alpha: the scale, for all languages alike; None as indexed.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if alpha is None:
        return rank(shortlist, setting, size=size)
    scores = (1 + vectors.similarities(alpha)) / 2
    order = np.argsort(-scores, kind="stable")
    wide = DEPTH * shortlist.target.index.shards
    legs: dict[Part, tuple[Candidate, ...]] = {("dense", "all"): _leg(vectors, scores, order[:wide])}
    if part := part_of(shortlist, setting):
        own = np.array([language == shortlist.question.language for language in vectors.languages], dtype=bool)
        among = own if part == "own" else ~own
        legs["dense", part] = _leg(vectors, scores, order[among[order]][:DEPTH])
    moved = replace(shortlist, legs={**shortlist.legs, **legs}, sources={**vectors.sources, **shortlist.sources})
    return rank(moved, setting, size=size)


def _leg(vectors: Vectors, scores: NDArray[np.float64], order: NDArray[np.intp]) -> tuple[Candidate, ...]:
    """The documents in this order as a leg gives them."""
    return tuple(
        Candidate(name, score, vectors.languages[place], legs={"dense": Leg(score, number)})
        for number, place in enumerate(order.tolist(), start=1)
        for name, score in [(vectors.ids[place], float(scores[place]))]
    )


@dataclass(frozen=True)
class Account:
    """What a document's similarity to the query at an alpha is made of: ``q̂·z / |z̃| - α q̂·V / |z̃|``.

    Attributes:
        before: its similarity before any shift, ``cos(q, z)``; None where that cannot be known.
        indexed: as it is in the index.
        moved: at the alpha asked for; None where that cannot be known.
        own_part: what the text itself has of ``moved``, ``q̂·z / |z̃|``.
        language_part: what the subtracted language vector has of it, ``-α q̂·V / |z̃|``.
        by: tag of a language vector -> what it is multiplied with before it is subtracted.
    """

    before: float | None
    indexed: float
    moved: float | None
    own_part: float | None
    language_part: float | None
    by: Mapping[str, float]


def account(vectors: Vectors, name: str, alpha: float | None) -> Account | None:
    """Account for a document's similarity.

    The query's vector is the one that is searched with, also before the shift.

    Args:
        vectors: of a query's shortlist.
        name: the document's ``_id``.
        alpha: the scale, for all languages alike; None as indexed.

    Returns:
        None of a document without a vector, and of one that is not a candidate.
    """
    if (place := vectors.places.get(name)) is None:
        return None
    indexed = float(vectors.indexed[place])
    if name in vectors.unmovable:
        return Account(None, indexed, None, None, None, vectors.by[name])
    made = float(vectors.made[place])
    moved = float(vectors.similarities(alpha)[place])
    length = float(vectors.norms[place] if alpha is None else vectors.lengths(alpha)[place])
    own_part = made / length if length else 0.0
    by = (
        vectors.by[name] if alpha is None else {t: p * alpha for t, p in vectors.proportions[name].items() if p * alpha}
    )
    before = float(vectors.similarities(0.0)[place])
    return Account(before, indexed, moved, own_part, moved - own_part, by)
