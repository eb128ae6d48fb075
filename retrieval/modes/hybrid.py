"""The mode ``hybrid``: vectors, words and tokens of a learned sparse encoder, put together by scores or by ranks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import RankedHits, ScoredDoc, ScoringContext
from langshift.retrieval.modes import legs
from langshift.retrieval.modes.legs import Legs, Ranges
from langshift.retrieval.modes.mode import SearchMode
from langshift.retrieval.plans import Body, SearchPlan
from langshift.retrieval.question import SearchRequest
from langshift.retrieval.request import Fusion, SearchSettings

RANK_CONSTANT: Final = 60
# What neural-search gives the lowest score of a leg, so that it is more than what the leg did not retrieve.
LOWEST: Final = 0.001
# Scores of one document by the graph and by a script are this near, relative to 1.
_NEAR: Final = 5e-7


def plan(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search, by the cluster's own plugin where it can; that cannot find documents by their chunks.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    if request.preference or not request.target.fuses or request.fields.parent is not None:
        return (yield from legs.plan(request, legs_of(request)))
    (response,) = yield (hybrid_body(request),)
    return RankedHits(tuple(hits.without_legs(response, request.fields)), ScoringContext(depth=request.depth))


def hybrid_body(request: SearchRequest) -> Body:
    """The body of ``hybrid``, in which the cluster's neural-search plugin puts vectors, words and tokens together.

    The score of a hit is that of ``min_max`` or ``rrf`` over its legs. Every shard brings ``depth`` documents of
    each leg, and scores are normalised over these, so that goes apart from ``size``. The pipeline that does it is in
    the request: nothing is installed in the cluster.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    weighed = shares(request)
    queries = [dsl.leg_query(leg, request) for leg in weighed]
    query = {"hybrid": {"queries": queries, "pagination_depth": request.depth}}
    body = dsl.body(query, request.size, request.fields, request.source)
    return body | {"search_pipeline": _pipeline(request.setting.fusion, list(weighed.values()))}


def _pipeline(fusion: Fusion, weighed: Sequence[float]) -> dict[str, Any]:
    parameters = {"weights": weighed}
    if fusion == "rrf":
        combination = {"technique": "rrf", "rank_constant": RANK_CONSTANT, "parameters": parameters}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": parameters},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def legs_of(request: SearchRequest) -> Legs:
    """How the legs are put together; every shard retrieves as many, as with neural-search."""
    weighed, shards, by_ranks = shares(request), request.target.index.shards, request.setting.fusion == "rrf"

    def score_of(one: ScoredDoc, ranges: Ranges) -> float:
        if by_ranks:
            return rrf({leg: said.rank for leg, said in one.legs.items() if said.rank is not None}, weighed)
        return min_max({leg: said.score for leg, said in one.legs.items()}, ranges, weighed)

    return Legs(list(weighed), score_of, shards, by_ranks or shards > 1)


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


def min_max(legs: Mapping[str, float], ranges: Ranges, weighed: Mapping[str, float]) -> float:
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


#: See ``legs.score``.
score = partial(legs.score, legs_of)
MODE = SearchMode(plan, score, partial(legs.known, legs_of), partial(legs.rank, legs_of), shares, wide=True)
