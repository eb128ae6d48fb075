"""What legs retrieve each for themselves, put together here: of ``hybrid``, and of one leg with a preference.

``score = s + bonus · [favoured]``, with ``s`` the mode's own score without a preference. Where several legs are put
together, that is 0 for what only the search among the favoured documents retrieved. Vectors are asked for in any case:
in modes of one leg they give the bonus its scale.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import Pool, RankedHits, Retrieved, ScoredDoc, ScoringContext
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, SearchRequest

#: Leg -> the lowest and the highest score that it retrieved.
Ranges = Mapping[str, tuple[float, float]]

# How many of the best a mode's scores are compared with cosines over.
_SCALED_OVER: Final = 100


class Legs(NamedTuple):
    """How a mode puts legs together.

    Attributes:
        names: those that count, ``dense`` first where it does.
        score: the mode's score of an entry before any bonus, by what these say of it.
        shards: how many shards retrieve as many each; 1 where they retrieve as many together.
        by_run: whether only the run can tell what the legs retrieved: by ranks, or where each shard retrieved for
            itself.
    """

    names: Sequence[str]
    score: Callable[[ScoredDoc, Ranges], float]
    shards: int = 1
    by_run: bool = False


#: A request -> how its mode puts legs together.
LegsOf = Callable[[SearchRequest], Legs]


def plan(request: SearchRequest, legs: Legs) -> SearchPlan[RankedHits]:
    """Search by all legs, in one step, and in another one for the fields that are wanted.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    bodies = dsl.bodies_of_legs(request, legs.names, legs.shards)
    answered = zip(bodies, (yield tuple(bodies.values())), strict=True)
    retrieved = {(leg, part): hits.candidates(response, leg, request.fields) for (leg, part), response in answered}
    pools = {leg: hits.leg_pool(retrieved, leg, request.favoured) for leg, _ in retrieved}
    ranked, how = fuse(pools, request, legs)
    found = hits.best_hits(ranked, request)
    lacks, scores = 0.0, dict[str, float]()
    if request.fields.parent is not None:
        lacks = _missing(retrieved, request, legs)
        scores = {one.id: one.score or 0.0 for one in ranked}
    if request.source and found:
        (response,) = yield (dsl.named([hit.id for hit in found], request.fields, request.source),)
        sources = hits.sources([response])
        found = [hit._replace(source=sources.get(hit.id, {})) for hit in found]
    return RankedHits(tuple(found), how, missing=lacks, retrieved=scores)


def _missing(retrieved: Retrieved, request: SearchRequest, legs: Legs) -> float:
    """How many documents were wanted for each that was found, see ``hits.missing``.

    All parts together are to find as many, and those that the preference favours, so that whatever the bonus is worth
    the best are among them.
    """
    counting = [(part, found) for (leg, part), found in retrieved.items() if leg in legs.names]
    searches = []
    for favoured in (False, True):
        parts = [found for part, found in counting if favoured == (part == request.favoured)]
        searches.append((list(chain(*parts)), any(len(found) >= request.depth for found in parts)))
    return hits.missing(searches, request)


def fuse(pools: Mapping[str, Pool], request: SearchRequest, legs: Legs) -> tuple[list[ScoredDoc], ScoringContext]:
    """What of ``plan`` needs no cluster: all entries, best first, and how they were scored.

    Args:
        pools: leg -> what it retrieved, of ``dense`` and those of the mode.
        request: what is searched for; each leg was asked for ``depth`` documents.
        legs: how they are put together.
    """
    ranges = {leg: (min(found), max(found)) for leg, one in pools.items() if (found := one.scores)}
    counting, retrieved = [pools[leg] for leg in legs.names], hits.union(one.candidates for one in pools.values())
    every = hits.union(one.candidates for one in counting)
    unfavoured = hits.union(one.candidates[: one.unfavoured] for one in counting)
    counted = unfavoured if len(counting) > 1 else every
    own = dict.fromkeys(every, 0.0) | {name: legs.score(one, ranges) for name, one in counted.items()}
    scale = sorted((own[name] for name in unfavoured), reverse=True)
    given = bonus(request.preference, scale, pools["dense"].scores)
    scored = (retrieved[name]._replace(score=score) for name, score in own.items())
    ranked = sorted(hits.with_bonus(scored, given, request), key=hits.by_score)
    documents = hits.one_per_document(ranked) if legs.by_run else ()
    run_scores = {one.document: one.score or 0.0 for one in documents}
    signed = math.copysign(given, request.preference)
    return ranked, ScoringContext(signed, ranges, run_scores=run_scores, depth=request.depth)


def rank(legs_of: LegsOf, retrieved: Retrieved, request: SearchRequest) -> RankedHits:
    """The hits out of what legs retrieved for ``depth`` documents each, or as many of every shard."""
    legs = legs_of(request)
    depth, names = request.depth * legs.shards, dict.fromkeys(("dense", *legs.names))
    pools = {leg: hits.leg_pool(retrieved, leg, request.favoured, depth) for leg in names}
    ranked, how = fuse(pools, request, legs)
    return RankedHits(tuple(hits.one_per_document(ranked)[: request.size]), how)


def bonus(preference: float, own: Sequence[float], dense: Sequence[float]) -> float:
    """What favoured documents are given in a mode whose scores are no cosines.

    ``|beta| · (max s - min s) / (max cos - min cos)``, with ``s`` the mode's own scores, over the best 100 of each:
    as much of the scores' range as ``beta`` is of the cosines'. 0 where all of one are equal.

    Args:
        preference: beta, in units of cosine.
        own: the mode's own scores, best first.
        dense: scores ``(1 + cos) / 2`` of the vectors' search, best first.
    """
    own, dense = own[:_SCALED_OVER], dense[:_SCALED_OVER]
    if not own or not dense or dense[0] == dense[-1]:
        return 0.0
    return abs(preference) * (own[0] - own[-1]) / (2 * (dense[0] - dense[-1]))


def known(legs_of: LegsOf, request: SearchRequest, how: ScoringContext) -> SearchPlan[ScoringContext]:
    """How scores were put together; the legs are asked for that where the cluster's plugin does not tell."""
    legs = legs_of(request)
    # One leg alone has its own scores.
    if how.ranges or how.run_scores or (len(legs.names) == 1 and not request.preference):
        return how
    legs_only = replace(request, size=0, depth=how.depth or LEAST_CANDIDATES, source=False)
    return (yield from plan(legs_only, legs)).how


def score(
    legs_of: LegsOf, request: SearchRequest, found: RankedHits, clauses: dsl.Clauses, size: int
) -> SearchPlan[list[ScoredDoc]]:
    """What matches all clauses and the filters, with what all legs together give it."""
    legs, fields, how = legs_of(request), request.fields, found.how
    bodies = {
        leg: dsl.body(dsl.leg_query(leg, request, *clauses), size, fields, source=False)
        for leg in legs.names
        if leg != "dense"
    }
    if "dense" in legs.names:
        among = [*clauses, *request.filters.clauses]
        bodies["dense"] = dsl.exact(dsl.vector_of(request.question), among, size, fields)
    answered = zip(bodies, (yield tuple(bodies.values())), strict=True)
    union = hits.union(hits.candidates(response, leg, fields) for leg, response in answered).values()
    # Where only the run can tell, it gives what it did not retrieve nothing, but the bonus.
    plain = [one._replace(score=0.0 if legs.by_run else legs.score(one, how.ranges)) for one in union]
    scored = hits.with_bonus(plain, abs(how.bonus), request)
    return [one._replace(score=found.retrieved.get(one.id, one.score)) for one in scored] if legs.by_run else scored
