"""A search as an exchange of bodies and answers, so that a client, an asynchronous one and a replay can carry it out.

A mode is a generator: it yields the bodies of one step, is sent the answers, and returns what it found. A step of one
body is one ``_search``, a step of several is one ``_msearch``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from langshift.errors import ClusterError, UnavailableError
from langshift.failures import closed, not_permitted
from langshift.hidden import hide

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch, OpenSearch

Body = dict[str, Any]
Response = Mapping[str, Any]
T = TypeVar("T")
Exchange = Generator[tuple[Body, ...], Sequence[Response], T]


class ShardBody(dict[str, Any]):
    """A body that asks one shard alone; it can only be sent in an ``_msearch``.

    Attributes:
        shard: which, counted from 0.
    """

    def __init__(self, body: Body, shard: int) -> None:
        """Make it of the body for all shards."""
        super().__init__(body)
        self.shard = shard


def carry_out(client: OpenSearch, index: str, exchange: Exchange[T]) -> T:
    """Carry out an exchange with a cluster.

    Args:
        client: the cluster.
        index: what to search.
        exchange: as the functions of ``modes`` make them.

    Returns:
        What the exchange returns.

    Raises:
        ClusterError: a search failed, or not all shards answered.
        OpenSearchException: the cluster did not answer as it should.
    """
    try:
        bodies = next(exchange)
        while True:
            if alone(bodies):
                responses = [client.search(index=index, body=one(bodies[0]))]
            else:
                responses = answers(client.msearch(index=index, body=lines(bodies)), len(bodies))
            bodies = advance(exchange, responses)
    except StopIteration as end:
        result: T = end.value
        return result


async def carry_out_async(client: AsyncOpenSearch, index: str, exchange: Exchange[T]) -> T:
    """Carry out an exchange with a cluster's asynchronous client; all else is as in ``carry_out``."""
    try:
        bodies = next(exchange)
        while True:
            if alone(bodies):
                responses = [await client.search(index=index, body=one(bodies[0]))]
            else:
                responses = answers(await client.msearch(index=index, body=lines(bodies)), len(bodies))
            bodies = advance(exchange, responses)
    except StopIteration as end:
        result: T = end.value
        return result


def advance(exchange: Exchange[Any], responses: Sequence[Response]) -> tuple[Body, ...]:
    """Send an exchange the answers to a step, as they came, whoever carries it out.

    Returns:
        The bodies of the next step.

    Raises:
        StopIteration: the exchange has ended; its value is what the exchange returns.
        ClusterError: an answer is an error, not of all shards, or cannot be read.
    """
    whole = [complete(response) for response in responses]
    try:
        return exchange.send(whole)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ClusterError(_unreadable(whole[0] if len(whole) == 1 else whole)) from error


def timed(exchange: Exchange[T]) -> Exchange[tuple[T, float]]:
    """The exchange, which also returns the milliseconds that the server says it took, all steps together.

    The searches of one step are carried out side by side: the slowest counts.
    """
    took = 0.0
    try:
        bodies = next(exchange)
        while True:
            responses = yield bodies
            took += max(float(response["took"]) for response in responses)
            bodies = exchange.send(responses)
    except StopIteration as end:
        return end.value, took


def alone(bodies: Sequence[Body]) -> bool:
    """Whether a step is one ``_search``."""
    return len(bodies) == 1 and not isinstance(bodies[0], ShardBody)


def one(body: Body) -> bytes:
    """The content of a ``_search``."""
    return orjson.dumps(body)


def lines(bodies: Sequence[Body]) -> bytes:
    """The content of an ``_msearch``."""
    return b"".join(_header(body) + orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE) for body in bodies)


def _header(body: Body) -> bytes:
    return b'{"preference":"_shards:%d"}\n' % body.shard if isinstance(body, ShardBody) else b"{}\n"


def answers(response: Response, count: int) -> list[Response]:
    """The parts of the answer to an ``_msearch``, not looked at yet.

    Args:
        response: the answer.
        count: how many bodies were sent.

    Raises:
        ClusterError: there are no parts, or not as many.
    """
    parts = response.get("responses") if isinstance(response, Mapping) else None
    if not isinstance(parts, list) or len(parts) != count:
        raise ClusterError(_unreadable(response))
    return parts


def complete(response: Response) -> Response:
    """The response to one search, which is whole.

    Raises:
        ClusterError: the search failed, took too long, or was answered by some of its shards only.
    """
    try:
        if "error" in response:
            said = _words(response["error"])
            told = f"The cluster answered {response.get('status')}: {said.rstrip('.;')[:300]}."
            kind = UnavailableError if response.get("status") in (429, 503) else ClusterError
            raise not_permitted(said) or kind(told)
        shards = response["_shards"]
        if response["timed_out"] or shards["failed"]:
            told = f"The cluster answered from {shards['successful']} of {shards['total']} shards only."
            raise UnavailableError(told)
        # What is read of it later.
        _ = response["took"], [(hit["_id"], float(hit["_score"])) for hit in response["hits"]["hits"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ClusterError(_unreadable(response)) from None
    return response


def _words(error: object) -> str:
    """The server's words for why, with those of the innermost cause."""
    if not isinstance(error, Mapping):
        return hide(" ".join(str(error).split()))
    if told := closed(error):
        return told
    roots = error.get("root_cause") or [{}]
    said = [error.get("reason") or error.get("type"), roots[0].get("reason")]
    return hide(" ".join(": ".join(dict.fromkeys(str(part) for part in said if part)).split()))


def _unreadable(response: object) -> str:
    return f"The cluster gave an answer that cannot be read: {hide(str(response))[:200]}."
