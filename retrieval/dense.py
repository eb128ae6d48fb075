"""Modes that ask for vectors alone: ``dense`` and ``balanced``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.dsl import Source, dense_preferring, is_preferred, preference_of, preferred_clause
from langshift.retrieval.hits import Leg, RankedHits, ScoredDoc, ScoringContext, candidates, pool
from langshift.retrieval.settings import NO_FILTERS, Filters, SearchContext, SearchQuery, SearchSettings
from langshift.retrieval.steps import Body, SearchPlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# LAURA, section 2.1: the 50 best, partitioned by language, of each the 5 best.
POOL: Final = 50
OF_EACH_LANGUAGE: Final = 5
# Characters of a query, in a sentence about it.
_SHOWN_CHARACTERS: Final = 100


def vector_of(question: SearchQuery) -> NDArray[np.float32]:
    """The question's vector.

    Raises:
        UsageError: it has none, or one of zeros, which is near to nothing.
    """
    if question.vector is None:
        raise UsageError("The question has no vector, and this way of searching needs one: encode its words.")
    if not question.vector.any():
        raise UsageError(
            f"The vector of the query {question.words[:_SHOWN_CHARACTERS]!r} is all zeros, so nothing is near to it: "
            "ask it in "
            "other words, or by mode lexical."
        )
    return question.vector


def bonus_on_cosine(question: SearchQuery, setting: SearchSettings) -> float:
    """What favoured documents are given on the scale of ``(1 + cos) / 2``."""
    return abs(preference_of(question, setting)) / 2


def dense(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """The nearest by cosine, with the language preference."""
    vector, fields, beta = vector_of(question), target.index.fields, preference_of(question, setting)
    if beta:
        body = dense_preferring(
            vector, question.language, beta, size=size, filters=filters, fields=fields, source=source
        )
    else:
        body = dsl.dense(vector, size=size, filters=filters, fields=fields, source=source)
    (response,) = yield (body,)
    bonus = bonus_on_cosine(question, setting)
    hits = candidates(response, "dense", fields)
    if bonus:
        hits = _without_bonus(hits, {hit.id for hit in hits if is_preferred(hit.language, question, setting)}, bonus)
    return RankedHits(tuple(hits), ScoringContext(beta / 2))


def _without_bonus(hits: Sequence[ScoredDoc], given_more: set[str], bonus: float) -> list[ScoredDoc]:
    """The hits, whose leg says what the vectors alone said; how they ranked all documents nobody asked."""
    plain = {hit.id: (hit.score or 0.0) - bonus * (hit.id in given_more) for hit in hits}
    return [hit._replace(legs={"dense": Leg(plain[hit.id], None)}) for hit in hits]


def balanced(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """The best 5 of each language among the 50 nearest, in order of score (LAURA, section 2.1).

    With a language preference the 50 nearest of the favoured documents are looked at, too.
    """
    fields, beta = target.index.fields, preference_of(question, setting)
    responses = yield balanced_bodies(
        vector_of(question), question.language, beta, filters=filters, fields=fields, source=source
    )
    retrieved = pool("dense", responses[:1], responses[1:], fields).candidates
    return rank_dense(best_of_each_language(retrieved), question, setting, size=size)


def rank_dense(hits: Iterable[ScoredDoc], question: SearchQuery, setting: SearchSettings, *, size: int) -> RankedHits:
    """What was retrieved by vector, ranked with the language preference.

    Args:
        hits: with their leg ``dense``.
        question: what is asked.
        setting: with which preference.
        size: how many hits.
    """
    bonus = bonus_on_cosine(question, setting)
    ranked = [
        hit._replace(score=hit.legs["dense"].score + bonus * is_preferred(hit.language, question, setting))
        for hit in hits
    ]
    ranked.sort(key=lambda hit: -(hit.score or 0.0))
    return RankedHits(tuple(ranked[:size]), ScoringContext(preference_of(question, setting) / 2))


def balanced_bodies(
    vector: NDArray[np.float32],
    language: str = UNDETERMINED,
    preference: float = 0.0,
    *,
    filters: Filters = NO_FILTERS,
    fields: FieldNames = USUAL,
    source: Source = True,
) -> tuple[Body, ...]:
    """The bodies of ``balanced``: for the 50 nearest, and with a preference for the 50 nearest of the favoured.

    Args:
        vector: query vector, shape (dimension,), float32.
        language: primary tag of the searcher's language.
        preference: beta, in units of cosine; 0 where the language is ``und``.
        filters: field -> values, any of which a hit must have.
        fields: the index's names of fields.
        source: what hits bring.
    """
    nearest = dsl.dense(vector, size=POOL, filters=filters, fields=fields, source=source)
    if not preference:
        return (nearest,)
    clauses = [*dsl.filter_clauses(filters), preferred_clause(language, preference, fields)]
    query = dsl.knn(vector, dsl.LEAST_CANDIDATES, clauses, fields)
    return nearest, dsl.body(query, POOL, fields, source)


def best_of_each_language(hits: Iterable[ScoredDoc], of_each: int = OF_EACH_LANGUAGE) -> list[ScoredDoc]:
    """The first few of each language, in the order that they come in."""
    seen: dict[str, int] = {}
    selected = []
    for hit in hits:
        seen[hit.language] = seen.get(hit.language, 0) + 1
        if seen[hit.language] <= of_each:
            selected.append(hit)
    return selected
