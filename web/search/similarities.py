"""How near a document is to the query before and after the shift, and which part of that the shift has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from langshift.retrieval.hit import Hit
from langshift.retrieval.moving import account
from langshift.retrieval.ranking import rankable
from langshift.web.search.asking import Asking, rank
from langshift.web.search.cache import Gathered
from langshift.web.search.outcome import Outcome
from langshift.web.search.rows import places
from langshift.web.search.state import Side, State


class Similarity(NamedTuple):
    """How near query and document are at one alpha.

    Attributes:
        where: in words.
        value: the cosine; None where it cannot be known.
        own: the part of it that the text's own vector gives.
        language: the part of it that the language vector's subtraction gives.
        rank: in the list of this setting at that alpha; None where it is not among the first 100, or not known.
    """

    where: str
    value: float | None
    own: float | None = None
    language: float | None = None
    rank: int | None = None


def similarities(
    asking: Asking, state: State, side: Side, name: str, explained: Hit | None, outcome: Outcome
) -> tuple[list[Similarity], Mapping[str, float], str | None]:
    """The table of similarities, what was subtracted of which language vector, and why more is not known."""
    gathered = asking.gathered(state, outcome.choice)
    unknown = gathered.fixed
    if unknown is None:
        return _accounted(asking, gathered, side, name, outcome)
    effect = None if explained is None else explained.shift
    if effect is None:
        return [], {}, unknown
    return (
        [
            Similarity("Before any shift", effect.similarity_before, rank=effect.rank_before),
            Similarity(
                f"As indexed: alpha {outcome.choice.alpha_in_words}", effect.similarity_after, rank=effect.rank_after
            ),
        ],
        effect.moved,
        unknown,
    )


def _accounted(
    asking: Asking, gathered: Gathered, side: Side, name: str, outcome: Outcome
) -> tuple[list[Similarity], Mapping[str, float], str | None]:
    vectors = asking.vectors(gathered)
    wanted: list[tuple[str, float | None]] = [
        ("Before any shift: alpha 0", 0.0),
        (f"As indexed: alpha {outcome.choice.alpha_in_words}", None),
    ]
    if outcome.moved:
        wanted.append((f"As looked at: alpha {side.alpha:g}", side.alpha))
    rows: list[Similarity] = []
    by: Mapping[str, float] = {}
    for where, alpha in wanted:
        told = account(vectors, name, alpha)
        if told is None:
            return [], {}, "The document has no vector, or is not among those that are nearest in its language."
        ranks = {}
        if rankable(side.setting):
            ranks = places(rank(gathered, Side(side.index, side.setting, alpha), vectors))
        rows.append(Similarity(where, told.moved, told.own_part, told.language_part, ranks.get(name)))
        by = told.by
    return rows, by, None
