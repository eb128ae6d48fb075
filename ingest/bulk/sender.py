"""Sending chunks from threads of their own, while the next ones are made."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from langshift.ingest.bulk.concurrency import MOST
from langshift.ingest.bulk.item import Chunk
from langshift.ingest.bulk.trouble import Stopped

# Chunks that wait for a thread: enough that no thread idles, few enough that memory stays bounded.
_WAITING = 2
#: Chunks that have been handed over and are not delivered, at most.
UNDELIVERED = MOST + _WAITING


class Sender:
    """Delivers chunks in the background; the first error of a delivery is raised by the next call.

    ``with`` ends the threads: after the block's end all was delivered, or nothing is under way any more.
    """

    def __init__(self, deliver: Callable[[Chunk], None], stopping: threading.Event) -> None:
        """Start the threads.

        Args:
            deliver: delivers a chunk; called from several threads at once.
            stopping: set here when nothing is to be sent any more.
        """
        self._deliver = deliver
        self._stopping = stopping
        self._waiting: deque[Chunk] = deque()
        self._flying: list[Chunk] = []
        self._error: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, name=f"bulk-{n}", daemon=True) for n in range(MOST)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Sender:
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

    def submit(self, chunk: Chunk) -> None:
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

    def _may_follow(self, chunk: Chunk) -> bool:
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
