"""A search in any mode: found, scored where others found it, and one hit for each group; nothing here sends."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import FieldNames, remove_at
from langshift.retrieval import anchored, dsl, hits, hybrid
from langshift.retrieval.dense import balanced, bonus_on_cosine, dense, native_dense
from langshift.retrieval.filters import NO_FILTER
from langshift.retrieval.request import ONE_LEG
from langshift.retrieval.settings import LEAST_CANDIDATES, SearchRequest, Source, vector_of
from langshift.retrieval.steps import Body, Response, SearchPlan, step_by_step, timed

# At most so many times as deep as before, and so many times as deep as it seems needed.
_DEEPEST: Final = 4
_MARGIN: Final = 1.5
#: Modes whose scores are put together of what legs retrieved.
_BY_LEGS: Final = ONE_LEG | {"hybrid"}
_FULL: Final = (
    f"The groups found have {dsl.MOST:,} or more documents in addition to those that the search itself found: the rest "
    "is not shown."
)
_DEEPEST_CHUNKS: Final = (
    f"There may be more documents: the best {dsl.MOST:,} passages, the most that a search looks at, are of these alone."
)

_RANKED: Final = {
    "dense": dense,
    "lexical": hybrid.by_one_leg,
    "sparse": hybrid.by_one_leg,
    "hybrid": hybrid.hybrid_search,
    "balanced": balanced,
    "anchored": anchored.anchored,
}


def search(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Search without a reranker: a plan, to be carried out by ``steps.execute`` or its like.

    Args:
        request: in a mode that ``Searcher.resolve`` gives: not ``auto``, and not ``anchored`` of no strength.

    Returns:
        Of the plan: the hits, best first. With ``one_per_group`` a hit stands where the best document of its
        group would, has that document's score, and the group's other documents inside.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    if request.setting.one_per_group:
        work = _one_per_group(request)
    elif request.target.native and request.preference:
        work = native_dense(request)
    elif request.fields.parent is None:
        work = _RANKED[request.setting.mode](replace(request, depth=max(request.size, request.depth)))
    else:
        work = _documents(request)
    return (yield from completed(request, work))


def completed(request: SearchRequest, work: SearchPlan[hits.RankedHits]) -> SearchPlan[hits.RankedHits]:
    """The hits of a search with the further passages that are wanted, and with the time that all steps took."""

    def whole() -> SearchPlan[hits.RankedHits]:
        found = yield from work
        return (yield from with_passages(request, found)) if request.passages else found

    found, took = yield from timed(whole())
    return found._replace(took=took)


def _documents(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Search chunks, deep enough for as many documents as are wanted."""
    found, _ = yield from _enough(request)
    return found


def with_passages(request: SearchRequest, found: hits.RankedHits) -> SearchPlan[hits.RankedHits]:
    """What was found with further passages of each hit: one step that scores them, and one for their texts."""
    # Chunks of one document are ordered by what the mode says of them.
    request = replace(request, setting=request.setting.retrieval)
    scored = yield from _entries(request, found, [hit.document for hit in found.hits])
    shown = {hit.id for hit in found.hits}
    further: dict[str, list[hits.ScoredDoc]] = {}
    for one in sorted(scored, key=hybrid.by_score):
        if one.id not in shown and len(members := further.setdefault(one.document, [])) < request.passages:
            members.append(one)
    if not further:
        return found
    texts = yield from sources_of(request, [one.id for members in further.values() for one in members])
    passages = {
        name: tuple(one._replace(source=texts.get(one.id, {})) for one in members) for name, members in further.items()
    }
    return found._replace(hits=tuple(hit._replace(passages=passages.get(hit.document, ())) for hit in found.hits))


def sources_of(request: SearchRequest, ids: Sequence[str]) -> SearchPlan[dict[str, Mapping[str, Any]]]:
    """Entry -> the fields that the request wants, of entries that are known; one step, for one entry at least."""
    parts = [ids[start : start + dsl.MOST] for start in range(0, len(ids), dsl.MOST)]
    return hits.sources((yield tuple(dsl.named(part, request.fields, request.source) for part in parts)))


def _one_per_group(request: SearchRequest) -> SearchPlan[hits.RankedHits]:
    """Search for groups.

    A group stands where its best document would, and has that document's score. Documents without a group stand
    for themselves. What is inside a hit is filtered as the hits are.
    """
    plain = replace(request, setting=request.setting.but(one_per_group=False))
    found, groups = yield from _enough(request)
    chosen = dict(list(groups.items())[: request.size])
    seen = [candidate for members in chosen.values() for candidate in members]
    if not seen:
        return found._replace(hits=())
    fields, source = request.fields, request.source
    brings = source if source is True else [*(source or ()), fields.group]
    named = [name for kind, name in chosen if kind == "group"]
    without = [one.document for one in seen]
    bodies = [members_body(replace(request, source=brings), named, without)]
    if source:
        bodies.append(dsl.named([one.id for one in seen], fields, brings))
    others, *known = yield tuple(bodies)
    members = hits.without_legs(others, fields)
    if fields.parent is not None and any(one.parent is None for one in members):
        (others,) = yield (members_body(replace(request, source=brings, collapses=False), named, without),)
        members = hits.one_per_document(hits.without_legs(others, fields))
    # A document of several groups is in the first of them alone.
    inside = [one for one in members if hits.key_of(one, fields) in chosen]
    if fields.parent is None:
        scored = (yield from scores(plain, found.how, [one.id for one in inside])) if inside else {}
        inside = [one._replace(score=scored[one.id]) for one in inside]
    else:
        inside, texts = yield from _best_passages(replace(plain, source=brings if source else False), found, inside)
        known += texts
    sources_by_id = {one.id: one.source for one in inside} | hits.sources(known)
    for one in inside:
        chosen[hits.key_of(one, fields)].append(one)
    shown = {name: _shown(brought, source, fields.group) for name, brought in sources_by_id.items()}
    heads = tuple(_head(members, request.question.language, shown) for members in chosen.values())
    full = len(others["hits"]["hits"]) == dsl.MOST
    return found._replace(hits=heads, notes=(*found.notes, _FULL) if full else found.notes)


def _best_passages(
    request: SearchRequest, found: hits.RankedHits, documents: Sequence[hits.ScoredDoc]
) -> SearchPlan[tuple[list[hits.ScoredDoc], Sequence[Response]]]:
    """Each document by its best chunk, with its score; and the answers that bring these chunks' fields, if asked for.

    One that matches nothing stays as it is, without a score.
    """
    scored = hits.best_first((yield from _entries(request, found, [one.document for one in documents])))
    best = {one.document: one for one in hits.one_per_document(scored)}
    chosen = [best.get(one.document, one._replace(score=None))._replace(source=one.source) for one in documents]
    texts = (dsl.named([one.id for one in chosen], request.fields, request.source),) if request.source else ()
    return chosen, (yield texts) if chosen and texts else ()


def members_body(request: SearchRequest, groups: Sequence[str], without: Sequence[str]) -> Body:
    """The body of a search for the documents of groups, 10,000 at most, those in the searcher's language first.

    Args:
        request: whose filters a document must match, and whose fields it brings.
        groups: the groups.
        without: ids of documents that are not wanted.
    """
    own = {"term": {request.fields.language: request.question.language}}
    query: dict[str, Any] = {
        "filter": [{"terms": {request.fields.group_filter: list(groups)}}, *request.filters.clauses],
        "must_not": dsl.of_documents(without, request.fields),
        "should": [{"constant_score": {"filter": own}}],
    }
    return dsl.documents_body(request, {"bool": query}, dsl.MOST)


# By group, or by id where a document is in none.
_Groups = dict[tuple[str, str], list[hits.ScoredDoc]]


def _enough(request: SearchRequest) -> SearchPlan[tuple[hits.RankedHits, _Groups]]:
    """Search deeper and deeper, until there are as many groups or documents as are wanted, or no more of them."""
    size, mode, grouped = request.size, request.setting.mode, request.setting.one_per_group
    chunks, fields = request.fields.parent is not None, request.fields
    depth = min(max(request.depth, size * 2 if grouped else size), dsl.MOST)
    # Of whole documents all are ranked, and then the groups; so are the few that balanced finds.
    apart = grouped and (mode == "balanced" or not chunks)
    if apart:
        request = replace(request, setting=request.setting.but(one_per_group=False))
    if grouped:
        request = replace(request, source=[fields.group])
    while True:
        deep = replace(request, depth=depth)
        if apart:
            wide = 2 * depth * request.target.index.shards if mode in {"hybrid", "anchored"} else depth
            deep = replace(deep, size=min(dsl.MOST, wide))
        work = _RANKED[mode](deep)
        nameless = list[hits.ScoredDoc]()
        # What is found leaves out what is of a group that is there already.
        found = yield from step_by_step(work, _noting(nameless, fields)) if chunks and request.collapses else work
        if nameless:
            request = replace(request, collapses=False)
            continue
        groups: _Groups = {}
        for hit in found.hits:
            groups.setdefault(hits.key_of(hit, fields), []).append(hit)
        missing = found.missing
        if apart and not chunks and len(found.hits) >= depth:
            missing = size / len(groups)
        if missing <= 1:
            return found, groups
        if depth == dsl.MOST:
            return found._replace(notes=(*found.notes, *((_DEEPEST_CHUNKS,) if chunks else ()))), groups
        # As deep as would do if groups came on as they have so far, and half as deep again.
        depth = min(math.ceil(depth * min(_DEEPEST, _MARGIN * missing)), dsl.MOST)


def _noting(
    nameless: list[hits.ScoredDoc], fields: FieldNames
) -> Callable[[tuple[Body, ...]], SearchPlan[Sequence[Response]]]:
    """What carries out a step, and notes the chunks in its answers that name no document."""

    def carry_out(bodies: tuple[Body, ...]) -> SearchPlan[Sequence[Response]]:
        responses = yield bodies
        found = (one for response in responses for one in hits.without_legs(response, fields))
        nameless.extend(one for one in found if one.parent is None)
        return responses

    return carry_out


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

    Scores by vector are exact, by a script; those of words and tokens come from the run's own query under a filter,
    which leaves them as they are. In ``hybrid`` a leg gives 0 to what it did not retrieve, by either fusion and over
    any number of shards, and what no leg retrieved has 0, and the bonus if it is favoured. In an index of chunks a
    document has the score of its best chunk.

    Args:
        request: what was searched for; which documents are scored does not depend on its filters.
        how: what the search says of how its scores were put together.
        ids: the documents, at most 10,000.

    Returns:
        Of the plan: every id's score; None where it matches nothing: has no vector, or none of the words or tokens, as
        the mode asks for, in ``hybrid`` none of all.
    """
    if not ids:
        return {}
    if request.setting.mode in _BY_LEGS:
        how = yield from _known_scoring(request, how)
    # Of what the run knows of a document not all chunks are a part: one that it did not retrieve may have the bonus.
    rest = [name for name in ids if name not in how.run_scores or request.fields.parent is not None]
    given: dict[str, float | None] = {name: how.run_scores.get(name) for name in ids}
    for one in (yield from _entries(replace(request, filters=NO_FILTER), hits.RankedHits((), how), rest)):
        known = given[one.document]
        given[one.document] = one.score if known is None else max(known, one.score or 0.0)
    return given


def _known_scoring(request: SearchRequest, how: hits.ScoringContext) -> SearchPlan[hits.ScoringContext]:
    """How the scores of ``hybrid``, or of a mode of one leg, were put together.

    Where the search itself could not say, as the cluster's plugin does not, its legs are asked for that.
    """
    if (request.setting.mode in ONE_LEG and not request.preference) or how.ranges or how.run_scores:
        return how
    legs_only = replace(request, size=0, depth=how.depth or LEAST_CANDIDATES, source=False)
    return (yield from hybrid.fused_search(legs_only)).how


def _entries(request: SearchRequest, found: hits.RankedHits, ids: Sequence[str]) -> SearchPlan[list[hits.ScoredDoc]]:
    """The entries of documents that match the filters, with the scores that a search gives them.

    Args:
        request: what was searched for.
        found: what the search says of how its scores were put together, and of the chunks that it retrieved.
        ids: the documents.

    Returns:
        Of the plan: the entries, without those that match nothing.
    """
    if not ids:
        return []
    clauses: dsl.Clauses = dsl.of_documents(ids, request.fields)
    size = len(ids) if request.fields.parent is None else dsl.MOST
    if request.setting.mode in _BY_LEGS:
        scored = yield from _leg_entries(request, found, clauses, size)
    else:
        clauses = [*clauses, *request.filters.clauses]
        if request.setting.mode == "anchored":
            scored = yield from anchored.scores(request, found.how, clauses, size)
        else:
            scored = yield from _dense_entries(request, clauses, size)
    if len(scored) < dsl.MOST or len(ids) == 1 or request.fields.parent is None:
        return scored
    # Some may be left out: of the documents' chunks one search brings no more.
    half = len(ids) // 2
    first = yield from _entries(request, found, ids[:half])
    return first + (yield from _entries(request, found, ids[half:]))


def _dense_entries(request: SearchRequest, clauses: dsl.Clauses, size: int) -> SearchPlan[list[hits.ScoredDoc]]:
    """Those of ``dense`` and ``balanced``, exactly; without those that have no vector."""
    (response,) = yield (dsl.exact(vector_of(request.question), clauses, size, request.fields),)
    bonus = bonus_on_cosine(request)
    return [
        hit._replace(score=hit.legs["dense"].score + bonus * request.prefers(hit.language))
        for hit in hits.candidates(response, "dense", request.fields)
    ]


def _leg_entries(
    request: SearchRequest, found: hits.RankedHits, clauses: dsl.Clauses, size: int
) -> SearchPlan[list[hits.ScoredDoc]]:
    """Those of ``hybrid`` and of modes of one leg, without those that match nothing."""
    how, fields = found.how, request.fields
    bodies = {
        leg: dsl.body(hybrid.leg_query(leg, request, *clauses), size, fields, source=False)
        for leg in hybrid.legs_of(request)
        if leg != "dense"
    }
    if request.setting.mode == "hybrid":
        among = [*clauses, *request.filters.clauses]
        bodies["dense"] = dsl.exact(vector_of(request.question), among, size, fields)
    legs = zip(bodies, (yield tuple(bodies.values())), strict=True)
    union = hits.union(hits.candidates(response, leg, fields) for leg, response in legs)
    unretrieved, bonus = hybrid.needs_run_scores(request), abs(how.bonus)

    def score(one: hits.ScoredDoc) -> float:
        if unretrieved and one.id in found.retrieved:
            return found.retrieved[one.id]
        base = 0.0 if unretrieved else hybrid.base_score(one, request, how.ranges)
        return base + bonus * request.prefers(one.language)

    return [one._replace(score=score(one)) for one in union.values()]
