"""The request bodies of a search's two legs, by vector and by words, where langshift puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langshift.retrieval import bodies
from langshift.retrieval.bodies import Source
from langshift.retrieval.by_vector import vector_of
from langshift.retrieval.exchange import Body, ShardBody
from langshift.retrieval.preferring import favoured, preference_of
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import NO_FILTERS, Filters, Question, Setting


def of_shards(setting: Setting, target: Target) -> bool:
    """Whether every shard retrieves as many, as with neural-search."""
    return setting.mode == "hybrid" and target.index.shards > 1


def leg_bodies(
    question: Question, setting: Setting, target: Target, depth: int, filters: Filters = NO_FILTERS
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
    parts = {"favoured": favoured(question.language, beta, target.index.fields)} if beta else {}
    near = parts if setting.mode == "hybrid" else {}
    nearest = nearest_bodies(question, target, depth, near, filters=filters, shards=shards)
    words = word_bodies(question, target, depth, parts, filters=filters, shards=shards)
    return {
        **{("dense", part): asked for part, asked in nearest.items()},
        **{("lexical", part): asked for part, asked in words.items()},
    }


def nearest_bodies(
    question: Question,
    target: Target,
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
    fields, clauses, vector = target.index.fields, bodies.filter_clauses(filters), vector_of(question)
    wide = min(depth * shards, bodies.MOST)
    asked = {"all": bodies.body(bodies.knn(vector, depth, clauses, fields), wide, fields, source)}
    for part, clause in parts.items():
        asked[part] = bodies.body(bodies.knn(vector, depth, [*clauses, clause], fields), depth, fields, source)
    return asked


def word_bodies(
    question: Question,
    target: Target,
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
    fields, clauses = target.index.fields, bodies.filter_clauses(filters)

    def words(*more: Mapping[str, Any]) -> Body:
        query = bodies.matching(question.words, question.language, target.index.languages, [*clauses, *more], fields)
        return bodies.body(query, depth, fields, source)

    asked = {f"shard {shard}": ShardBody(words(), shard) for shard in range(shards)} if shards > 1 else {"all": words()}
    return {**asked, **{part: words(clause) for part, clause in parts.items()}}
