"""Operations on their way: gathered to chunks by count and size, and sent from threads while the next ones are made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, Literal, NamedTuple

import orjson

from langshift.ingest.documents import Original, Update

#: Requests at once at most: one thread each, and far below the client's pool of connections.
MOST = 8
_FIRST = 2


class AdaptiveLimit:
    """Additive increase, multiplicative decrease.

    Each request that goes through raises the limit by a part that makes up one more a round; a request that found
    the cluster overloaded halves it, but not once more for one that was under way at that time.

    Attributes:
        seconds: how long at least one request was under way.
    """

    def __init__(self, most: int = MOST) -> None:
        self.seconds = 0.0
        self._most = most
        self._limit = float(min(_FIRST, most))
        self._in_flight = 0
        self._round = 0
        self._since = 0.0
        self._changed = threading.Condition()

    @property
    def at_once(self) -> int:
        """Requests that may be under way at once."""
        return int(self._limit)

    @contextmanager
    def request(self) -> Iterator[Slot]:
        """Wait for a turn; what the block finds out is told to the turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight < int(self._limit))
            self._in_flight += 1
            if self._in_flight == 1:
                self._since = time.perf_counter()
            turn = Slot(self._round)
        try:
            yield turn
        finally:
            with self._changed:
                self._in_flight -= 1
                if self._in_flight == 0:
                    self.seconds += time.perf_counter() - self._since
                self._learn(turn)
                self._changed.notify_all()

    def _learn(self, turn: Slot) -> None:
        if turn.overloaded:
            if turn.round == self._round:
                self._limit = max(1.0, self._limit / 2)
                self._round += 1
        elif turn.accepted:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)


class Slot:
    """One request's turn.

    Attributes:
        round: how often the limit was halved before it.
        overloaded: whether the cluster had too much to do.
        accepted: whether it took everything.
    """

    def __init__(self, in_round: int) -> None:
        self.round = in_round
        self.overloaded = self.accepted = False


Operation = Literal["index", "delete", "update"]


def action_line(operation: Operation, identifier: str, version: int, routing: str | None = None) -> bytes:
    """The first line of an operation, with its line break; the arguments are those of ``body``, and the routing."""
    metadata = {"_id": identifier, "version": version, "version_type": "external_gte"}
    if routing is not None:
        metadata["routing"] = routing
    return orjson.dumps({operation: metadata}, option=orjson.OPT_APPEND_NEWLINE)


def bulk_lines(operation: Operation, identifier: str, version: int, source: dict[str, Any] | None = None) -> bytes:
    """One operation's lines of a bulk request.

    Args:
        operation: what is done.
        identifier: the document's ``_id``.
        version: its place in the order of all writes: the server keeps what has a later one, so that an operation
            sent again never undoes a newer one.
        source: the index entry; none for a delete.
    """
    lines = action_line(operation, identifier, version)
    if source is None:
        return lines
    return lines + orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


class BulkAction(NamedTuple):
    """One operation on one document.

    Attributes:
        line: where the input has it, counted from 1.
        id: the document's ``_id``.
        operation: what is done.
        body: its lines of a bulk request, each with its line break: the action, and the entry where there is one. Of an
            update empty until the document is read that it changes, and of a delete until it is known how many chunks
            the document has.
        original: the line as the input had it, for the dead letters.
        vector: the bytes of the vector that was sent, float32, and where texts are compared too their hash, of a line
            that belongs to the sample of the final check; else None.
        tallies: what to count it under once the server has confirmed it, such as ``language de``.
        update: what an update changes; else None.
        target: the ``_id`` of the chunk that it writes, where the document is cut into chunks; empty for ``id``.
        parts: how many operations the line is made of: the line has come to an end with the last of them.
    """

    line: int
    id: str
    operation: Operation
    body: bytes
    original: Original
    vector: bytes | None = None
    tallies: tuple[str, ...] = ()
    update: Update | None = None
    target: str = ""
    parts: int = 1


#: Where a document fails that can never be written.
Stage = Literal["read", "encode", "write"]


class ActionResult(NamedTuple):
    """What became of an item, for good.

    Attributes:
        item: the item; without body, and perhaps without an id, where the line never became an operation.
        state: ``done``: the server has confirmed it; ``superseded``: the server holds a later version of the document;
            ``dead``: it can never be written.
        result: the server's word where done: ``created``, ``updated``, ``deleted``, ``not_found``; ``resent`` where it
            was sent before and the answer was lost, so that nobody knows which; ``update`` of an update.
        type: the error's type where dead, such as ``mapper_parsing_exception``; else empty.
        reason: the error in words where dead; else empty.
        stage: where it failed, where dead.
        chunks: of a line whose document is cut into chunks how many the document has now, or where dead how many were
            written before one was refused; else 0.
        there: where superseded, the version that the server holds; 0 where it does not say.
    """

    item: BulkAction
    state: Literal["done", "superseded", "dead"]
    result: str = ""
    type: str = ""
    reason: str = ""
    stage: Stage = "write"
    chunks: int = 0
    there: int = 0


#: Takes what became of items for good.
Settle = Callable[[Sequence[ActionResult]], object]

#: Makes of updates what is to be written, by the documents as they are now: each as an operation that is written only
#: if nobody has written the document since, or what became of it where there is nothing to write. Of a document in
#: chunks one update, or delete, is as many operations.
Merge = Callable[[Sequence[BulkAction]], Sequence[BulkAction | ActionResult]]


class BulkChunk:
    """Items that are sent in one request, in this order.

    Attributes:
        items: the items; at least one.
    """

    def __init__(self, items: Sequence[BulkAction]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def body(self) -> bytes:
        """The request's body."""
        return b"".join([item.body for item in self.items])

    @cached_property
    def ids(self) -> frozenset[str]:
        """The documents that it writes, changes or deletes."""
        return frozenset(item.id for item in self.items)

    @cached_property
    def ordered(self) -> frozenset[str]:
        """The documents that it deletes or updates: what comes before and after on the same one waits."""
        return frozenset(item.id for item in self.items if item.operation != "index")

    def halves(self) -> tuple[BulkChunk, BulkChunk]:
        """The first half of the items and the second; there must be two at least."""
        middle = len(self.items) // 2
        return BulkChunk(self.items[:middle]), BulkChunk(self.items[middle:])


#: More than this gains nothing (tests/bench/bench_bulk.py), and a lost answer costs as much again.
COUNT = 500
#: Far below any server's limit (http.max_content_length: 100 MB by default, 10 MB on some managed services).
SIZE = 2 << 20
# What an update counts that is not merged with its document yet: most documents are smaller.
_UNMERGED = 16 << 10


class Chunker:
    """Gather items to chunks of at most so many items and bytes; an item that is larger is a chunk of its own."""

    def __init__(self, count: int = COUNT, size: int = SIZE) -> None:
        self._count, self._size = count, size
        self._begin()

    def _begin(self) -> None:
        self._items: list[BulkAction] = []
        self._bytes = 0
        self._ids: set[str] = set()
        self._ordered = False

    def add(self, item: BulkAction) -> BulkChunk | None:
        """Add the next item; the chunk before it, where it does not fit into that one any more."""
        size = len(item.body) or _UNMERGED
        room = len(self._items) < self._count and self._bytes + size <= self._size
        full = None if room and not self._meets(item) else self.take()
        self._items.append(item)
        self._bytes += size
        self._ids.add(item.id)
        self._ordered = self._ordered or item.operation != "index"
        return full

    def take(self) -> BulkChunk | None:
        """What was gathered since the last chunk; None where that is nothing."""
        chunk = BulkChunk(self._items) if self._items else None
        self._begin()
        return chunk

    def _meets(self, item: BulkAction) -> bool:
        """Whether a delete or an update, and another operation on the same document, would stand in one chunk.

        Versions keep the order of two writes, even where the first is sent again after the second. A delete's
        version is forgotten by the server after a while (``index.gc_deletes``), and an update has none of its own, but
        changes what is there: both wait for what came before.
        """
        return (self._ordered or item.operation != "index") and item.id in self._ids


# Chunks that wait for a thread: enough that no thread idles, few enough that memory stays bounded.
_WAITING = 2
#: Chunks that have been handed over and are not delivered, at most.
UNDELIVERED = MOST + _WAITING


class Stopped(Exception):
    """Somebody has asked to stop before the chunk was taken."""


class BulkWriter(AbstractContextManager["BulkWriter"]):
    """Takes operations in their order and delivers them in chunks, in the background.

    The first error of a delivery is raised by the next call. ``with`` ends the threads: after the block's end all was
    delivered, or nothing is under way any more.
    """

    def __init__(self, deliver: Callable[[BulkChunk], None], stopping: threading.Event, most: int = MOST) -> None:
        """Have threads ready.

        Args:
            deliver: delivers a chunk; called from several threads at once.
            stopping: set here when nothing is to be sent any more.
            most: how many threads.
        """
        self._deliver, self._stopping = deliver, stopping
        self._chunker = Chunker()
        self._threads, self._most = ThreadPoolExecutor(most, thread_name_prefix="bulk"), most + _WAITING
        self._undelivered: dict[Future[None], BulkChunk] = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._stopping.set()
        self._threads.shutdown(cancel_futures=kind is not None)

    @property
    def idle(self) -> bool:
        """Whether nothing waits or is under way."""
        return all(chunk.done() for chunk in self._undelivered)

    def send(self, item: BulkAction) -> None:
        """Have the next operation delivered; waits while enough chunks are waiting."""
        self.submit(self._chunker.add(item))

    def write(self, batch: Iterable[BulkAction]) -> None:
        """Have operations delivered, at once if nothing else is: a slow encoder fills no chunk for a long time."""
        for item in batch:
            self.send(item)
        if self.idle:
            self.submit(self._chunker.take())

    def submit(self, chunk: BulkChunk | None) -> None:
        """Have a chunk delivered, if there is one; waits while enough others are waiting.

        A chunk that deletes or updates a document waits for what came before on that document, and what comes after
        waits for it; see ``Chunker``.
        """
        if chunk is None:
            return
        self._wait(lambda: self._may_follow(chunk))
        self._undelivered[self._threads.submit(self._work, chunk)] = chunk

    def drain(self) -> None:
        """Wait until everything is delivered."""
        self.submit(self._chunker.take())
        self._wait(lambda: not self._undelivered)

    def _wait(self, enough: Callable[[], bool]) -> None:
        """Take note of what is delivered, until that is enough."""
        while True:
            for one in [one for one in self._undelivered if one.done()]:
                del self._undelivered[one]
                one.result()
            if enough():
                return
            wait(self._undelivered, return_when=FIRST_COMPLETED)

    def _may_follow(self, chunk: BulkChunk) -> bool:
        return len(self._undelivered) < self._most and not any(
            (earlier.ordered and not chunk.ids.isdisjoint(earlier.ordered))
            or (chunk.ordered and not chunk.ordered.isdisjoint(earlier.ids))
            for earlier in self._undelivered.values()
        )

    def _work(self, chunk: BulkChunk) -> None:
        # After an error, what has waited is not sent any more.
        if self._stopping.is_set():
            return
        try:
            self._deliver(chunk)
        except Stopped:
            pass
        except BaseException:
            self._stopping.set()
            raise
