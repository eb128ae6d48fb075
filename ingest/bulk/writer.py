"""Sending chunks from threads of their own, while the next ones are made."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opensearchpy import OpenSearch

from langshift.client import address, make_client
from langshift.ingest.bulk.chunks import MOST, ActionResult, BulkAction, BulkChunk, Chunker
from langshift.ingest.bulk.delivery import ChunkSender, Stopped
from langshift.plugin.version_writer import require_not_replaced
from langshift.plugin.versions import Target
from langshift.retry import RetryBudget
from langshift.settings import Settings

# Chunks that wait for a thread: enough that no thread idles, few enough that memory stays bounded.
_WAITING = 2
#: Chunks that have been handed over and are not delivered, at most.
UNDELIVERED = MOST + _WAITING


class SenderPool:
    """Delivers chunks in the background; the first error of a delivery is raised by the next call.

    ``with`` ends the threads: after the block's end all was delivered, or nothing is under way any more.
    """

    def __init__(self, deliver: Callable[[BulkChunk], None], stopping: threading.Event) -> None:
        """Start the threads.

        Args:
            deliver: delivers a chunk; called from several threads at once.
            stopping: set here when nothing is to be sent any more.
        """
        self._deliver = deliver
        self._stopping = stopping
        self._waiting: deque[BulkChunk] = deque()
        self._flying: list[BulkChunk] = []
        self._error: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, name=f"bulk-{n}", daemon=True) for n in range(MOST)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> SenderPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._changed:
            if kind is not None:
                self._stopping.set()
                self._waiting.clear()
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def idle(self) -> bool:
        """Whether nothing waits or is under way."""
        with self._changed:
            return not self._waiting and not self._flying

    def submit(self, chunk: BulkChunk) -> None:
        """Have a chunk delivered; waits while enough others are waiting.

        A chunk that deletes a document, or writes one whose delete is not through, waits for that: the server
        forgets a delete's version after a while.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._may_follow(chunk))
            self._raise()
            self._waiting.append(chunk)
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until everything is delivered."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or not (self._waiting or self._flying))
            self._raise()

    def _may_follow(self, chunk: BulkChunk) -> bool:
        return len(self._waiting) < _WAITING and not any(
            (earlier.deleted and not chunk.ids.isdisjoint(earlier.deleted))
            or (chunk.deleted and not chunk.deleted.isdisjoint(earlier.ids))
            for earlier in (*self._waiting, *self._flying)
        )

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                chunk = self._waiting.popleft()
                self._flying.append(chunk)
                self._changed.notify_all()
            error: BaseException | None = None
            try:
                self._deliver(chunk)
            except Stopped:
                pass
            except BaseException as caught:  # told to the thread that submits
                error = caught
            with self._changed:
                self._flying.remove(chunk)
                del chunk
                if error is not None:
                    self._error = self._error or error
                    self._stopping.set()
                    self._waiting.clear()
                self._changed.notify_all()


class BulkWriter:
    """Takes items in their order.

    Attributes:
        courier: delivers them.
    """

    def __init__(self, chunk_sender: ChunkSender, sender: SenderPool) -> None:
        self.chunk_sender = chunk_sender
        self._sender = sender
        self._chunker = Chunker()

    def send(self, item: BulkAction) -> None:
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

    def _submit(self, chunk: BulkChunk | None) -> None:
        if chunk is not None:
            self._sender.submit(chunk)


@contextmanager
def open_bulk_writer(
    client: OpenSearch,
    target: Target,
    settle: Callable[[list[ActionResult]], None],
    patience: float,
    doubtful: int = 0,
) -> Iterator[BulkWriter]:
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
        chunk_sender = ChunkSender(
            sending,
            target.bulk_parameters,
            settle,
            RetryBudget(patience),
            stopping,
            doubtful,
            lambda: require_not_replaced(client, target),
        )
        with SenderPool(chunk_sender.deliver, stopping) as sender:
            stream = BulkWriter(chunk_sender, sender)
            yield stream
            stream.drain()
