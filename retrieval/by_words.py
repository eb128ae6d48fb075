"""Modes that ask for words: ``lexical``, and ``hybrid`` beside vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from langshift.retrieval import bodies, fusing
from langshift.retrieval.bodies import Source
from langshift.retrieval.by_vector import vector_of
from langshift.retrieval.exchange import Exchange, Response
from langshift.retrieval.found import Candidate, Found, How
from langshift.retrieval.legs import leg_bodies, of_shards
from langshift.retrieval.preferring import bonus, is_favoured, preference_of
from langshift.retrieval.reading import Pool, candidates, pool, union, without_legs
from langshift.retrieval.sources import with_sources
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import Filters, Question, Setting


def lexical(
    question: Question, setting: Setting, target: Target, *, size: int, filters: Filters, source: Source
) -> Exchange[Found]:
    """BM25, with the language preference."""
    if preference_of(question, setting):
        depth = max(size, bodies.LEAST_CANDIDATES)
        return (yield from fused(question, setting, target, size=size, depth=depth, filters=filters, source=source))
    fields = target.index.fields
    body = bodies.lexical(
        question.words,
        question.language,
        target.index.languages,
        size=size,
        filters=filters,
        fields=fields,
        source=source,
    )
    (response,) = yield (body,)
    return Found(tuple(candidates(response, "lexical", fields)), How())


def hybrid(
    question: Question, setting: Setting, target: Target, *, size: int, depth: int, filters: Filters, source: Source
) -> Exchange[Found]:
    """Vectors and words, by the cluster's plugin where it can."""
    if preference_of(question, setting) or not target.fuses:
        return (yield from fused(question, setting, target, size=size, depth=depth, filters=filters, source=source))
    fields = target.index.fields
    body = fusing.hybrid(
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
    return Found(tuple(without_legs(response, fields)), How(depth=depth))


def fused(
    question: Question, setting: Setting, target: Target, *, size: int, depth: int, filters: Filters, source: Source
) -> Exchange[Found]:
    """Vectors and words put together here, with the language preference; in lexical mode vectors give its scale.

    ``score = s + bonus · [favoured]``, with ``s`` the mode's own score without a preference; in ``hybrid`` that is 0
    for what only the search among the favoured documents retrieved.
    """
    asked = leg_bodies(question, setting, target, depth, filters)
    responses = yield tuple(asked.values())
    hits, how = put_together(
        _pools(dict(zip(asked, responses, strict=True)), target), question, setting, target, depth=depth
    )
    return Found((yield from with_sources(hits[:size], target, source)), how)


def put_together(
    pools: Mapping[str, Pool], question: Question, setting: Setting, target: Target, *, depth: int
) -> tuple[list[Candidate], How]:
    """The one step of ``fused`` that needs no cluster: all hits, best first, and how they were scored.

    Args:
        pools: leg -> what it retrieved, of ``dense`` and ``lexical``.
        question: what is asked.
        setting: how it is searched.
        target: what is searched.
        depth: how many each leg was asked for.
    """
    ranges = {leg: found for leg, one in pools.items() if (found := fusing.range_of(one.scores))}
    retrieved = union(one.candidates for one in pools.values())
    if setting.mode == "hybrid":
        plain = union(one.candidates[: one.unfavoured] for one in pools.values())
        own = dict.fromkeys(retrieved, 0.0) | {name: own_score(one, setting, ranges) for name, one in plain.items()}
        scale = sorted((own[name] for name in plain), reverse=True)
    else:
        own = {one.id: own_score(one, setting, ranges) for one in pools["lexical"].candidates}
        scale = pools["lexical"].scores
    beta = preference_of(question, setting)
    given = bonus(beta, scale, pools["dense"].scores)
    hits = [
        retrieved[name]._replace(score=score + given * is_favoured(retrieved[name].language, question, setting))
        for name, score in own.items()
    ]
    hits.sort(key=_best_first)
    kept = {one.id: one.score or 0.0 for one in hits} if of_the_run(setting, target) else {}
    return hits, How(bonus=math.copysign(given, beta), ranges=ranges, kept=kept, depth=depth)


def of_the_run(setting: Setting, target: Target) -> bool:
    """Whether only the run can tell what the legs retrieved: by ranks, or where each shard retrieved for itself."""
    return _by_ranks(setting) or of_shards(setting, target)


def _by_ranks(setting: Setting) -> bool:
    return setting.mode == "hybrid" and setting.fusion == "rrf"


def own_score(candidate: Candidate, setting: Setting, ranges: Mapping[str, fusing.Range]) -> float:
    """The mode's score of a document before any bonus, from its legs."""
    if setting.mode != "hybrid":
        return candidate.legs["lexical"].score
    shares = fusing.weights(setting)
    if _by_ranks(setting):
        return fusing.rrf({leg: said.rank for leg, said in candidate.legs.items() if said.rank is not None}, shares)
    return fusing.min_max({leg: said.score for leg, said in candidate.legs.items()}, ranges, shares)


def _best_first(candidate: Candidate) -> tuple[float, float]:
    dense = candidate.legs.get("dense")
    return -(candidate.score or 0.0), -dense.score if dense else 0.0


def _pools(answered: Mapping[tuple[str, str], Response], target: Target) -> dict[str, Pool]:
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
