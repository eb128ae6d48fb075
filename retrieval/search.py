"""A search in any mode: of documents or of groups, with further passages; nothing here sends."""

from dataclasses import replace

from langshift.retrieval import groups
from langshift.retrieval.entries import score_entries, sources_of
from langshift.retrieval.hits import RankedHits, ScoredDoc, by_score
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchRequest


def search(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search without a reranker: a plan, to be carried out by ``plans.execute`` or its like.

    Args:
        request: in a mode that ``Searcher.resolve`` gives: not ``auto``, and not ``anchored`` of no strength.

    Returns:
        Of the plan: the hits, best first. With ``one_per_group`` a hit stands where the best document of its
        group would, has that document's score, and the group's other documents inside.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    mode = MODES[request.setting.mode]
    if request.setting.one_per_group:
        work = groups.one_per_group(request)
    elif request.fields.parent is not None and not mode.by_plugin(request):
        work = groups.enough(request)
    else:
        work = mode.plan(request if request.depth >= request.size else replace(request, depth=request.size))
    return _then_passages(request, work) if request.passages else work


def _then_passages(request: SearchRequest, work: SearchPlan[RankedHits]) -> SearchPlan[RankedHits]:
    found = yield from work
    return (yield from with_passages(request, found))


def with_passages(request: SearchRequest, found: RankedHits) -> SearchPlan[RankedHits]:
    """What was found with further passages of each hit: one step that scores them, and one for their texts."""
    # Chunks of one document are ordered by what the mode says of them.
    plain = replace(request, setting=request.setting.retrieval)
    scored = yield from score_entries(plain, found, [hit.document for hit in found.hits])
    shown = {hit.id for hit in found.hits}
    further: dict[str, list[ScoredDoc]] = {}
    for one in sorted(scored, key=by_score):
        if one.id not in shown and len(members := further.setdefault(one.document, [])) < request.passages:
            members.append(one)
    if not further:
        return found
    texts = yield from sources_of(request, [one.id for members in further.values() for one in members])
    passages = {
        name: tuple(one._replace(source=texts.get(one.id, {})) for one in members) for name, members in further.items()
    }
    return found._replace(hits=tuple(hit._replace(passages=passages.get(hit.document, ())) for hit in found.hits))
