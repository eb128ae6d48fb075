"""Many exchanges carried out side by side, the bodies of many in one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError
from langshift.failures import failure
from langshift.retrieval.exchange import Body, Exchange, Response, advance, answers, lines

T = TypeVar("T")

_BODIES_AT_ONCE = 100
_BYTES_AT_ONCE = 4_000_000


def carry_out_all(client: OpenSearch, index: str, exchanges: Iterable[Exchange[T]]) -> Iterator[T | LangshiftError]:
    """Carry out many exchanges with a cluster, about a hundred searches or 4 MB to a request.

    Args:
        client: the cluster.
        index: what to search.
        exchanges: as the functions of ``modes`` make them; a hundred at a time are taken.

    Yields:
        What each exchange returns, in their order, or the error that ended it.
    """
    coming = iter(exchanges)
    while wave := [_Running(exchange) for exchange in islice(coming, _BODIES_AT_ONCE)]:
        while waiting := [running for running in wave if running.bodies]:
            for together, content in _requests(waiting):
                _ask(client, index, together, content)
        for running in wave:
            yield running.outcome


class _Running(Generic[T]):
    """An exchange that is under way.

    Attributes:
        bodies: whose answers it waits for; none once it has ended.
        outcome: what it returned or why it failed, once it has ended.
    """

    outcome: T | LangshiftError

    def __init__(self, exchange: Exchange[T]) -> None:
        self._exchange = exchange
        self.bodies: Sequence[Body] = ()
        self._go(None)

    def take(self, responses: Sequence[Response]) -> None:
        """Go on with the answers."""
        self._go(responses)

    def fail(self, error: LangshiftError) -> None:
        """End with an error."""
        self._exchange.close()
        self.outcome, self.bodies = error, ()

    def _go(self, responses: Sequence[Response] | None) -> None:
        try:
            self.bodies = next(self._exchange) if responses is None else advance(self._exchange, responses)
        except StopIteration as end:
            self.outcome, self.bodies = end.value, ()
        except LangshiftError as error:
            self.fail(error)


def _requests(waiting: Sequence[_Running[T]]) -> Iterator[tuple[list[_Running[T]], bytes]]:
    """Put the bodies of several exchanges together to requests of bounded size."""
    together: list[_Running[T]] = []
    content, count = bytearray(), 0
    for running in waiting:
        together.append(running)
        content += lines(running.bodies)
        count += len(running.bodies)
        if count >= _BODIES_AT_ONCE or len(content) >= _BYTES_AT_ONCE:
            yield together, bytes(content)
            together, content, count = [], bytearray(), 0
    if together:
        yield together, bytes(content)


def _ask(client: OpenSearch, index: str, together: Sequence[_Running[T]], content: bytes) -> None:
    count = sum(len(running.bodies) for running in together)
    try:
        responses = iter(answers(client.msearch(index=index, body=content), count))
    except (OpenSearchException, LangshiftError) as error:
        for running in together:
            running.fail(error if isinstance(error, LangshiftError) else failure(error))
        return
    for running in together:
        running.take(list(islice(responses, len(running.bodies))))
