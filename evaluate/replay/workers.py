"""The load generator: threads that send requests, each when it is due or as soon as one is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from threading import Event, Lock, Thread
from time import perf_counter
from typing import NamedTuple

from langshift.evaluate.replay.answer import Answer, Request

GIVE_UP_AFTER = 10
_LISTEN_EVERY = 0.05

Ask = Callable[[Request, "float | None"], Answer]
"""Sends one request that was due at a time of the clock, or at no time."""


class Done(NamedTuple):
    """A request and its answer.

    Attributes:
        request: what was sent, or should have been.
        answer: what came back.
        seconds: when that was there, seconds after the start.
    """

    request: Request
    answer: Answer
    seconds: float


def send_all(asks: Sequence[Ask], requests: Sequence[Request]) -> Generator[list[Done], None, None]:
    """Send every request, and yield what was answered meanwhile, several times a second.

    Requests are begun in their order. When ``GIVE_UP_AFTER`` in a row find no cluster, the rest are
    not sent, and are errors too.

    Args:
        asks: one for each request that may be under way at once; each is called by one thread alone.
        requests: what to send; those with a time must come in the order of their times.
    """
    work = _Work(requests, min(len(asks), len(requests)))
    threads = [Thread(target=work.run, args=(ask,), daemon=True) for ask in asks[: len(requests)]]
    for thread in threads:
        thread.start()
    try:
        # Not woken by each answer: that alone would slow down the threads that send.
        while threads and not work.over.wait(_LISTEN_EVERY):
            yield work.take()
        yield work.take()
        if work.error is not None:
            raise work.error
    finally:
        work.stop.set()
        for thread in threads:
            thread.join()


class _Work:
    """What the threads share.

    Attributes:
        stop: set where no more is to be sent.
        over: set when the last thread has ended.
        error: what no answer can tell, from a thread that failed.
    """

    def __init__(self, requests: Sequence[Request], threads: int) -> None:
        self._waiting, self._lock = iter(requests), Lock()
        self._unreachable, self._running = 0, threads
        self._start = perf_counter()
        self._done: deque[Done] = deque()
        self.stop, self.over = Event(), Event()
        self.error: BaseException | None = None

    def take(self) -> list[Done]:
        """What was answered since the last call."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def run(self, ask: Ask) -> None:
        """Send requests until there are no more."""
        try:
            while not self.stop.is_set() and (request := self._next()) is not None:
                answer = self._given_up(request) or self._send(ask, request)
                if answer is not None:
                    self._done.append(Done(request, answer, perf_counter() - self._start))
        except BaseException as error:  # told to the thread that waits for answers
            self.error = error
            self.stop.set()
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self.over.set()

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
