"""Asking a cluster in trouble until it answers, and reading ahead."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from queue import Full, Queue
from typing import TypeVar

from opensearchpy.exceptions import AuthorizationException, OpenSearchException
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential
from tenacity.nap import sleep_using_event

from langshift.reporting import note
from langshift.response_checks import WrongAnswer
from langshift.server_errors import Retryable, Unreadable, classify

T = TypeVar("T")
_LOOK_EVERY = 0.1  # seconds
#: Seconds for which a cluster that takes nothing, or a store that does not answer, is waited for.
PATIENCE = 300.0


def prefetch(things: Iterator[T]) -> Generator[T, None, None]:
    """The same things, always one of them made in advance, in a thread of its own.

    Who closes the iterator early does not wait for a thing that takes long: standard input may never give one.
    """
    coming: Queue[tuple[T] | BaseException | None] = Queue(1)
    left = threading.Event()

    def put(thing: tuple[T] | BaseException | None) -> None:
        while not left.is_set():
            with suppress(Full):
                coming.put(thing, timeout=_LOOK_EVERY)
                return

    def make() -> None:
        try:
            for thing in things:
                put((thing,))
                if left.is_set():
                    return
        except BaseException as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=make, name="prefetch", daemon=True).start()
    try:
        while (made := coming.get()) is not None:
            if isinstance(made, BaseException):
                raise made
            yield made[0]
    finally:
        left.set()


#: Between two tries: seconds at random, from a span that doubles with each.
BACKOFF = wait_random_exponential(multiplier=0.25, max=10)


# Seconds after which a person is told of trouble, and told again.
_QUIET, _EVERY = 5.0, 30.0


class RetryBudget:
    """Counts from the first trouble after something was last taken, whichever request met it, and tells of it.

    Attributes:
        seconds: how long trouble is borne.
    """

    def __init__(self, seconds: float, whom: str = "the cluster") -> None:
        """Begin without trouble.

        Args:
            seconds: how long trouble is borne.
            whom: what messages call what is waited for.
        """
        self.seconds, self._whom = seconds, whom
        self._since: float | None = None
        self._told = 0.0
        self._lock = threading.Lock()

    def taken(self) -> None:
        """The cluster has taken something."""
        with self._lock:
            self._since = None

    def trouble(self, why: object) -> None:
        """The cluster has taken nothing of a request; once this has gone on for some seconds, a person is told why."""
        with self._lock:
            now = time.monotonic()
            if self._since is None:
                self._since, self._told = now, now + _QUIET - _EVERY
            if now - self._told < _EVERY:
                return
            self._told = now
            began = datetime.now().astimezone() - timedelta(seconds=now - self._since)
        words = " ".join(str(why).split()).rstrip(".") or "no answer"
        until = began + timedelta(seconds=self.seconds)
        note(f"Waiting for {self._whom} since {began:%H:%M:%S}, until {until:%H:%M:%S} at the latest: {words}.")

    @property
    def over(self) -> bool:
        """Whether trouble has gone on for too long."""
        with self._lock:
            return self._since is not None and time.monotonic() - self._since > self.seconds


_log = logging.getLogger(__name__)


_waiting: ContextVar[float | None] = ContextVar("seconds that each request waits", default=None)
_at_work: ContextVar[bool] = ContextVar("whether a block is waited for, too", default=False)


@contextmanager
def waiting(seconds: float | None) -> Iterator[None]:
    """Within it each request of this thread is sent again while the cluster is in trouble.

    So what a command asks for before, between and after what it retries as a whole is as patient as that. Every such
    request may be sent twice: whoever makes an index, moves an alias or begins a task looks whether that was done.

    Args:
        seconds: for how long; None to send none again, as where a command ends or whoever asks tries again himself.
    """
    before = _waiting.set(seconds)
    try:
        yield
    finally:
        _waiting.reset(before)


@contextmanager
def at_work() -> Iterator[None]:
    """Within it a block of the cluster is waited for; one that was there before is said at once."""
    before = _at_work.set(True)
    try:
        yield
    finally:
        _at_work.reset(before)


def waiting_seconds() -> float | None:
    """For how long requests of this thread are sent again; None where they are not."""
    return _waiting.get()


# In so many tries a wrong answer that is one proxy's hiccup passes; what stands in the way for good is said soon.
_WRONG_ANSWERS = 5


def retry_until_available(
    action: Callable[[], T],
    patience: RetryBudget,
    stopping: threading.Event | None = None,
    passes: Callable[[BaseException], bool] | None = None,
) -> T:
    """Do what may be done again, until the cluster takes it or patience ends.

    What is no answer of OpenSearch's is asked for again a few times only.

    Args:
        action: what to do.
        patience: how long trouble is borne.
        stopping: set when there is nothing to wait for any more.
        passes: whether an error is trouble that passes; None for what ``classify`` says.

    Raises:
        OpenSearchException: the last trouble, or one that does not pass.
        Unreadable: likewise.
    """
    stopped = stopping or threading.Event()

    def before_sleep(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        patience.trouble(classify(error, "") if isinstance(error, OpenSearchException) else error)
        _log.warning("asked again: %s", error)

    wrong = Counter[str]()

    def enough(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        error = error if isinstance(error, WrongAnswer) else error and error.__cause__
        if isinstance(error, WrongAnswer):
            wrong[error.request] += 1
        return patience.over or stopped.is_set() or _WRONG_ANSWERS in wrong.values()

    trying = Retrying(
        wait=BACKOFF,
        stop=enough,
        sleep=sleep_using_event(stopped),
        retry=retry_if_exception(passes or is_passing),
        before_sleep=before_sleep,
        reraise=True,
    )
    with waiting(None):
        return trying(action)


def is_passing(error: BaseException) -> bool:
    """Whether an error is trouble of the cluster's that may pass."""
    if isinstance(error, AuthorizationException) and not _at_work.get():
        return False
    return isinstance(error, Unreadable) or (
        isinstance(error, OpenSearchException) and isinstance(classify(error, ""), Retryable)
    )
