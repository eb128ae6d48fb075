"""Documents that are known by their ids: what a search gives them, and their fields."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langshift.retrieval import dsl, hits
from langshift.retrieval.filters import NO_FILTER
from langshift.retrieval.hits import RankedHits, ScoredDoc, ScoringContext
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchRequest


def scores(request: SearchRequest, how: ScoringContext, ids: Sequence[str]) -> SearchPlan[dict[str, float | None]]:
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
    known = MODES[request.setting.mode].known
    if known is not None:
        how = yield from known(request, how)
    # Of what the run knows of a document not all chunks are a part: one that it did not retrieve may have the bonus.
    rest = [name for name in ids if name not in how.run_scores or request.fields.parent is not None]
    given: dict[str, float | None] = {name: how.run_scores.get(name) for name in ids}
    for one in (yield from score_entries(replace(request, filters=NO_FILTER), RankedHits((), how), rest)):
        best = given[one.document]
        given[one.document] = one.score if best is None else max(best, one.score or 0.0)
    return given


def score_entries(request: SearchRequest, found: RankedHits, ids: Sequence[str]) -> SearchPlan[list[ScoredDoc]]:
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
    clauses = dsl.of_documents(ids, request.fields)
    size = len(ids) if request.fields.parent is None else dsl.MOST
    scored = yield from MODES[request.setting.mode].score(request, found, clauses, size)
    if len(scored) < dsl.MOST or len(ids) == 1 or request.fields.parent is None:
        return scored
    # Some may be left out: of the documents' chunks one search brings no more.
    half = len(ids) // 2
    first = yield from score_entries(request, found, ids[:half])
    return first + (yield from score_entries(request, found, ids[half:]))


def sources_of(request: SearchRequest, ids: Sequence[str]) -> SearchPlan[dict[str, dict[str, Any]]]:
    """Entry -> the fields that the request wants, of entries that are known; one step, for one entry at least."""
    parts = [ids[start : start + dsl.MOST] for start in range(0, len(ids), dsl.MOST)]
    return hits.sources((yield tuple(dsl.named(part, request.fields, request.source) for part in parts)))


def with_sources(request: SearchRequest, found: Sequence[ScoredDoc]) -> SearchPlan[tuple[ScoredDoc, ...]]:
    """The hits with the fields that are wanted; one step, where any are."""
    inside = [one for hit in found for one in (hit, *hit.others)]
    if not inside or not request.source:
        return tuple(found)
    sources = yield from sources_of(request, [one.id for one in inside])

    def with_source(one: ScoredDoc) -> ScoredDoc:
        return one._replace(source=sources.get(one.id, {}))

    return tuple(with_source(hit)._replace(others=tuple(map(with_source, hit.others))) for hit in found)
