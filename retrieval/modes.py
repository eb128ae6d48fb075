"""A search in any mode: found, scored where others found it, and one hit for each group; nothing here sends."""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import FieldNames, remove_at
from langshift.retrieval import anchored, dsl, hits
from langshift.retrieval.dense import balanced, bonus_on_cosine, dense, vector_of
from langshift.retrieval.hybrid import base_score, fused_search, hybrid_search, lexical, lexical_body, needs_run_scores
from langshift.retrieval.settings import LEAST_CANDIDATES, SearchRequest, Source
from langshift.retrieval.steps import Body, SearchPlan, timed

# At most so many times as deep as before, and so many times as deep as it seems needed.
_DEEPEST: Final = 4
_MARGIN: Final = 1.5
_FULL: Final = (
    f"The groups found have {dsl.MOST:,} or more documents in addition to those that the search itself found: the rest "
    "is not shown."
)

_RANKED: Final = {
    "dense": dense,
    "lexical": lexical,
    "hybrid": hybrid_search,
    "balanced": balanced,
    "anchored": anchored.anchored,
}


def search(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Search: a plan, to be carried out by ``steps.execute`` or its like.

    Returns:
        Of the plan: the hits, best first. With ``one_per_group`` a hit stands where the best document of its
        group would, has that document's score, and the group's other documents inside.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    request = _without_strength(request)
    if request.setting.one_per_group:
        work = _one_per_group(request)
    else:
        work = _RANKED[request.setting.mode](replace(request, depth=max(request.size, request.depth)))
    found, took = yield from timed(work)
    return found._replace(took=took)


def _without_strength(request: SearchRequest) -> SearchRequest:
    """The request; where ``anchored`` has no strength, the one of ``dense``, which it then is, to the last digit."""
    trust = request.target.trust
    if request.setting.mode != "anchored" or trust is None or trust.strength:
        return request
    return replace(request, setting=replace(request.setting, mode="dense"))


def _one_per_group(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Search for groups.

    A group stands where its best document would, and has that document's score. Documents without a group stand
    for themselves. What is inside a hit is filtered as the hits are.
    """
    plain = replace(request, setting=replace(request.setting, one_per_group=False))
    found, groups = yield from _enough(plain)
    chosen = dict(list(groups.items())[: request.size])
    seen = [candidate.id for members in chosen.values() for candidate in members]
    if not seen:
        return found._replace(hits=())
    fields, source = request.fields, request.source
    brings = source if source is True else [*(source or ()), fields.group]
    named = [name for kind, name in chosen if kind == _GROUP]
    bodies = [members_body(replace(request, source=brings), named, seen)]
    if source:
        bodies.append(dsl.named(seen, fields, brings))
    others, *known = yield tuple(bodies)
    # A document of several groups is in the first of them alone.
    inside = [one for one in hits.without_legs(others, fields) if _key(one, fields) in chosen]
    scored = (yield from scores(plain, found.how, [one.id for one in inside])) if inside else {}
    sources_by_id = hits.sources(known)
    for one in inside:
        chosen[_key(one, fields)].append(one._replace(score=scored[one.id]))
        sources_by_id[one.id] = one.source
    shown = {name: _shown(brought, source, fields.group) for name, brought in sources_by_id.items()}
    heads = tuple(_head(members, request.question.language, shown) for members in chosen.values())
    full = len(others["hits"]["hits"]) == dsl.MOST
    return found._replace(hits=heads, notes=(*found.notes, _FULL) if full else found.notes)


def members_body(request: SearchRequest, groups: Sequence[str], without: Sequence[str]) -> Body:
    """The body of a search for the documents of groups, 10,000 at most, those in the searcher's language first.

    Args:
        request: whose filters a document must match, and whose fields it brings.
        groups: the groups.
        without: ids of documents that are not wanted.
    """
    own = {"term": {request.fields.language: request.question.language}}
    query: dict[str, Any] = {
        "filter": [{"terms": {request.fields.group_filter: list(groups)}}, *dsl.filter_clauses(request.filters)],
        "must_not": dsl.filter_clauses({"_id": without}),
        "should": [{"constant_score": {"filter": own}}],
    }
    return dsl.body({"bool": query}, dsl.MOST, request.fields, request.source)


_GROUP: Final = "group"
# By group, or by id where a document is in none.
_Groups = dict[tuple[str, str], list[hits.ScoredDoc]]


def _enough(request: SearchRequest) -> SearchPlan[tuple[hits.RankedHits, _Groups]]:
    """Search deeper and deeper, until there are as many groups as are wanted or no more documents."""
    size, apart = request.size, request.setting.mode in {"hybrid", "anchored"}
    depth = min(max(LEAST_CANDIDATES, size * 2), dsl.MOST)
    while True:
        wide = min(dsl.MOST, 2 * depth * request.target.index.shards) if apart else depth
        deep = replace(request, size=wide, depth=depth, source=[request.fields.group])
        found = yield from _RANKED[request.setting.mode](deep)
        groups: _Groups = {}
        for hit in found.hits:
            groups.setdefault(_key(hit, request.fields), []).append(hit)
        if len(groups) >= size or len(found.hits) < depth or depth == dsl.MOST:
            return found, groups
        # As deep as would do if groups came on as they have so far, and half as deep again.
        depth = min(math.ceil(depth * min(_DEEPEST, _MARGIN * size / len(groups))), dsl.MOST)


def _key(hit: hits.ScoredDoc, fields: FieldNames) -> tuple[str, str]:
    group = hits.group_of(hit.source, fields)
    return ("_id", hit.id) if group is None else (_GROUP, group)


def _head(members: Sequence[hits.ScoredDoc], language: str, sources: Mapping[str, Mapping[str, Any]]) -> hits.ScoredDoc:
    """A group's hit; the first of the members is the best."""
    ranked = [one._replace(source=sources.get(one.id, {})) for one in hits.best_first(members)]
    own = [one for one in ranked if one.language == language != UNDETERMINED]
    head = (own or ranked)[0]
    others = tuple(one for one in ranked if one.id != head.id)
    return head._replace(score=members[0].score, others=others)


def _shown(found: Mapping[str, Any], source: Source, group: str) -> Mapping[str, Any]:
    """What a document brought, without the group where nobody asked for it."""
    if source is True or (source and any(group == name or group.startswith(f"{name}.") for name in source)):
        return found
    shown = deepcopy(dict(found))
    remove_at(shown, group)
    return shown


def scores(request: SearchRequest, how: hits.ScoringContext, ids: Sequence[str]) -> SearchPlan[dict[str, float | None]]:
    """What ``search`` would have given documents, also those below its cut; a plan.

    Scores by vector are exact, by a script; BM25 comes from the run's own query under a filter, which leaves it as
    it is. In ``hybrid`` a leg gives 0 to what it did not retrieve, by either fusion and over any number of shards, and
    what neither leg retrieved has 0, and the bonus if it is favoured.

    Args:
        request: what was searched for; which documents are scored does not depend on its filters.
        how: what the search says of how its scores were put together.
        ids: the documents, at most 10,000.

    Returns:
        Of the plan: every id's score; None where it matches nothing: has no vector, or none of the words, as the
        mode asks for, in ``hybrid`` neither.
    """
    if not ids:
        return {}
    request = _without_strength(request)
    if request.setting.mode == "anchored":
        return (yield from anchored.scores(request, how, ids))
    dense = request.setting.mode in {"dense", "balanced"}
    given = yield from _dense_scores(request, ids) if dense else _lexical_scores(request, how, ids)
    return {name: given.get(name) for name in ids}


def _dense_scores(request: SearchRequest, ids: Sequence[str]) -> SearchPlan[dict[str, float]]:
    """Exact scores of ``dense`` and ``balanced``; documents without a vector are left out."""
    (response,) = yield (dsl.exact(vector_of(request.question), ids, request.fields),)
    bonus = bonus_on_cosine(request)
    return {
        hit.id: hit.legs["dense"].score + bonus * request.prefers(hit.language)
        for hit in hits.candidates(response, "dense", request.fields)
    }


def _lexical_scores(
    request: SearchRequest, how: hits.ScoringContext, ids: Sequence[str]
) -> SearchPlan[dict[str, float]]:
    """Scores of ``lexical`` and ``hybrid``; documents that match nothing are left out.

    Where the search itself could not say how its scores were put together, as the cluster's plugin does not, its
    legs are asked for that first.
    """
    hybrid = request.setting.mode == "hybrid"
    if (hybrid or request.preference) and not how.ranges and not how.run_scores:
        legs_only = replace(request, size=0, depth=how.depth or LEAST_CANDIDATES, source=False)
        how = (yield from fused_search(legs_only)).how
    run_scores = {name: how.run_scores[name] for name in ids if name in how.run_scores}
    rest = [name for name in ids if name not in run_scores]
    if not rest:
        return run_scores
    bodies = {"lexical": lexical_body(replace(request, size=len(rest), filters={"_id": rest}, source=False))}
    if hybrid:
        bodies["dense"] = dsl.exact(vector_of(request.question), rest, request.fields)
    legs = zip(bodies, (yield tuple(bodies.values())), strict=True)
    scored = hits.union(hits.candidates(response, leg, request.fields) for leg, response in legs)
    unretrieved, bonus = needs_run_scores(request), abs(how.bonus)
    return run_scores | {
        name: (0.0 if unretrieved else base_score(one, request.setting, how.ranges))
        + bonus * request.prefers(one.language)
        for name, one in scored.items()
    }
