"""The mode ``balanced``: the best 5 of each language among the 50 nearest, in order of score (LAURA, section 2.1).

With a language preference the 50 nearest of the favoured documents are looked at, too. A document in chunks has the
score and the language of its best one, and where it is not among the 50 nearest of all, of its best favoured one.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Final

from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import RankedHits, Retrieved, ScoredDoc, ScoringContext
from langshift.retrieval.modes.dense import ranked, score
from langshift.retrieval.modes.mode import SearchMode
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, SearchRequest

# LAURA, section 2.1: the 50 best, partitioned by language, of each the 5 best.
POOL: Final = 50
OF_EACH_LANGUAGE: Final = 5


def plan(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search for the 50 nearest, and with a preference for the 50 nearest of the favoured.

    Raises:
        UsageError: the question has no vector.
    """
    k = LEAST_CANDIDATES if request.fields.parent is None else request.depth
    responses = yield dsl.nearest_of_each_bodies(request, k, POOL)
    answered = list(zip(("all", request.favoured or ""), responses, strict=False))
    legs = {("dense", part): hits.candidates(response, "dense", request.fields) for part, response in answered}
    cut = (hits.filled(one, request) for one in responses)
    lacks = hits.missing(zip(legs.values(), cut, strict=True), replace(request, size=POOL))
    return rank(legs, request)._replace(missing=lacks)


def rank(legs: Retrieved, request: SearchRequest) -> RankedHits:
    """What was retrieved by vector of each part, ranked."""
    nearest = {part: hits.one_per_document(found) for part, found in legs.items()}
    pool = hits.leg_pool(nearest, "dense", request.favoured, POOL)
    best = best_of_each_language(ranked(pool.candidates, request))[: request.size]
    return RankedHits(tuple(best), ScoringContext(request.preference / 2))


def best_of_each_language(found: Iterable[ScoredDoc], of_each: int = OF_EACH_LANGUAGE) -> list[ScoredDoc]:
    """The first few of each language, in the order that they come in."""
    # Language -> the places of its documents, from 0.
    places = defaultdict[str, "count[int]"](count)
    return [hit for hit in found if next(places[hit.language]) < of_each]


MODE = SearchMode(plan, score, rank=rank, by_cosine=True, by_vector=True, few=True)
