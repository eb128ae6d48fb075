"""Modes that ask for vectors alone: ``dense`` and ``balanced``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langshift.plugin.native_nodes import NAME
from langshift.retrieval import dsl
from langshift.retrieval.hits import (
    Leg,
    Part,
    RankedHits,
    ScoredDoc,
    ScoringContext,
    best_first,
    candidates,
    filled,
    leg_pool,
    merged,
    missing,
    one_per_document,
)
from langshift.retrieval.settings import LEAST_CANDIDATES, SearchRequest, vector_of
from langshift.retrieval.steps import Body, SearchPlan

# LAURA, section 2.1: the 50 best, partitioned by language, of each the 5 best.
POOL: Final = 50
OF_EACH_LANGUAGE: Final = 5


def bonus_on_cosine(request: SearchRequest) -> float:
    """What favoured documents are given on the scale of ``(1 + cos) / 2``."""
    return abs(request.preference) / 2


def dense_bodies(request: SearchRequest) -> tuple[Body, ...]:
    """The bodies of ``dense``: a k-nearest-neighbour search with the language preference.

    The score of a hit is ``(1 + cos(q, z̃) + |beta| · [favoured]) / 2``; those in the searcher's language ``l`` are
    favoured, or with ``beta`` below 0 those in every other. The best ``n`` by this score are among the ``n`` nearest
    of all and the ``n`` nearest of the favoured, whose union is asked for; in an index of chunks each for itself.

    Raises:
        UsageError: the question has no vector.
    """
    beta = request.preference
    queries = dsl.nearest(request, vector_of(request.question), max(request.size, request.depth), beta)
    if beta:
        more = dsl.added(dsl.preferred_clause(request, beta), bonus_on_cosine(request))
        queries = [{"bool": {"must": [query], "should": [more]}} for query in queries]
    return tuple(dsl.documents_body(request, query, request.size) for query in queries)


def dense(request: SearchRequest) -> SearchPlan[RankedHits]:
    """The nearest by cosine, with the language preference."""
    responses = yield dense_bodies(request)
    found = [candidates(response, "dense", request.fields) for response in responses]
    hits, lacks = merged(responses, found, request)
    return _ranked(hits, request)._replace(missing=lacks)


def native_dense(request: SearchRequest) -> SearchPlan[RankedHits]:
    """As ``dense`` for as many documents as are wanted, by the query of our plugin: one search, also of chunks.

    Raises:
        UsageError: the question has no vector.
    """
    beta, clauses = request.preference, request.filters.clauses
    query: dict[str, Any] = {
        "mode": "dense",
        "vector": vector_of(request.question).tolist(),
        "language": request.question.language,
        "prefer_language" if beta > 0 else "spread": abs(beta),
        "k": max(request.size, request.depth),
    }
    if clauses:
        query["filter"] = {"bool": {"filter": list(clauses)}}
    (response,) = yield (dsl.body({NAME: query}, request.size, request.fields, request.source),)
    return _ranked(candidates(response, "dense", request.fields), request)


def _ranked(hits: Sequence[ScoredDoc], request: SearchRequest) -> RankedHits:
    """Hits with what the vectors alone said in their leg; how they ranked all documents nobody asked."""
    if request.preference:
        bonus = bonus_on_cosine(request)
        plain = ((hit.score or 0.0) - bonus * request.prefers(hit.language) for hit in hits)
        hits = [hit._replace(legs={"dense": Leg(one, None)}) for hit, one in zip(hits, plain, strict=True)]
    nearest = max((2 * hit.legs["dense"].score - 1 for hit in hits), default=None)
    return RankedHits(tuple(hits), ScoringContext(request.preference / 2), nearest=nearest)


def balanced(request: SearchRequest) -> SearchPlan[RankedHits]:
    """The best 5 of each language among the 50 nearest, in order of score (LAURA, section 2.1).

    With a language preference the 50 nearest of the favoured documents are looked at, too. A document in chunks has the
    score and the language of its best one, and where it is not among the 50 nearest of all, of its best favoured one.
    """
    responses = yield balanced_bodies(request)
    answered = list(zip(("all", request.favoured or ""), responses, strict=False))
    legs = {("dense", part): candidates(response, "dense", request.fields) for part, response in answered}
    cut = (filled(one, request) for one in responses)
    lacks = missing(zip(legs.values(), cut, strict=True), replace(request, size=POOL))
    return rank_balanced(legs, request)._replace(missing=lacks)


def rank_balanced(legs: Mapping[Part, Sequence[ScoredDoc]], request: SearchRequest) -> RankedHits:
    """What the leg ``dense`` retrieved of each part, ranked as ``balanced`` does."""
    nearest = {part: one_per_document(found) for part, found in legs.items()}
    return rank_dense(leg_pool(nearest, "dense", request.favoured, POOL).candidates, request, OF_EACH_LANGUAGE)


def rank_dense(hits: Iterable[ScoredDoc], request: SearchRequest, of_each: int | None = None) -> RankedHits:
    """What was retrieved by vector, with its leg ``dense``, ranked with the language preference.

    Args:
        hits: what was retrieved.
        request: what is searched for.
        of_each: how many of each language are ranked; None for all.
    """
    bonus = bonus_on_cosine(request)
    ranked = one_per_document(
        best_first(hit._replace(score=hit.legs["dense"].score + bonus * request.prefers(hit.language)) for hit in hits)
    )
    if of_each is not None:
        ranked = best_of_each_language(ranked, of_each)
    return RankedHits(tuple(ranked[: request.size]), ScoringContext(request.preference / 2))


def balanced_bodies(request: SearchRequest) -> tuple[Body, ...]:
    """The bodies of ``balanced``: for the 50 nearest, and with a preference for the 50 nearest of the favoured.

    Raises:
        UsageError: the question has no vector.
    """
    k = LEAST_CANDIDATES if request.fields.parent is None else request.depth
    queries = dsl.nearest_of_each(request, vector_of(request.question), k, request.preference)
    return tuple(dsl.documents_body(request, query, POOL) for query in queries)


def best_of_each_language(hits: Iterable[ScoredDoc], of_each: int = OF_EACH_LANGUAGE) -> list[ScoredDoc]:
    """The first few of each language, in the order that they come in."""
    seen: dict[str, int] = {}
    selected = []
    for hit in hits:
        seen[hit.language] = seen.get(hit.language, 0) + 1
        if seen[hit.language] <= of_each:
            selected.append(hit)
    return selected
