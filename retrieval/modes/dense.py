"""The mode ``dense``: the nearest by cosine, with the language preference.

The score of a hit is ``(1 + cos(q, z̃) + |beta| · [favoured]) / 2``; those in the searcher's language ``l`` are
favoured, or with ``beta`` below 0 those in every other. The best ``n`` by this score are among the ``n`` nearest of all
and the ``n`` nearest of the favoured, whose union is asked for; in an index of chunks each for itself.
"""

from collections.abc import Sequence
from typing import Any

from langshift.plugin.native_nodes import NAME
from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import Leg, RankedHits, Retrieved, ScoredDoc, ScoringContext
from langshift.retrieval.modes.mode import SearchMode
from langshift.retrieval.plans import Body, SearchPlan
from langshift.retrieval.question import SearchRequest


def plan(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search, with a preference by the query of our plugin where the cluster has it.

    Hits have what the vectors alone said in their leg; how they ranked all documents nobody asked.

    Raises:
        UsageError: the question has no vector.
    """
    how = ScoringContext(request.preference / 2)
    if _by_plugin(request):
        (response,) = yield (native_body(request),)
        found, lacks = hits.candidates(response, "dense", request.fields), 0.0
    else:
        responses = yield dsl.nearest_bodies(request, how, max(request.size, request.depth))
        found, lacks = hits.merged(responses, request, "dense")
    if how.bonus:
        plain = hits.with_bonus(found, -abs(how.bonus), request)
        found = [
            hit._replace(legs={"dense": Leg(one.score or 0.0, None)}) for hit, one in zip(found, plain, strict=True)
        ]
    nearest = max((2 * hit.legs["dense"].score - 1 for hit in found), default=None)
    return RankedHits(tuple(found), how, missing=lacks, nearest=nearest)


def _by_plugin(request: SearchRequest) -> bool:
    return request.target.native and bool(request.preference)


def native_body(request: SearchRequest) -> Body:
    """The body for as many documents as are wanted, by the query of our plugin: one search, also of chunks.

    Raises:
        UsageError: the question has no vector.
    """
    beta, clauses = request.preference, request.filters.clauses
    query: dict[str, Any] = {
        "mode": "dense",
        "vector": dsl.vector_of(request.question).tolist(),
        "language": request.question.language,
        "prefer_language" if beta > 0 else "spread": abs(beta),
        "k": max(request.size, request.depth),
    }
    if clauses:
        query["filter"] = {"bool": {"filter": list(clauses)}}
    return dsl.body({NAME: query}, request.size, request.fields, request.source)


def score(request: SearchRequest, _found: RankedHits, clauses: dsl.Clauses, size: int) -> SearchPlan[list[ScoredDoc]]:
    """What matches all clauses and the filters, scored exactly, by a script; not what has no vector."""
    among = [*clauses, *request.filters.clauses]
    (response,) = yield (dsl.exact(dsl.vector_of(request.question), among, size, request.fields),)
    return hits.with_bonus(hits.candidates(response, "dense", request.fields), abs(request.preference) / 2, request)


def rank(legs: Retrieved, request: SearchRequest) -> RankedHits:
    """What was retrieved by vector, ranked with the language preference."""
    found = ranked(hits.leg_pool(legs, "dense", request.favoured).candidates, request)
    return RankedHits(tuple(found[: request.size]), ScoringContext(request.preference / 2))


def ranked(found: Sequence[ScoredDoc], request: SearchRequest) -> list[ScoredDoc]:
    """Entries found by vector, in the order that a preference gives them, of each document the first."""
    return hits.one_per_document(hits.best_first(hits.with_bonus(found, abs(request.preference) / 2, request)))


MODE = SearchMode(plan, score, rank=rank, by_cosine=True, by_vector=True, by_nearness=True, by_plugin=_by_plugin)
