"""A shortlist ranked in any setting as the live search would, without the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from langshift.errors import UsageError
from langshift.retrieval.by_vector import POOL, best_of_each_language, ranked_by_vector
from langshift.retrieval.by_words import put_together
from langshift.retrieval.found import Candidate, Found, How
from langshift.retrieval.gathering import DEPTH, Shortlist
from langshift.retrieval.preferring import preference_of
from langshift.retrieval.reading import Pool, pooled
from langshift.retrieval.wanted import Setting


def rankable(setting: Setting) -> bool:
    """Whether a shortlist tells what a setting finds: not where a search goes on from what it found itself."""
    return setting.mode != "anchored" and not setting.one_per_group


def rank(shortlist: Shortlist, setting: Setting, *, size: int = DEPTH) -> Found:
    """What the live search finds in a setting: the same documents in the same order, with the same scores.

    Scores are the same to rounding in float32, and documents whose scores are that near may come in another order. In
    an index of several shards, too: the shortlist holds what each shard brings.

    Args:
        shortlist: of the query.
        setting: how it is searched; one that is ``rankable``.
        size: how many hits, 100 at most.

    Returns:
        The hits with their fields and legs; ``took`` is that of the shortlist.

    Raises:
        UsageError: a leg that the setting needs could not be asked.
        ValueError: the setting is not ``rankable``.
    """
    if not rankable(setting):
        raise ValueError(f"a shortlist cannot be ranked in {setting}")
    _require_legs(shortlist, setting)
    found = _found(shortlist, setting, size)
    hits = tuple(hit._replace(source=shortlist.sources.get(hit.id, {})) for hit in found.hits)
    return found._replace(hits=hits, took=shortlist.took)


def part_of(shortlist: Shortlist, setting: Setting) -> str | None:
    """The part of the documents that the setting's preference favours; None where it favours none."""
    beta = preference_of(shortlist.question, setting)
    return ("own" if beta > 0 else "others") if beta else None


def _require_legs(shortlist: Shortlist, setting: Setting) -> None:
    needed = {"dense"} if setting.mode in {"dense", "balanced"} else {"lexical"}
    if setting.mode == "hybrid" or part_of(shortlist, setting):
        needed.add("dense")
    for leg, why in shortlist.lacks.items():
        if leg in needed:
            raise UsageError(why)


def _found(shortlist: Shortlist, setting: Setting, size: int) -> Found:
    question, target = shortlist.question, shortlist.target
    if setting.mode == "dense":
        return ranked_by_vector(_pool(shortlist, setting, "dense").candidates, question, setting, size=size)
    if setting.mode == "balanced":
        nearest = _pool(shortlist, setting, "dense", POOL).candidates
        return ranked_by_vector(best_of_each_language(nearest), question, setting, size=size)
    if setting.mode == "lexical" and not part_of(shortlist, setting):
        return Found(tuple(_pool(shortlist, setting, "lexical", DEPTH).candidates[:size]), How())
    # In hybrid every shard brings as many, in lexical all together.
    depth = None if setting.mode == "hybrid" else DEPTH
    pools: Mapping[str, Pool] = {leg: _pool(shortlist, setting, leg, depth) for leg in ("dense", "lexical")}
    hits, how = put_together(pools, question, setting, target, depth=DEPTH)
    return Found(tuple(hits[:size]), how)


def _pool(shortlist: Shortlist, setting: Setting, leg: str, depth: int | None = None) -> Pool:
    """What a leg retrieved, of all and of the favoured as many as are looked at."""
    part = part_of(shortlist, setting)
    favoured = shortlist.legs.get((leg, part), ())[:depth] if part else ()
    return pooled(leg, _best(shortlist.leg(leg), depth), favoured)


def _best(found: list[Candidate], depth: int | None) -> list[Candidate]:
    return sorted(found, key=_best_first)[:depth]


def _best_first(candidate: Candidate) -> float:
    return -(candidate.score or 0.0)
