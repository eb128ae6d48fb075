"""A search in any mode: found, scored where others found it, and one hit for each group; nothing here sends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langshift.languages import UNDETERMINED
from langshift.retrieval import anchored, dsl
from langshift.retrieval.dense import balanced, bonus_on_cosine, dense, vector_of
from langshift.retrieval.dsl import LEAST_CANDIDATES, MOST, Source, is_preferred, preference_of
from langshift.retrieval.hits import (
    GROUP,
    RankedHits,
    ScoredDoc,
    ScoringContext,
    candidates,
    group_of,
    sources,
    union,
    without_legs,
)
from langshift.retrieval.hybrid import base_score, fused_search, hybrid_search, lexical, needs_run_scores
from langshift.retrieval.settings import NO_FILTERS, Filters, SearchContext, SearchQuery, SearchSettings
from langshift.retrieval.steps import Body, SearchPlan, timed

# At most so many times as deep as before, and so many times as deep as it seems needed.
_DEEPEST: Final = 4
_MARGIN: Final = 1.5
_FULL: Final = (
    f"The groups found have {MOST:,} documents or more beside those that the search itself found: what is more than "
    "that is not shown."
)

Retrieve = Callable[[int, Source], SearchPlan[RankedHits]]
Rescore = Callable[[ScoringContext, Sequence[str]], SearchPlan[dict[str, "float | None"]]]


def one_per_group(
    retrieve: Retrieve,
    rescore: Rescore,
    question: SearchQuery,
    target: SearchContext,
    *,
    size: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    """Search for groups.

    A group stands where its best document would, and has that document's score. Documents without a group stand
    for themselves. What is inside a hit is filtered as the hits are.

    Args:
        retrieve: searches to a depth, for hits with these fields.
        rescore: what the search would have given more documents.
        question: what is asked.
        target: what is searched.
        size: how many groups.
        filters: field -> values, any of which a hit must have.
        source: what hits bring.
    """
    found, groups = yield from _enough(retrieve, size)
    chosen = dict(list(groups.items())[:size])
    seen = [candidate.id for members in chosen.values() for candidate in members]
    if not seen:
        return found._replace(hits=())
    brings = source if source is True else [*(source or ()), GROUP]
    named = [key[1] for key in chosen if key[0] == GROUP]
    bodies = [members_body(named, seen, question.language, filters, target, brings)]
    if source:
        bodies.append(dsl.named(seen, target.index.fields, brings))
    others, *known = yield tuple(bodies)
    # A document of several groups is in the first of them alone.
    inside = [one for one in without_legs(others, target.index.fields) if _key(one) in chosen]
    scored = (yield from rescore(found.how, [one.id for one in inside])) if inside else {}
    sources_by_id = sources(known)
    for one in inside:
        chosen[_key(one)].append(one._replace(score=scored[one.id]))
        sources_by_id[one.id] = one.source
    shown = {name: _shown(fields, source) for name, fields in sources_by_id.items()}
    hits = [_head(members, question.language, shown) for members in chosen.values()]
    full = len(others["hits"]["hits"]) == MOST
    return found._replace(hits=tuple(hits), notes=(*found.notes, _FULL) if full else found.notes)


def members_body(
    groups: Sequence[str],
    without: Sequence[str],
    language: str,
    filters: Filters,
    target: SearchContext,
    source: Source,
) -> Body:
    """The body of a search for the documents of groups, 10,000 at most, those in the searcher's language first.

    Args:
        groups: the groups.
        without: ids of documents that are not wanted.
        language: the searcher's.
        filters: field -> values, any of which a document must have.
        target: what is searched.
        source: what hits bring.
    """
    fields = target.index.fields
    query: dict[str, Any] = {
        "filter": [{"terms": {GROUP: list(groups)}}, *dsl.filter_clauses(filters)],
        "must_not": dsl.filter_clauses({"_id": without}),
        "should": [{"constant_score": {"filter": {"term": {fields.language: language}}}}],
    }
    return dsl.body({"bool": query}, MOST, fields, source)


_Groups = dict[tuple[str, str], list[ScoredDoc]]


def _enough(retrieve: Retrieve, size: int) -> SearchPlan[tuple[RankedHits, _Groups]]:
    """Search deeper and deeper, until there are as many groups as are wanted or no more documents."""
    depth = min(max(dsl.LEAST_CANDIDATES, size * 2), MOST)
    while True:
        found = yield from retrieve(depth, [GROUP])
        groups = _grouped(found.hits)
        if len(groups) >= size or len(found.hits) < depth or depth == MOST:
            return found, groups
        depth = _deeper(depth, size, len(groups))


def _deeper(depth: int, size: int, groups: int) -> int:
    """How deep to search next: as deep as would do if groups came on as they have so far, and half as deep again."""
    return min(math.ceil(depth * min(_DEEPEST, _MARGIN * size / groups)), MOST)


def _grouped(hits: Iterable[ScoredDoc]) -> _Groups:
    """The hits by group, in the order of each group's best."""
    groups: _Groups = {}
    for hit in hits:
        groups.setdefault(_key(hit), []).append(hit)
    return groups


def _key(hit: ScoredDoc) -> tuple[str, str]:
    group = group_of(hit.source)
    return ("_id", hit.id) if group is None else (GROUP, group)


def _head(members: Sequence[ScoredDoc], language: str, sources: Mapping[str, Mapping[str, Any]]) -> ScoredDoc:
    """A group's hit; the first of the members is the best."""
    ranked = [one._replace(source=sources.get(one.id, {})) for one in sorted(members, key=_best_first)]
    own = [one for one in ranked if one.language == language != UNDETERMINED]
    head = (own or ranked)[0]
    others = tuple(one for one in ranked if one.id != head.id)
    return head._replace(score=members[0].score, others=others)


def _best_first(candidate: ScoredDoc) -> float:
    return float("inf") if candidate.score is None else -candidate.score


def _shown(fields: Mapping[str, Any], source: Source) -> Mapping[str, Any]:
    """What a document brought, without the group where nobody asked for it."""
    if source is True or (source and GROUP in source):
        return fields
    return {name: value for name, value in fields.items() if name != GROUP}


def dense_scores(
    question: SearchQuery, setting: SearchSettings, target: SearchContext, ids: Sequence[str]
) -> SearchPlan[dict[str, float]]:
    """Exact scores of ``dense`` and ``balanced``; documents without a vector are left out."""
    (response,) = yield (_exact(question, target, ids),)
    bonus = bonus_on_cosine(question, setting)
    return {
        hit.id: hit.legs["dense"].score + bonus * is_preferred(hit.language, question, setting)
        for hit in candidates(response, "dense", target.index.fields)
    }


def lexical_scores(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    how: ScoringContext,
    ids: Sequence[str],
    *,
    filters: Filters,
) -> SearchPlan[dict[str, float]]:
    """Scores of ``lexical`` and ``hybrid``; documents that match nothing are left out.

    Where the search itself could not say how its scores were put together, as the cluster's plugin does not, its
    legs are asked for that first.
    """
    if _unknown(question, setting, how):
        depth = how.depth or dsl.LEAST_CANDIDATES
        found = yield from fused_search(question, setting, target, size=0, depth=depth, filters=filters, source=False)
        how = found.how
    run_scores = {name: how.run_scores[name] for name in ids if name in how.run_scores}
    rest = [name for name in ids if name not in run_scores]
    if not rest:
        return run_scores
    bodies: dict[str, Body] = {"lexical": _words(question, target, rest)}
    if setting.mode == "hybrid":
        bodies["dense"] = _exact(question, target, rest)
    responses = yield tuple(bodies.values())
    legs = zip(bodies, responses, strict=True)
    scored = union(candidates(response, leg, target.index.fields) for leg, response in legs)
    unretrieved = needs_run_scores(setting, target)
    return run_scores | {
        name: (0.0 if unretrieved else base_score(one, setting, how.ranges)) + _bonus(one, question, setting, how)
        for name, one in scored.items()
    }


def _unknown(question: SearchQuery, setting: SearchSettings, how: ScoringContext) -> bool:
    needed = setting.mode == "hybrid" or preference_of(question, setting) != 0
    return needed and not how.ranges and not how.run_scores


def _bonus(candidate: ScoredDoc, question: SearchQuery, setting: SearchSettings, how: ScoringContext) -> float:
    return abs(how.bonus) * is_preferred(candidate.language, question, setting)


def _exact(question: SearchQuery, target: SearchContext, ids: Sequence[str]) -> Body:
    return dsl.exact(vector_of(question), dsl.among(ids), len(ids), target.index.fields)


def _words(question: SearchQuery, target: SearchContext, ids: Sequence[str]) -> Body:
    return dsl.lexical(
        question.words,
        question.language,
        target.index.languages,
        size=len(ids),
        filters={"_id": ids},
        fields=target.index.fields,
        source=False,
    )


def search(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    filters: Filters = NO_FILTERS,
    source: Source = True,
) -> SearchPlan[RankedHits]:
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

    def retrieve(depth: int, brings: Source) -> SearchPlan[RankedHits]:
        wide = min(MOST, 2 * depth * target.index.shards) if setting.mode in {"hybrid", "anchored"} else depth
        return _ranked(question, plain, target, size=wide, depth=depth, filters=filters, source=brings)

    def rescore(how: ScoringContext, ids: Sequence[str]) -> SearchPlan[dict[str, float | None]]:
        return scores(question, plain, target, how, ids, filters=filters)

    if setting.one_per_group:
        work = one_per_group(retrieve, rescore, question, target, size=size, filters=filters, source=source)
    else:
        depth = max(size, LEAST_CANDIDATES)
        work = _ranked(question, setting, target, size=size, depth=depth, filters=filters, source=source)
    found, took = yield from timed(work)
    return found._replace(took=took)


def _ranked(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    depth: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
    if setting.mode == "dense":
        return dense(question, setting, target, size=size, filters=filters, source=source)
    if setting.mode == "lexical":
        return lexical(question, setting, target, size=size, filters=filters, source=source)
    if setting.mode == "balanced":
        return balanced(question, setting, target, size=size, filters=filters, source=source)
    deep = hybrid_search if setting.mode == "hybrid" else anchored.anchored
    return deep(question, setting, target, size=size, depth=depth, filters=filters, source=source)


def scores(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    how: ScoringContext,
    ids: Sequence[str],
    *,
    filters: Filters = NO_FILTERS,
) -> SearchPlan[dict[str, float | None]]:
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
        given = yield from dense_scores(question, setting, target, ids)
    elif ids:
        given = yield from lexical_scores(question, setting, target, how, ids, filters=filters)
    return {name: given.get(name) for name in ids}
