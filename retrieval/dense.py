"""Modes that ask for vectors alone: ``dense`` and ``balanced``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from langshift.errors import UsageError
from langshift.retrieval import dsl
from langshift.retrieval.hits import Leg, RankedHits, ScoredDoc, ScoringContext, best_first, candidates, leg_pool
from langshift.retrieval.settings import LEAST_CANDIDATES, SearchQuery, SearchRequest
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
        raise UsageError("The query has no vector, but this search mode needs one: encode the query.")
    if not question.vector.any():
        raise UsageError(
            f"The vector of the query {question.words[:_SHOWN_CHARACTERS]!r} is all zeros, so no document is near it: "
            "use other words, or mode lexical."
        )
    return question.vector


def bonus_on_cosine(request: SearchRequest) -> float:
    """What favoured documents are given on the scale of ``(1 + cos) / 2``."""
    return abs(request.preference) / 2


def dense_body(request: SearchRequest) -> Body:
    """The body of ``dense``: a k-nearest-neighbour search with the language preference.

    The score of a hit is ``(1 + cos(q, z̃) + |beta| · [favoured]) / 2``; those in the searcher's language ``l`` are
    favoured, or with ``beta`` below 0 those in every other. The best ``n`` by this score are among the ``n`` nearest
    of all and the ``n`` nearest of the favoured, whose union is asked for.

    Raises:
        UsageError: the question has no vector.
    """
    beta = request.preference
    query = dsl.nearest(request, vector_of(request.question), max(request.size, request.depth), beta)
    if beta:
        more = dsl.added(dsl.preferred_clause(request, beta), bonus_on_cosine(request))
        query = {"bool": {"must": [query], "should": [more]}}
    return dsl.body(query, request.size, request.fields, request.source)


def dense(request: SearchRequest) -> SearchPlan[RankedHits]:
    """The nearest by cosine, with the language preference."""
    (response,) = yield (dense_body(request),)
    hits = candidates(response, "dense", request.fields)
    if request.preference:
        bonus = bonus_on_cosine(request)
        # What the vectors alone said; how they ranked all documents nobody asked.
        plain = ((hit.score or 0.0) - bonus * request.prefers(hit.language) for hit in hits)
        hits = [hit._replace(legs={"dense": Leg(one, None)}) for hit, one in zip(hits, plain, strict=True)]
    return RankedHits(tuple(hits), ScoringContext(request.preference / 2))


def balanced(request: SearchRequest) -> SearchPlan[RankedHits]:
    """The best 5 of each language among the 50 nearest, in order of score (LAURA, section 2.1).

    With a language preference the 50 nearest of the favoured documents are looked at, too.
    """
    answered = zip(("all", request.favoured or ""), (yield balanced_bodies(request)), strict=False)
    legs = {("dense", part): candidates(response, "dense", request.fields) for part, response in answered}
    return rank_dense(best_of_each_language(leg_pool(legs, "dense", request.favoured).candidates), request)


def rank_dense(hits: Iterable[ScoredDoc], request: SearchRequest) -> RankedHits:
    """What was retrieved by vector, with its leg ``dense``, ranked with the language preference."""
    bonus = bonus_on_cosine(request)
    ranked = best_first(
        hit._replace(score=hit.legs["dense"].score + bonus * request.prefers(hit.language)) for hit in hits
    )
    return RankedHits(tuple(ranked[: request.size]), ScoringContext(request.preference / 2))


def balanced_bodies(request: SearchRequest) -> tuple[Body, ...]:
    """The bodies of ``balanced``: for the 50 nearest, and with a preference for the 50 nearest of the favoured.

    Raises:
        UsageError: the question has no vector.
    """
    vector, fields, clauses = vector_of(request.question), request.fields, dsl.filter_clauses(request.filters)
    among = [clauses]
    if request.preference:
        among.append([*clauses, dsl.preferred_clause(request, request.preference)])
    queries = [dsl.knn(vector, LEAST_CANDIDATES, one, fields) for one in among]
    return tuple(dsl.body(query, POOL, fields, request.source) for query in queries)


def best_of_each_language(hits: Iterable[ScoredDoc], of_each: int = OF_EACH_LANGUAGE) -> list[ScoredDoc]:
    """The first few of each language, in the order that they come in."""
    seen: dict[str, int] = {}
    selected = []
    for hit in hits:
        seen[hit.language] = seen.get(hit.language, 0) + 1
        if seen[hit.language] <= of_each:
            selected.append(hit)
    return selected
