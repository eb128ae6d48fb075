"""The order and the pages of a search: hits sorted by a field, and cut from one ranking at a point in time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, TransportError

from langshift.errors import LangshiftError, UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl, hits
from langshift.retrieval.entries import with_sources
from langshift.retrieval.filters import FieldCheck
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import Body, HttpRequest, Response, SearchPlan, ShardBody, T, altered
from langshift.retrieval.question import SearchRequest
from langshift.retrieval.request import MOST_RANKED, SearchSettings
from langshift.retrieval.search import with_passages
from langshift.server_errors import reason

#: How long a point in time lasts after each page.
KEPT: Final = "5m"
# What the server says of a point in time that is over, or never was.
_NONE: Final = ("No search context found", "invalid id", "Unsupported version", "no such index")

Sort = tuple[Mapping[str, Any], ...]
# A search in a mode, with its reranker.
_Search = Callable[[SearchRequest], SearchPlan[hits.RankedHits]]


def sort_clauses(given: Sequence[str], fields: FieldCheck) -> Sort:
    """The clauses that ``year:desc`` or several of its kind stand for; what lacks the field comes last.

    Raises:
        UsageError: there is no such field, or it cannot be sorted by.
    """
    clauses = []
    for text in given:
        name, _, order = text.rpartition(":")
        if order not in {"asc", "desc"} or not name:
            name, order = text, "asc"
        clauses.append({fields.exact(name, "sort", ordered=True): {"order": order, "missing": "_last"}})
    return tuple(clauses)


def sorts_all(setting: SearchSettings) -> bool:
    """Whether a sort is of all that match; else it is of the hits that were found."""
    ranked = setting.preference or setting.rerank is not None or setting.one_per_group
    return MODES[setting.mode].sorts and not ranked


def arranged(request: SearchRequest, search: _Search) -> SearchPlan[hits.RankedHits]:
    """A search with its hits in another order, or one page of its ranking.

    Args:
        request: what is searched for, sorted or from a start on.
        search: with or without a reranker.

    Raises:
        UsageError: the ranking ends before the page.
    """
    start, sort = request.start, request.sort
    deep = replace(request, size=request.size if start is None else MOST_RANKED, source=False, passages=0)
    if start is not None and MODES[deep.setting.mode].by_counts:
        # What it reckons with is counted at the point in time, too.
        index = yield from _recounted(deep.target.index)
        deep = replace(deep, target=replace(deep.target, index=index))
    if not sorts_all(deep.setting):
        deep = replace(deep, sort=())
    found = yield from search(deep)
    ranked = found.hits
    if sort and not deep.sort and ranked:
        ranked = yield from _sorted(ranked, sort, deep)
    first = start or 0
    if first and first >= len(ranked):
        raise UsageError(f"The ranking ends after {len(ranked):,} hits, so there is no page that begins at {first:,}.")
    shown = yield from with_sources(request, ranked[first : first + request.size])
    found = found._replace(hits=shown, depth=len(ranked))
    return (yield from with_passages(request, found)) if request.passages else found


def _recounted(index: IndexInfo) -> SearchPlan[IndexInfo]:
    """The index with its documents counted again, by language."""
    by_language = {"languages": {"terms": {"field": index.fields.language, "size": 1000}}}
    (response,) = yield ({"size": 0, "track_total_hits": True, "aggs": by_language},)
    buckets = response["aggregations"]["languages"]["buckets"]
    counts = {one["key"]: int(one["doc_count"]) for one in buckets if one["key"] != UNDETERMINED}
    total = int(response["hits"]["total"]["value"])
    return replace(index, counts=counts, languages=tuple(counts), documents=total)


def _sorted(
    found: Sequence[hits.ScoredDoc], sort: Sort, request: SearchRequest
) -> SearchPlan[tuple[hits.ScoredDoc, ...]]:
    """Hits sorted by the server; those with equal values stay in their order."""
    places = {hit.id: place for place, hit in enumerate(found)}
    body = dsl.body(dsl.among(list(places)), len(places), request.fields, source=False)
    (response,) = yield ({**body, "sort": list(sort), "track_scores": True},)
    same = groupby(response["hits"]["hits"], key=lambda hit: hit["sort"])
    return tuple(found[place] for _, equal in same for place in sorted(places[hit["_id"]] for hit in equal))


def open_point_in_time(client: OpenSearch, index: str) -> tuple[str, HttpRequest]:
    """Open a point in time of an index, which lasts five minutes after each search.

    Returns:
        Its id, and the request.
    """
    found = client.create_pit(index=index, params={"keep_alive": KEPT, "allow_partial_pit_creation": "false"})
    path = f"/{index}/_search/point_in_time?keep_alive={KEPT}&allow_partial_pit_creation=false"
    return found["pit_id"], HttpRequest("POST", path, b"")


def at_point_in_time(plan: SearchPlan[T], point_in_time: str, index: IndexInfo) -> SearchPlan[T]:
    """The plan, each of whose searches is of the index as it was at a point in time.

    Raises:
        UsageError: the point in time is of another index.
    """

    def change(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
        return tuple(_body_at(body, point_in_time, index) for body in bodies)

    def look(responses: Sequence[Response]) -> None:
        for hit in (hit for response in responses for hit in response["hits"]["hits"]):
            if hit.get("_index", index.index) != index.index:
                raise UsageError(
                    f"The point in time is of {hit['_index']}, but {index.name} now stands for {index.index}: ask for "
                    "the first page again, without a point in time."
                )

    return altered(plan, change, look)


def _body_at(body: Body, point_in_time: str, index: IndexInfo) -> Body:
    at = {**body, "pit": {"id": point_in_time, "keep_alive": KEPT}}
    if isinstance(body, ShardBody):
        # As many slices as shards are these shards; a preference is not taken with a point in time.
        at["slice"] = {"id": body.shard, "max": index.shards}
    return at


def expired(error: OpenSearchException | LangshiftError) -> UsageError | None:
    """The error for a search at a point in time that is over or was never there; None where that is not why."""
    said = reason(error) if isinstance(error, TransportError) else str(error)
    if not any(words in said for words in _NONE):
        return None
    return UsageError(
        "The point in time has expired, or is not one of this cluster's: ask for the first page again, without a "
        "point in time."
    )
