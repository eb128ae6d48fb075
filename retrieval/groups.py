"""One hit for each translation group, and documents out of chunks: searched for deeper until there are enough."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import remove_at
from langshift.retrieval import dsl, hits
from langshift.retrieval.entries import score_entries, scores
from langshift.retrieval.hits import RankedHits, ScoredDoc
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import Response, SearchPlan, altered
from langshift.retrieval.question import SearchRequest

# At most so many times as deep as before, and so many times as deep as it seems needed.
_DEEPEST: Final = 4
_MARGIN: Final = 1.5
_FULL: Final = (
    f"The groups found have {dsl.MOST:,} or more documents in addition to those that the search itself found: the rest "
    "is not shown."
)
_DEEPEST_CHUNKS: Final = (
    f"There may be more documents: the best {dsl.MOST:,} passages, the most that a search looks at, are of these alone."
)


def one_per_group(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search for groups.

    A group stands where its best document would, and has that document's score. Documents without a group stand
    for themselves. What is inside a hit is filtered as the hits are.
    """
    plain = replace(request, setting=request.setting.but(one_per_group=False))
    found = yield from enough(request)
    # By group, or by id where a document is in none.
    groups: dict[tuple[str, str], list[ScoredDoc]] = {}
    for hit in found.hits:
        groups.setdefault(hits.key_of(hit, request.fields), []).append(hit)
    chosen = dict(list(groups.items())[: request.size])
    seen = [candidate for members in chosen.values() for candidate in members]
    if not seen:
        return found._replace(hits=())
    fields, source = request.fields, request.source
    brings = source if source is True else [*(source or ()), fields.group]
    named = [name for kind, name in chosen if kind == "group"]
    without = [one.document for one in seen]
    bodies = [dsl.members_body(replace(request, source=brings), named, without)]
    if source:
        bodies.append(dsl.named([one.id for one in seen], fields, brings))
    others, *known = yield tuple(bodies)
    members = hits.without_legs(others, fields)
    if fields.parent is not None and any(one.parent is None for one in members):
        (others,) = yield (dsl.members_body(replace(request, source=brings, collapses=False), named, without),)
        members = hits.one_per_document(hits.without_legs(others, fields))
    # A document of several groups is in the first of them alone.
    inside = [one for one in members if hits.key_of(one, fields) in chosen]
    if fields.parent is None:
        scored = (yield from scores(plain, found.how, [one.id for one in inside])) if inside else {}
        inside = [one._replace(score=scored[one.id]) for one in inside]
    else:
        inside, texts = yield from _best_passages(replace(plain, source=brings if source else False), found, inside)
        known += texts
    for one in inside:
        chosen[hits.key_of(one, fields)].append(one)
    sources = {one.id: dict(one.source) for one in inside} | hits.sources(known)
    if not (source is True or any(f"{fields.group}.".startswith(f"{name}.") for name in source or ())):
        # Nobody asked for the group.
        sources = deepcopy(sources)
        for brought in sources.values():
            remove_at(brought, fields.group)
    heads = []
    for candidates in chosen.values():
        shown = [one._replace(source=sources.get(one.id, {})) for one in hits.best_first(candidates)]
        own = [one for one in shown if one.language == request.question.language != UNDETERMINED]
        head = (own or shown)[0]
        # The first is the one by which the group was found.
        score = candidates[0].score
        heads.append(head._replace(score=score, others=tuple(one for one in shown if one.id != head.id)))
    full = len(others["hits"]["hits"]) == dsl.MOST
    return found._replace(hits=tuple(heads), notes=(*found.notes, _FULL) if full else found.notes)


def _best_passages(
    request: SearchRequest, found: RankedHits, documents: Sequence[ScoredDoc]
) -> SearchPlan[tuple[list[ScoredDoc], Sequence[Response]]]:
    """Each document by its best chunk, with its score; and the answers that bring these chunks' fields, if asked for.

    One that matches nothing stays as it is, without a score.
    """
    scored = hits.best_first((yield from score_entries(request, found, [one.document for one in documents])))
    best = {one.document: one for one in hits.one_per_document(scored)}
    chosen = [best.get(one.document, one._replace(score=None))._replace(source=one.source) for one in documents]
    texts = (dsl.named([one.id for one in chosen], request.fields, request.source),) if request.source else ()
    return chosen, (yield texts) if chosen and texts else ()


def enough(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search deeper and deeper, until there are as many groups or documents as are wanted, or no more of them.

    In the hits of an index of whole documents a group may be there several times, with all that was found of it.

    Raises:
        UsageError: as in the search of the mode.
    """
    mode, grouped, size = MODES[request.setting.mode], request.setting.one_per_group, request.size
    chunks, fields = request.fields.parent is not None, request.fields
    depth = min(max(request.depth, size * 2 if grouped else size), dsl.MOST)
    # Of whole documents all are ranked, and then the groups; so are the few that some modes find.
    apart = grouped and (mode.few or not chunks)
    if grouped:
        setting = request.setting.but(one_per_group=not apart)
        # Our plugin's query does not look deeper.
        target = replace(request.target, native=False)
        request = replace(request, setting=setting, target=target, source=[fields.group])
    while True:
        wide = 2 * depth * request.target.index.shards if mode.wide else depth
        work = mode.plan(replace(request, depth=depth, size=min(dsl.MOST, wide) if apart else size))
        answers = list[Response]()
        # What is found leaves out what is of a group that is there already.
        found = yield from altered(work, look=answers.extend) if chunks and request.collapses else work
        if any(one.parent is None for response in answers for one in hits.without_legs(response, fields)):
            request = replace(request, collapses=False)
            continue
        missing = found.missing
        if apart and not chunks and len(found.hits) >= depth:
            missing = size / len({hits.key_of(hit, fields) for hit in found.hits})
        if missing <= 1:
            return found
        if depth == dsl.MOST:
            return found._replace(notes=(*found.notes, *((_DEEPEST_CHUNKS,) if chunks else ())))
        # As deep as would do if groups came on as they have so far, and half as deep again.
        depth = min(math.ceil(depth * min(_DEEPEST, _MARGIN * missing)), dsl.MOST)
