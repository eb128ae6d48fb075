"""Modes that ask for words or for tokens of a learned sparse encoder: ``lexical``, ``sparse``, and ``hybrid``."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import best_hits, missing
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.settings import SearchRequest, vector_of, weights_of
from langshift.retrieval.steps import Body, SearchPlan, ShardBody

RANK_CONSTANT: Final = 60
# What neural-search gives the lowest score of a leg, so that it is more than what the leg did not retrieve.
LOWEST: Final = 0.001
# Scores of one document by the graph and by a script are this near, relative to 1.
_NEAR: Final = 5e-7

#: The lowest and the highest score that a leg retrieved.
Range = tuple[float, float]


#: Part of the documents -> the clause that they match.
Parts = Mapping[str, Mapping[str, Any]]


def hybrid_body(request: SearchRequest) -> Body:
    """The body of ``hybrid``, in which the cluster's neural-search plugin puts vectors, words and tokens together.

    The score of a hit is that of ``min_max`` or ``rrf`` over its legs. Every shard brings ``depth`` documents of
    each leg, and scores are normalised over these, so that goes apart from ``size``. The pipeline that does it is in
    the request: nothing is installed in the cluster.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    nearest = dsl.knn(vector_of(request.question), request.depth, request.filters.clauses, request.fields)
    others = [leg_query(leg, request) for leg in legs_of(request)[1:]]
    query = {"hybrid": {"queries": [nearest, *others], "pagination_depth": request.depth}}
    body = dsl.body(query, request.size, request.fields, request.source)
    return body | {"search_pipeline": _pipeline(request)}


def _pipeline(request: SearchRequest) -> dict[str, Any]:
    parameters = {"weights": list(shares(request).values())}
    if request.setting.fusion == "rrf":
        combination = {"technique": "rrf", "rank_constant": RANK_CONSTANT, "parameters": parameters}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": parameters},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def words_query(request: SearchRequest, *clauses: Mapping[str, Any]) -> dict[str, Any]:
    """The query for a question's words among the documents that match the filters and the clauses.

    Raises:
        UsageError: the question has too many words for the server.
    """
    question, among = request.question, [*request.filters.clauses, *clauses]
    return dsl.matching(question.words, question.language, request.target.index.languages, among, request.fields)


# A clause of the server's can weigh as much: more is refused.
_HEAVIEST: Final = 64.0


def tokens_query(request: SearchRequest, *clauses: Mapping[str, Any]) -> dict[str, Any]:
    """The query for a question's tokens among the documents that match the filters and the clauses.

    The score of a hit is ``Σ_t q_t · d_t`` over the tokens that both have; the server keeps ``d_t`` within 1/256 of
    itself. Where a ``q_t`` is above 64, all are made smaller in proportion, which leaves the order as it is.

    Raises:
        UsageError: the question has no weights.
    """
    weights = weights_of(request.question)
    scale = min(1.0, _HEAVIEST / max(weights.values()))
    asked = {token: weight * scale for token, weight in weights.items()}
    match = {"neural_sparse": {request.fields.sparse: {"query_tokens": asked}}}
    return {"bool": {"must": [match], "filter": [*request.filters.clauses, *clauses]}}


#: Leg -> its query, of a request and more clauses that documents must match; not that of vectors.
_QUERIES: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {"lexical": words_query, "sparse": tokens_query}


def leg_query(leg: str, request: SearchRequest, *clauses: Mapping[str, Any]) -> dict[str, Any]:
    """The query of the leg ``lexical`` or ``sparse``, see ``words_query`` and ``tokens_query``."""
    return _QUERIES[leg](request, *clauses)


def legs_of(request: SearchRequest) -> list[str]:
    """The legs of a mode of words or tokens: in ``hybrid`` vectors first, and tokens where they weigh anything."""
    return list(shares(request)) if request.setting.mode == "hybrid" else [request.setting.mode]


def shares(request: SearchRequest) -> dict[str, float]:
    """Leg of ``hybrid`` -> its share; a question in which there are no tokens is asked as if these weighed nothing."""
    return weights(request.setting.but(sparse_weight=0.0) if request.question.weights == {} else request.setting)


def weights(setting: SearchSettings) -> dict[str, float]:
    """Leg of ``hybrid`` -> its share."""
    words, tokens = setting.lexical_weight, setting.sparse_weight
    both = {"dense": max(0.0, 1 - words - tokens), "lexical": words}
    return both | ({"sparse": tokens} if tokens else {})


def normalised(score: float, lowest: float, highest: float) -> float:
    """A leg's score as neural-search's ``min_max`` normalises it: ``(s - min) / (max - min)``.

    The lowest is given .001; where all are equal each is given 1; what is below the lowest, and was not retrieved
    for that, 0.
    """
    margin = _NEAR * max(1.0, abs(lowest))
    if score < lowest - margin:
        return 0.0
    if lowest == highest:
        return 1.0
    return LOWEST if score <= lowest + margin else (score - lowest) / (highest - lowest)


def min_max(legs: Mapping[str, float], ranges: Mapping[str, Range], weighed: Mapping[str, float]) -> float:
    """``Σ w_leg · (s_leg - min_leg) / (max_leg - min_leg)``; a leg that has no score for the document adds 0.

    Args:
        legs: leg -> the document's score.
        ranges: leg -> lowest and highest score that it retrieved.
        weighed: leg -> its weight; together 1.
    """
    return sum(weighed[leg] * normalised(score, *ranges[leg]) for leg, score in legs.items() if leg in ranges)


def rrf(ranks: Mapping[str, int], weighed: Mapping[str, float]) -> float:
    """Reciprocal rank fusion: ``Σ w_leg / (60 + rank_leg)``, over the legs that retrieved the document.

    Args:
        ranks: leg -> the document's rank, counted from 1.
        weighed: leg -> its weight; together 1.
    """
    return sum(weighed[leg] / (RANK_CONSTANT + rank) for leg, rank in ranks.items())


def of_shards(request: SearchRequest) -> bool:
    """Whether every shard retrieves as many, as with neural-search."""
    return request.setting.mode == "hybrid" and request.target.index.shards > 1


def leg_bodies(request: SearchRequest) -> dict[hits.Part, Body]:
    """The bodies of the one step of ``hybrid``, and of words or tokens with a preference, where langshift does the sum.

    ``hybrid`` takes as many of every shard, as neural-search does: in an index of several, words and tokens have a body
    a shard. Hits bring no fields, or the group where one of each is wanted.

    Returns:
        (Leg, part) -> body; legs are ``dense`` and those of the mode, parts ``all`` or ``shard N``, and with a
        preference the one that it favours, ``own`` or ``others``.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    bare = replace(request, source=[request.fields.group] if request.setting.one_per_group else False)
    shards = request.target.index.shards if of_shards(request) else 1
    parts: Parts = {}
    if request.favoured:
        parts = {request.favoured: dsl.preferred_clause(request, request.preference)}
    bodies = nearest_bodies(bare, parts if request.setting.mode == "hybrid" else {}, shards)
    for leg in legs_of(request):
        if leg != "dense":
            bodies |= query_bodies(leg, bare, parts, shards)
    return bodies


def nearest_bodies(request: SearchRequest, parts: Parts, shards: int) -> dict[hits.Part, Body]:
    """The bodies of the leg ``dense``, of ``all`` and of the parts, for ``depth`` documents each.

    Args:
        request: whose setting and size have no part in it.
        parts: what is asked for beside all.
        shards: how many shards bring as many each of ``all``; 1 where they bring as many together.

    Raises:
        UsageError: the question has no vector.
    """
    fields, clauses, vector = request.fields, request.filters.clauses, vector_of(request.question)
    depth, source = request.depth, request.source
    whole = dsl.body(dsl.knn(vector, depth, clauses, fields), min(depth * shards, dsl.MOST), fields, source)
    bodies: dict[hits.Part, Body] = {("dense", "all"): whole}
    for part, clause in parts.items():
        bodies["dense", part] = dsl.body(dsl.knn(vector, depth, [*clauses, clause], fields), depth, fields, source)
    return bodies


def query_bodies(leg: str, request: SearchRequest, parts: Parts, shards: int) -> dict[hits.Part, Body]:
    """The bodies of the leg ``lexical`` or ``sparse``, of ``all`` or of each ``shard N``, and of the parts.

    All else is as in ``nearest_bodies``.

    Raises:
        UsageError: the question has no weights, or too many words for the server.
    """
    whole = dsl.body(leg_query(leg, request), request.depth, request.fields, request.source)
    bodies: dict[hits.Part, Body] = {(leg, "all"): whole}
    if shards > 1:
        bodies = {(leg, f"shard {shard}"): ShardBody(whole, shard) for shard in range(shards)}
    for part, clause in parts.items():
        query = leg_query(leg, request, clause)
        bodies[leg, part] = dsl.body(query, request.depth, request.fields, request.source)
    return bodies


def by_one_leg(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Words by BM25 or tokens by their weights, with the language preference.

    Raises:
        UsageError: the question has no weights, or too many words for the server.
    """
    if request.preference:
        return (yield from fused_search(request))
    leg = request.setting.mode
    body = dsl.documents_body(request, leg_query(leg, request), request.size)
    if request.sort:
        # Of chunks of one document, which are alike in the field, the best by words comes first.
        body |= {"sort": [*request.sort, "_score"], "track_scores": True}
    (response,) = yield (body,)
    found = hits.candidates(response, leg, request.fields)
    lacks = missing([(found, len(found) >= body["size"])], request)
    return hits.RankedHits(tuple(best_hits(found, request)), missing=lacks)


def hybrid_search(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Vectors, words and tokens, by the cluster's plugin where it can; it cannot find documents by their chunks."""
    if request.preference or not request.target.fuses or request.fields.parent is not None:
        return (yield from fused_search(request))
    (response,) = yield (hybrid_body(request),)
    return hits.RankedHits(tuple(hits.without_legs(response, request.fields)), hits.ScoringContext(depth=request.depth))


def fused_search(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """All legs put together here, with the language preference; in modes of one leg vectors give its scale.

    ``score = s + bonus · [favoured]``, with ``s`` the mode's own score without a preference; in ``hybrid`` that is 0
    for what only the search among the favoured documents retrieved.
    """
    bodies = leg_bodies(request)
    answered = zip(bodies, (yield tuple(bodies.values())), strict=True)
    legs = {(leg, part): hits.candidates(response, leg, request.fields) for (leg, part), response in answered}
    ranked, how = fuse({leg: hits.leg_pool(legs, leg, request.favoured) for leg, _ in legs}, request)
    found = best_hits(ranked, request)
    lacks, retrieved = 0.0, dict[str, float]()
    if request.fields.parent is not None:
        lacks = _missing(legs, request)
        retrieved = {one.id: one.score or 0.0 for one in ranked}
    if request.source and found:
        (response,) = yield (dsl.named([hit.id for hit in found], request.fields, request.source),)
        sources = hits.sources([response])
        found = [hit._replace(source=sources.get(hit.id, {})) for hit in found]
    return hits.RankedHits(tuple(found), how, missing=lacks, retrieved=retrieved)


def _missing(legs: Mapping[hits.Part, Sequence[hits.ScoredDoc]], request: SearchRequest) -> float:
    """How many documents were wanted for each that was found, see ``dense.missing``.

    All parts together are to find as many, and those that the preference favours, so that whatever the bonus is worth
    the best are among them.
    """
    needed = legs_of(request)
    searches = []
    for favoured in (False, True):
        parts = [
            found for (leg, part), found in legs.items() if leg in needed and favoured == (part == request.favoured)
        ]
        searches.append((list(chain(*parts)), any(len(found) >= request.depth for found in parts)))
    return missing(searches, request)


def fuse(pools: Mapping[str, hits.Pool], request: SearchRequest) -> tuple[list[hits.ScoredDoc], hits.ScoringContext]:
    """The one step of ``fused_search`` that needs no cluster: all entries, best first, and how they were scored.

    Args:
        pools: leg -> what it retrieved, of ``dense`` and those of the mode.
        request: what is searched for; each leg was asked for ``depth`` documents.
    """
    setting, beta = request.setting, request.preference
    ranges = {leg: (min(found), max(found)) for leg, one in pools.items() if (found := one.scores)}
    retrieved = hits.union(one.candidates for one in pools.values())
    if setting.mode == "hybrid":
        plain = hits.union(one.candidates[: one.unfavoured] for one in pools.values())
        own = dict.fromkeys(retrieved, 0.0) | {name: base_score(one, request, ranges) for name, one in plain.items()}
        scale = sorted((own[name] for name in plain), reverse=True)
    else:
        own = {one.id: base_score(one, request, ranges) for one in pools[setting.mode].candidates}
        scale = pools[setting.mode].scores
    given = dsl.bonus(beta, scale, pools["dense"].scores)
    ranked = [
        retrieved[name]._replace(score=score + given * request.prefers(retrieved[name].language))
        for name, score in own.items()
    ]
    ranked.sort(key=by_score)
    documents = hits.one_per_document(ranked) if needs_run_scores(request) else ()
    run_scores = {one.document: one.score or 0.0 for one in documents}
    return ranked, hits.ScoringContext(math.copysign(given, beta), ranges, run_scores=run_scores, depth=request.depth)


def by_score(one: hits.ScoredDoc) -> tuple[float, float]:
    """What entries are sorted by: the score, and of equal ones how near they are."""
    return -(one.score or 0.0), -one.legs["dense"].score if "dense" in one.legs else 0.0


def needs_run_scores(request: SearchRequest) -> bool:
    """Whether only the run can tell what the legs retrieved: by ranks, or where each shard retrieved for itself."""
    return _by_ranks(request.setting) or of_shards(request)


def _by_ranks(setting: SearchSettings) -> bool:
    return setting.mode == "hybrid" and setting.fusion == "rrf"


def base_score(candidate: hits.ScoredDoc, request: SearchRequest, ranges: Mapping[str, Range]) -> float:
    """The mode's score of a document before any bonus, from its legs."""
    setting, legs = request.setting, candidate.legs
    if setting.mode != "hybrid":
        return legs[setting.mode].score
    if _by_ranks(setting):
        return rrf({leg: said.rank for leg, said in legs.items() if said.rank is not None}, shares(request))
    return min_max({leg: said.score for leg, said in legs.items()}, ranges, shares(request))
