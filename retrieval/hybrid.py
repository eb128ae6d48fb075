"""Modes that ask for words: ``lexical``, and ``hybrid`` beside vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.metadata import USUAL, FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.dense import vector_of
from langshift.retrieval.dsl import (
    Source,
    body,
    bonus,
    filter_clauses,
    is_preferred,
    knn,
    matching,
    preference_of,
    preferred_clause,
)
from langshift.retrieval.hits import (
    Pool,
    RankedHits,
    ScoredDoc,
    ScoringContext,
    candidates,
    pool,
    union,
    with_sources,
    without_legs,
)
from langshift.retrieval.settings import NO_FILTERS, Filters, Fusion, SearchContext, SearchQuery, SearchSettings
from langshift.retrieval.steps import Body, Response, SearchPlan, ShardBody

RANK_CONSTANT: Final = 60
# What neural-search gives the lowest score of a leg, so that it is more than what the leg did not retrieve.
LOWEST: Final = 0.001
# Scores of one document by the graph and by a script are this near, relative to 1.
_NEAR: Final = 5e-7

Range = tuple[float, float]
"""The lowest and the highest score that a leg retrieved."""


def hybrid(
    vector: NDArray[np.float32],
    words: str,
    language: str,
    others: Sequence[str] = (),
    *,
    size: int,
    depth: int,
    fusion: Fusion = "min-max",
    lexical_weight: float = 0.3,
    filters: Filters = NO_FILTERS,
    fields: FieldNames = USUAL,
    source: Source = True,
) -> dict[str, Any]:
    """A search by vector and by words, put together by the cluster's neural-search plugin.

    The score of a hit is that of ``min_max`` or ``rrf`` over its two legs. The pipeline that does it is in the
    request: nothing is installed in the cluster.

    Args:
        vector: query vector, shape (dimension,), float32.
        words: the query.
        language: primary language tag of the query, or ``und``.
        others: the other languages of the index, most frequent first.
        size: how many hits.
        depth: how many of each leg every shard brings; scores are normalised over these, so it does not
            go with ``size``.
        fusion: how the legs are put together.
        lexical_weight: the share of the words, 0 to 1.
        filters: field -> values, any of which a hit must have.
        fields: the index's names of fields.
        source: what hits bring.

    Raises:
        UsageError: the query has too many words for the server.
    """
    clauses = filter_clauses(filters)
    legs = [knn(vector, depth, clauses, fields), matching(words, language, others, clauses, fields)]
    query = {"hybrid": {"queries": legs, "pagination_depth": depth}}
    return body(query, size, fields, source) | {"search_pipeline": _pipeline(fusion, lexical_weight)}


def _pipeline(fusion: Fusion, lexical_weight: float) -> dict[str, Any]:
    weights = {"weights": [1 - lexical_weight, lexical_weight]}
    if fusion == "rrf":
        combination = {"technique": "rrf", "rank_constant": RANK_CONSTANT, "parameters": weights}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": weights},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def weights(setting: SearchSettings) -> dict[str, float]:
    """Leg -> its share."""
    return {"dense": 1 - setting.lexical_weight, "lexical": setting.lexical_weight}


def range_of(scores: Iterable[float]) -> Range | None:
    """The lowest and the highest score; None where there is none."""
    found = sorted(scores)
    return (found[0], found[-1]) if found else None


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


def min_max(legs: Mapping[str, float], ranges: Mapping[str, Range], shares: Mapping[str, float]) -> float:
    """``Σ w_leg · (s_leg - min_leg) / (max_leg - min_leg)``; a leg that has no score for the document adds 0.

    Args:
        legs: leg -> the document's score.
        ranges: leg -> lowest and highest score that it retrieved.
        shares: leg -> its weight; together 1.
    """
    return sum(shares[leg] * normalised(score, *ranges[leg]) for leg, score in legs.items() if leg in ranges)


def rrf(ranks: Mapping[str, int], shares: Mapping[str, float]) -> float:
    """Reciprocal rank fusion: ``Σ w_leg / (60 + rank_leg)``, over the legs that retrieved the document.

    Args:
        ranks: leg -> the document's rank, counted from 1.
        shares: leg -> its weight; together 1.
    """
    return sum(shares[leg] / (RANK_CONSTANT + rank) for leg, rank in ranks.items())


def of_shards(setting: SearchSettings, target: SearchContext) -> bool:
    """Whether every shard retrieves as many, as with neural-search."""
    return setting.mode == "hybrid" and target.index.shards > 1


def leg_bodies(
    question: SearchQuery, setting: SearchSettings, target: SearchContext, depth: int, filters: Filters = NO_FILTERS
) -> dict[tuple[str, str], Body]:
    """The bodies of the one step of ``hybrid``, and of ``lexical`` with a preference, where langshift does the sum.

    ``hybrid`` takes as many of every shard, as neural-search does: in an index of several, words have a body a shard.

    Args:
        question: what is asked, with its vector.
        setting: how to search.
        target: what is searched.
        depth: how many of each leg.
        filters: field -> values, any of which a hit must have.

    Returns:
        (Leg, part) -> body; legs are ``dense`` and ``lexical``, parts ``all`` or ``shard N``, and ``favoured``.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    beta, shards = preference_of(question, setting), target.index.shards if of_shards(setting, target) else 1
    parts = {"favoured": preferred_clause(question.language, beta, target.index.fields)} if beta else {}
    near = parts if setting.mode == "hybrid" else {}
    nearest = nearest_bodies(question, target, depth, near, filters=filters, shards=shards)
    words = word_bodies(question, target, depth, parts, filters=filters, shards=shards)
    return {
        **{("dense", part): leg_body for part, leg_body in nearest.items()},
        **{("lexical", part): leg_body for part, leg_body in words.items()},
    }


def nearest_bodies(
    question: SearchQuery,
    target: SearchContext,
    depth: int,
    parts: Mapping[str, Mapping[str, Any]],
    *,
    filters: Filters = NO_FILTERS,
    shards: int = 1,
    source: Source = False,
) -> dict[str, Body]:
    """The bodies of the leg ``dense``: part -> body, of ``all`` and of the parts.

    Args:
        question: what is asked, with its vector.
        target: what is searched.
        depth: how many; of ``all`` as many of every shard.
        parts: part -> the clause that its documents match.
        filters: field -> values, any of which a hit must have.
        shards: how many shards bring as many each; 1 where they bring as many together.
        source: what hits bring.

    Raises:
        UsageError: the question has no vector.
    """
    fields, clauses, vector = target.index.fields, dsl.filter_clauses(filters), vector_of(question)
    wide = min(depth * shards, dsl.MOST)
    bodies = {"all": dsl.body(dsl.knn(vector, depth, clauses, fields), wide, fields, source)}
    for part, clause in parts.items():
        bodies[part] = dsl.body(dsl.knn(vector, depth, [*clauses, clause], fields), depth, fields, source)
    return bodies


def word_bodies(
    question: SearchQuery,
    target: SearchContext,
    depth: int,
    parts: Mapping[str, Mapping[str, Any]],
    *,
    filters: Filters = NO_FILTERS,
    shards: int = 1,
    source: Source = False,
) -> dict[str, Body]:
    """The bodies of the leg ``lexical``: part -> body, of ``all`` or of each ``shard N``, and of the parts.

    All else is as in ``nearest_bodies``.

    Raises:
        UsageError: the question has too many words for the server.
    """
    fields, clauses = target.index.fields, dsl.filter_clauses(filters)

    def words(*more: Mapping[str, Any]) -> Body:
        query = dsl.matching(question.words, question.language, target.index.languages, [*clauses, *more], fields)
        return dsl.body(query, depth, fields, source)

    bodies = (
        {f"shard {shard}": ShardBody(words(), shard) for shard in range(shards)} if shards > 1 else {"all": words()}
    )
    return {**bodies, **{part: words(clause) for part, clause in parts.items()}}


def lexical(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """BM25, with the language preference."""
    if preference_of(question, setting):
        depth = max(size, dsl.LEAST_CANDIDATES)
        return (
            yield from fused_search(question, setting, target, size=size, depth=depth, filters=filters, source=source)
        )
    fields = target.index.fields
    body = dsl.lexical(
        question.words,
        question.language,
        target.index.languages,
        size=size,
        filters=filters,
        fields=fields,
        source=source,
    )
    (response,) = yield (body,)
    return RankedHits(tuple(candidates(response, "lexical", fields)), ScoringContext())


def hybrid_search(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    depth: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """Vectors and words, by the cluster's plugin where it can."""
    if preference_of(question, setting) or not target.fuses:
        return (
            yield from fused_search(question, setting, target, size=size, depth=depth, filters=filters, source=source)
        )
    fields = target.index.fields
    body = hybrid(
        vector_of(question),
        question.words,
        question.language,
        target.index.languages,
        size=size,
        depth=depth,
        fusion=setting.fusion,
        lexical_weight=setting.lexical_weight,
        filters=filters,
        fields=fields,
        source=source,
    )
    (response,) = yield (body,)
    return RankedHits(tuple(without_legs(response, fields)), ScoringContext(depth=depth))


def fused_search(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    depth: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """Vectors and words put together here, with the language preference; in lexical mode vectors give its scale.

    ``score = s + bonus · [favoured]``, with ``s`` the mode's own score without a preference; in ``hybrid`` that is 0
    for what only the search among the favoured documents retrieved.
    """
    bodies = leg_bodies(question, setting, target, depth, filters)
    responses = yield tuple(bodies.values())
    hits, how = fuse(_pools(dict(zip(bodies, responses, strict=True)), target), question, setting, target, depth=depth)
    return RankedHits((yield from with_sources(hits[:size], target, source)), how)


def fuse(
    pools: Mapping[str, Pool], question: SearchQuery, setting: SearchSettings, target: SearchContext, *, depth: int
) -> tuple[list[ScoredDoc], ScoringContext]:
    """The one step of ``fused`` that needs no cluster: all hits, best first, and how they were scored.

    Args:
        pools: leg -> what it retrieved, of ``dense`` and ``lexical``.
        question: what is asked.
        setting: how it is searched.
        target: what is searched.
        depth: how many each leg was asked for.
    """
    ranges = {leg: found for leg, one in pools.items() if (found := range_of(one.scores))}
    retrieved = union(one.candidates for one in pools.values())
    if setting.mode == "hybrid":
        plain = union(one.candidates[: one.unfavoured] for one in pools.values())
        own = dict.fromkeys(retrieved, 0.0) | {name: base_score(one, setting, ranges) for name, one in plain.items()}
        scale = sorted((own[name] for name in plain), reverse=True)
    else:
        own = {one.id: base_score(one, setting, ranges) for one in pools["lexical"].candidates}
        scale = pools["lexical"].scores
    beta = preference_of(question, setting)
    given = bonus(beta, scale, pools["dense"].scores)
    hits = [
        retrieved[name]._replace(score=score + given * is_preferred(retrieved[name].language, question, setting))
        for name, score in own.items()
    ]
    hits.sort(key=_best_first)
    run_scores = {one.id: one.score or 0.0 for one in hits} if needs_run_scores(setting, target) else {}
    return hits, ScoringContext(bonus=math.copysign(given, beta), ranges=ranges, run_scores=run_scores, depth=depth)


def needs_run_scores(setting: SearchSettings, target: SearchContext) -> bool:
    """Whether only the run can tell what the legs retrieved: by ranks, or where each shard retrieved for itself."""
    return _by_ranks(setting) or of_shards(setting, target)


def _by_ranks(setting: SearchSettings) -> bool:
    return setting.mode == "hybrid" and setting.fusion == "rrf"


def base_score(candidate: ScoredDoc, setting: SearchSettings, ranges: Mapping[str, Range]) -> float:
    """The mode's score of a document before any bonus, from its legs."""
    if setting.mode != "hybrid":
        return candidate.legs["lexical"].score
    shares = weights(setting)
    if _by_ranks(setting):
        return rrf({leg: said.rank for leg, said in candidate.legs.items() if said.rank is not None}, shares)
    return min_max({leg: said.score for leg, said in candidate.legs.items()}, ranges, shares)


def _best_first(candidate: ScoredDoc) -> tuple[float, float]:
    dense = candidate.legs.get("dense")
    return -(candidate.score or 0.0), -dense.score if dense else 0.0


def _pools(answered: Mapping[tuple[str, str], Response], target: SearchContext) -> dict[str, Pool]:
    """Leg -> what it retrieved."""
    return {
        leg: pool(
            leg,
            [response for (one, part), response in answered.items() if one == leg and part != "favoured"],
            [response for (one, part), response in answered.items() if (one, part) == (leg, "favoured")],
            target.index.fields,
        )
        for leg in ("dense", "lexical")
    }
