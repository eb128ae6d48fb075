"""The load generator: threads that send requests, each when it is due or as soon as one is free."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import perf_counter

from langshift.evaluate.load.answer import Answer, Request

GIVE_UP_AFTER = 10

Ask = Callable[[Request, "float | None"], Answer]
"""Sends one request that was due at a time of the clock, or at no time."""


def send_all(asks: Sequence[Ask], requests: Sequence[Request]) -> Generator[tuple[Request, Answer], None, None]:
    """Send every request, and yield it with its answer as soon as that is there.

    Requests are begun in their order. When ``GIVE_UP_AFTER`` in a row find no cluster, the rest are
    not sent, and are errors too.

    Args:
        asks: one for each request that may be under way at once; each is called by one thread alone.
        requests: what to send; those with a time must come in the order of their times.
    """
    work = _Work(requests)
    threads = [Thread(target=work.run, args=(ask,), daemon=True) for ask in asks[: len(requests)]]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < len(threads):
            done = work.done.get()
            if done is None:
                ended += 1
            elif isinstance(done, BaseException):
                raise done
            else:
                yield done
    finally:
        work.stop.set()
        for thread in threads:
            thread.join()


class _Work:
    """What the threads share."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._waiting, self._lock = iter(requests), Lock()
        self._unreachable = 0
        self._start = perf_counter()
        self.stop = Event()
        self.done: SimpleQueue[tuple[Request, Answer] | BaseException | None] = SimpleQueue()

    def run(self, ask: Ask) -> None:
        """Send requests until there are no more."""
        try:
            while not self.stop.is_set() and (request := self._next()) is not None:
                answer = self._given_up(request) or self._send(ask, request)
                if answer is not None:
                    self.done.put((request, answer))
        except BaseException as error:  # told to the thread that waits for answers
            self.done.put(error)
        finally:
            self.done.put(None)

    def _next(self) -> Request | None:
        with self._lock:
            return next(self._waiting, None)

    def _given_up(self, request: Request) -> Answer | None:
        if self._unreachable < GIVE_UP_AFTER:
            return None
        told = f"Not sent: {GIVE_UP_AFTER} queries in a row found no cluster."
        return Answer(request.query, error=told, reached=False, sent=False)

    def _send(self, ask: Ask, request: Request) -> Answer | None:
        """The answer; None where the work was stopped before the request was due."""
        due = None if request.due is None else self._start + request.due
        if due is not None and (early := due - perf_counter()) > 0 and self.stop.wait(early):
            return None
        if given_up := self._given_up(request):
            return given_up
        answer = ask(request, due)
        with self._lock:
            self._unreachable = 0 if answer.reached else self._unreachable + 1
        return answer
