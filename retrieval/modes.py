"""A search in any mode, and what it would have given documents that it did not find; nothing here sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langshift.retrieval import anchored, scoring
from langshift.retrieval.bodies import LEAST_CANDIDATES, MOST, Source
from langshift.retrieval.by_vector import balanced, dense
from langshift.retrieval.by_words import hybrid, lexical
from langshift.retrieval.exchange import Exchange, timed
from langshift.retrieval.found import Found, How
from langshift.retrieval.grouping import one_per_group
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import NO_FILTERS, Filters, Question, Setting


def search(
    question: Question,
    setting: Setting,
    target: Target,
    *,
    size: int,
    filters: Filters = NO_FILTERS,
    source: Source = True,
) -> Exchange[Found]:
    """Search: an exchange, to be carried out by ``exchange.carry_out`` or its like.

    Args:
        question: what is asked; it has a vector where ``setting.needs_vector``.
        setting: how to search.
        target: what is searched.
        size: how many hits, 1 to 10,000.
        filters: field of the index -> values, any of which a hit must have.
        source: which fields hits bring: True for all but the vector, False for none.

    Returns:
        Of the exchange: the hits, best first. With ``one_per_group`` a hit stands where the best document of its
        group would, has that document's score, and the group's other documents inside.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    plain = replace(setting, one_per_group=False)

    def retrieve(depth: int, brings: Source) -> Exchange[Found]:
        wide = min(MOST, 2 * depth * target.index.shards) if setting.mode in {"hybrid", "anchored"} else depth
        return _ranked(question, plain, target, size=wide, depth=depth, filters=filters, source=brings)

    def rescore(how: How, ids: Sequence[str]) -> Exchange[dict[str, float | None]]:
        return scores(question, plain, target, how, ids, filters=filters)

    if setting.one_per_group:
        work = one_per_group(retrieve, rescore, question, target, size=size, filters=filters, source=source)
    else:
        depth = max(size, LEAST_CANDIDATES)
        work = _ranked(question, setting, target, size=size, depth=depth, filters=filters, source=source)
    found, took = yield from timed(work)
    return found._replace(took=took)


def _ranked(
    question: Question, setting: Setting, target: Target, *, size: int, depth: int, filters: Filters, source: Source
) -> Exchange[Found]:
    if setting.mode == "dense":
        return dense(question, setting, target, size=size, filters=filters, source=source)
    if setting.mode == "lexical":
        return lexical(question, setting, target, size=size, filters=filters, source=source)
    if setting.mode == "balanced":
        return balanced(question, setting, target, size=size, filters=filters, source=source)
    deep = hybrid if setting.mode == "hybrid" else anchored.anchored
    return deep(question, setting, target, size=size, depth=depth, filters=filters, source=source)


def scores(
    question: Question,
    setting: Setting,
    target: Target,
    how: How,
    ids: Sequence[str],
    *,
    filters: Filters = NO_FILTERS,
) -> Exchange[dict[str, float | None]]:
    """What ``search`` would have given documents, also those below its cut; an exchange.

    Scores by vector are exact, by a script; BM25 comes from the run's own query under a filter, which leaves it as
    it is. In ``hybrid`` a leg gives 0 to what it did not retrieve, by either fusion and over any number of shards, and
    what neither leg retrieved has 0, and the bonus if it is favoured.

    Args:
        question: what was asked.
        setting: how it was searched.
        target: what was searched.
        how: what the search says of how its scores were put together.
        ids: the documents, at most 10,000.
        filters: those of the search; which documents are scored does not depend on them.

    Returns:
        Of the exchange: every id's score; None where it matches nothing: has no vector, or none of the words, as the
        mode asks for, in ``hybrid`` neither.
    """
    given: dict[str, float] = {}
    if ids and setting.mode == "anchored":
        return (yield from anchored.scores(question, target, how, ids))
    if ids and setting.mode in {"dense", "balanced"}:
        given = yield from scoring.by_vector(question, setting, target, ids)
    elif ids:
        given = yield from scoring.by_words(question, setting, target, how, ids, filters=filters)
    return {name: given.get(name) for name in ids}
