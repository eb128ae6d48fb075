"""One request to the live cluster, and what came back."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import failure
from langshift.hidden import hide


class Request(NamedTuple):
    """One search, ready to be sent.

    Attributes:
        place: which of the indices is asked, counted from 0.
        target: that index.
        query: the query's id.
        body: the request's body as JSON.
        due: seconds after the start at which it is to be sent; None: as soon as somebody is free.
    """

    place: int
    target: str
    query: str
    body: bytes
    due: float | None = None


class Answer(NamedTuple):
    """What came back for one query.

    Attributes:
        query: the query's id.
        hits: document ids and scores, best first; empty where the query failed.
        took: milliseconds that the server says it took; None where the query failed.
        wall: milliseconds until the client had the parsed answer, from when the query was due, or
            from sending it where it was not due at any time; None where the query failed.
        error: why the query failed, in a sentence, or None.
        waited: milliseconds between when the query was due and when it was sent.
        reached: whether there was a cluster to answer, be it with an error.
        sent: whether the query was sent at all.
    """

    query: str
    hits: tuple[tuple[str, float], ...] = ()
    took: float | None = None
    wall: float | None = None
    error: str | None = None
    waited: float = 0.0
    reached: bool = True
    sent: bool = True


def ask(client: OpenSearch, request: Request, due: float | None = None) -> Answer:
    """Send one request and read the answer.

    Args:
        client: the cluster.
        request: what to send.
        due: the clock's time (``perf_counter``) at which it should have been sent; None: now.
    """
    sent = perf_counter()
    waited = 0.0 if due is None else max(0.0, sent - due) * 1000
    try:
        response = client.search(index=request.target, body=request.body)
    except OpenSearchException as error:
        reached = not isinstance(error, UnreachableError)
        return Answer(request.query, error=str(failure(error)), waited=waited, reached=reached)
    wall = waited + (perf_counter() - sent) * 1000
    try:
        return _read(request.query, response)._replace(wall=wall, waited=waited)
    except (KeyError, TypeError, ValueError):
        told = f"The cluster gave an answer that cannot be read: {hide(str(response))[:200]}."
    except _PartError as error:
        told = str(error)
    return Answer(request.query, error=told, waited=waited)


class _PartError(Exception):
    """Not all shards answered."""


def _read(query: str, response: Any) -> Answer:  # noqa: ANN401 - whatever the cluster sent
    shards = response["_shards"]
    if response["timed_out"] or shards["failed"]:
        raise _PartError(f"The cluster answered from {shards['successful']} of {shards['total']} shards only.")
    hits = tuple([(hit["_id"], float(hit["_score"])) for hit in response["hits"]["hits"]])
    return Answer(query, hits, float(response["took"]))
