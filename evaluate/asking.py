"""Sending a dataset's queries to the live cluster, one after the other, and timing each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import failure

WARM_UP = 5
GIVE_UP_AFTER = 10


class Answer(NamedTuple):
    """What came back for one query.

    Attributes:
        query: the query's id.
        hits: document ids and scores, best first; empty where the query failed.
        took: milliseconds that the server says it took; None where the query failed.
        wall: milliseconds until the client had the parsed answer; None where the query failed.
        error: why the query failed, in a sentence, or None.
    """

    query: str
    hits: tuple[tuple[str, float], ...] = ()
    took: float | None = None
    wall: float | None = None
    error: str | None = None


def ask_all(
    client: OpenSearch,
    index: str,
    requests: Sequence[tuple[str, dict[str, Any]]],
    on_answer: Callable[[], None],
) -> Iterator[Answer]:
    """Send every query and yield its answer, in order; a failed query is an answer with an error.

    A few queries are sent first without being counted, so that no figure is of a cold cluster.
    When ``GIVE_UP_AFTER`` queries in a row find no cluster, the rest are not sent, and are errors too.

    Args:
        client: the cluster.
        index: the index to search.
        requests: query ids and the bodies of their searches.
        on_answer: called after each query.
    """
    for query, body in requests[:WARM_UP]:
        _ask(client, index, query, body)
    unreachable = 0
    for query, body in requests:
        if unreachable >= GIVE_UP_AFTER:
            answer = Answer(query, error=f"Not sent: {GIVE_UP_AFTER} queries in a row found no cluster.")
        else:
            answer, reached = _ask(client, index, query, body)
            unreachable = 0 if reached else unreachable + 1
        yield answer
        on_answer()


def _ask(client: OpenSearch, index: str, query: str, body: dict[str, Any]) -> tuple[Answer, bool]:
    """Send one query; the answer, and whether there was a cluster to give it."""
    start = perf_counter()
    try:
        response = client.search(index=index, body=body)
    except OpenSearchException as error:
        return Answer(query, error=str(failure(error))), not isinstance(error, UnreachableError)
    wall = (perf_counter() - start) * 1000
    shards = response["_shards"]
    if response["timed_out"] or shards["failed"]:
        told = f"The cluster answered from {shards['successful']} of {shards['total']} shards only."
        return Answer(query, error=told), True
    hits = tuple((hit["_id"], float(hit["_score"])) for hit in response["hits"]["hits"])
    return Answer(query, hits, float(response["took"]), wall), True
