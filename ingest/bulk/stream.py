"""Items in, each of them settled: gathered to chunks, which are delivered while the next are made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opensearchpy import OpenSearch

from langshift.cluster import address, make_client
from langshift.ingest.bulk.chunks import Chunker
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.item import Chunk, Item, Outcome
from langshift.ingest.bulk.sender import Sender
from langshift.patience import Patience
from langshift.plugin.carried import require_not_replaced
from langshift.plugin.target import Target
from langshift.settings import Settings


class Stream:
    """Takes items in their order.

    Attributes:
        courier: delivers them.
    """

    def __init__(self, courier: Courier, sender: Sender) -> None:
        self.courier = courier
        self._sender = sender
        self._chunker = Chunker()

    def send(self, item: Item) -> None:
        """Have the next item delivered; waits while enough others are waiting."""
        self._submit(self._chunker.add(item))

    def flush_if_idle(self) -> None:
        """Have what was gathered delivered if nothing else is: a slow encoder fills no chunk for a long time."""
        if self._sender.idle:
            self._submit(self._chunker.take())

    def drain(self) -> None:
        """Wait until everything is delivered."""
        self._submit(self._chunker.take())
        self._sender.drain()

    def _submit(self, chunk: Chunk | None) -> None:
        if chunk is not None:
            self._sender.submit(chunk)


@contextmanager
def open_stream(
    client: OpenSearch,
    target: Target,
    settle: Callable[[list[Outcome]], None],
    patience: float,
    doubtful: int = 0,
) -> Iterator[Stream]:
    """Open a stream of items; when the block ends all are settled, or after an error nothing is under way any more.

    Args:
        client: the cluster.
        target: where the items go.
        settle: as for ``Courier``, as is ``doubtful``.
        patience: seconds for which trouble is borne.
        doubtful: up to this line an earlier run may have sent lines whose answers it did not live to see.

    Raises:
        ClusterError: the cluster takes nothing, or another version has taken the target's place.
    """
    stopping = threading.Event()
    # The client must not send again by itself: what was sent, and how often, is counted here.
    with make_client(Settings.from_env(), address(client), retries=0) as sending:
        courier = Courier(
            sending,
            target.bulk_parameters,
            settle,
            Patience(patience),
            stopping,
            doubtful,
            lambda: require_not_replaced(client, target),
        )
        with Sender(courier.deliver, stopping) as sender:
            stream = Stream(courier, sender)
            yield stream
            stream.drain()
