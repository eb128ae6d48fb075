"""The load generator: threads that send requests, when each is due or as soon as one is free; and latencies."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from statistics import median
from threading import Event, Lock
from time import perf_counter
from typing import NamedTuple

from hdrh.histogram import HdrHistogram
from opensearchpy import OpenSearch

from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.requests import LoadProfile, PreparedQuery, QueryResult, send_query

PERCENTILES = (50, 90, 95, 99)
_LONGEST = 3_600_000_000  # microseconds: an hour
_DIGITS = 3

#: ``p50``, ``p90``, ``p95`` and ``p99`` in milliseconds, to three digits; None where there is no time.
Percentiles = dict[str, float | None]


# Coordinated omission: a client that waits for a slow answer asks nothing meanwhile, so the queries
# that would have been slow too are never sent, and the percentiles look better than what users would
# have met (Gil Tene). In open loop nothing is omitted: a query's time counts from when it was due. In
# closed loop there is no time at which a query was due, so the times are as measured, and ``corrected``
# gives beside them what queries that kept coming at the usual pace would have met.
def percentiles(times: Iterable[float], interval: float | None = None) -> Percentiles:
    """The percentiles of times.

    Args:
        times: milliseconds; what is longer than an hour counts as an hour.
        interval: milliseconds between two queries. A time of at least two of them counts also for the queries
            that did not come meanwhile: it is recorded again less one interval, less two, and so on.
    """
    histogram = HdrHistogram(1, _LONGEST, _DIGITS)
    usual = _microseconds(interval or 0.0)
    for time in times:
        recorded = _microseconds(time)
        if recorded >= 2 * usual > 0:
            histogram.record_corrected_value(recorded, usual)
        else:
            histogram.record_value(recorded)
    if not histogram.get_total_count():
        return dict.fromkeys(f"p{p}" for p in PERCENTILES)
    found = histogram.get_percentile_to_value_dict(PERCENTILES)
    return {f"p{p}": histogram.get_lowest_equivalent_value(found[p]) / 1000 for p in PERCENTILES}


def corrected(times: Sequence[float], interval: float | None = None) -> Percentiles:
    """The percentiles as they would have been had queries kept coming while one was waited for.

    Args:
        times: milliseconds from sending to the answer, of one user after the other.
        interval: milliseconds between two queries; the median time if None, since that is the pace of
            users who ask again at once.
    """
    return percentiles(times, median(times) if interval is None and times else interval)


def _microseconds(milliseconds: float) -> int:
    return min(round(milliseconds * 1000), _LONGEST)


GIVE_UP_AFTER = 10
_LISTEN_EVERY = 0.05

#: Sends one request that was due at a time of the clock, or at no time.
SendQuery = Callable[[PreparedQuery, "float | None"], QueryResult]


class CompletedQuery(NamedTuple):
    """A request and its answer.

    Attributes:
        request: what was sent, or should have been.
        answer: what came back.
        seconds: when that was there, seconds after the start.
    """

    request: PreparedQuery
    answer: QueryResult
    seconds: float


def send_all(
    asks: Sequence[SendQuery], requests: Sequence[PreparedQuery]
) -> Generator[list[CompletedQuery], None, None]:
    """Send every request, and yield what was answered meanwhile, several times a second.

    Requests are begun in their order. When ``GIVE_UP_AFTER`` in a row find no cluster, the rest are
    not sent, and are errors too.

    Args:
        asks: one for each request that may be under way at once; each is called by one thread alone.
        requests: what to send; those with a time must come in the order of their times.
    """
    work = _WorkQueue(requests)
    with ThreadPoolExecutor(len(asks)) as threads:
        running = [threads.submit(work.run, ask) for ask in asks[: len(requests)]]
        try:
            # Not woken by each answer: that alone would slow down the threads that send.
            while wait(running, _LISTEN_EVERY).not_done:
                yield work.take()
            yield work.take()
            for one in running:
                one.result()
        finally:
            work.stop.set()


class _WorkQueue:
    """What the threads share.

    Attributes:
        stop: set where no more is to be sent.
    """

    def __init__(self, requests: Sequence[PreparedQuery]) -> None:
        self._waiting, self._lock = iter(requests), Lock()
        self._unreachable, self._start = 0, perf_counter()
        self._done: deque[CompletedQuery] = deque()
        self.stop = Event()

    def take(self) -> list[CompletedQuery]:
        """What was answered since the last call."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def run(self, ask: SendQuery) -> None:
        """Send requests until there are no more."""
        try:
            while not self.stop.is_set() and (request := self._next()) is not None:
                answer = self._answer_if_unreachable(request) or self._send(ask, request)
                if answer is not None:
                    self._done.append(CompletedQuery(request, answer, perf_counter() - self._start))
        except BaseException:
            # What no answer can tell: the other threads end, too.
            self.stop.set()
            raise

    def _next(self) -> PreparedQuery | None:
        with self._lock:
            return next(self._waiting, None)

    def _answer_if_unreachable(self, request: PreparedQuery) -> QueryResult | None:
        if self._unreachable < GIVE_UP_AFTER:
            return None
        message = f"Not sent: {GIVE_UP_AFTER} queries in a row did not reach the cluster."
        return QueryResult(request.query, error=message, reached=False, sent=False)

    def _send(self, ask: SendQuery, request: PreparedQuery) -> QueryResult | None:
        """The answer; None where the work was stopped before the request was due."""
        due = None if request.due is None else self._start + request.due
        if due is not None and (early := due - perf_counter()) > 0 and self.stop.wait(early):
            return None
        if unsent := self._answer_if_unreachable(request):
            return unsent
        answer = ask(request, due)
        with self._lock:
            self._unreachable = 0 if answer.reached else self._unreachable + 1
        return answer


@dataclass
class LoadStats:
    """How sending went, in one way.

    Attributes:
        seconds: from the first query to the last answer; what was answered in an earlier call is not counted.
        answered: how many queries were answered in that time, without an error.
        answered_earlier: how many answers are from an earlier call.
        sent_again: how many queries had found no cluster in an earlier call, and were sent again.
    """

    seconds: float = 0.0
    answered: int = 0
    answered_earlier: int = 0
    sent_again: int = 0

    @property
    def throughput(self) -> float | None:
        """Answered queries a second, to two digits; None where none was sent."""
        return round(self.answered / self.seconds, 2) if self.seconds else None


def send(
    clients: Sequence[OpenSearch],
    requests: Sequence[PreparedQuery],
    places: int,
    load: LoadProfile,
    journals: Sequence[ReplayJournal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> tuple[list[dict[str, QueryResult]], list[LoadStats]]:
    """Send requests in several ways.

    Args:
        clients: the cluster; requests that are under way at once are spread over them.
        requests: each query in each way, in the order of sending.
        places: how many ways.
        load: how to send.
        journals: one for each way, or none. Queries that they have are not sent, and new answers are added.
        on_answer: called for each answer, also for those that the journals have.

    Returns:
        For each way, query id -> answer, and how sending went.
    """
    answers = [dict(journal.earlier_answers) for journal in journals] or [{} for _ in range(places)]
    again = [journal.sent_again for journal in journals] or [0] * places
    stats = [LoadStats(answered_earlier=len(heard), sent_again=n) for heard, n in zip(answers, again, strict=True)]
    for _ in range(sum(map(len, answers))):
        on_answer()
    missing = [request for request in requests if request.query not in answers[request.place]]
    if missing and (first := missing[0].due) is not None:
        # The first of them is due at once.
        missing = [request._replace(due=None if request.due is None else request.due - first) for request in missing]
    asks = [partial(send_query, clients[number % len(clients)]) for number in range(load.concurrency)]
    # Sent at no time and forgotten, so that no figure is of a cold cluster.
    for _ in send_all(asks, [request._replace(due=None) for request in missing[: load.warm_up * places]]):
        pass
    # Closed also when this loop ends early, so that no thread goes on sending.
    with closing(send_all(asks, missing)) as coming:
        for batch in coming:
            for request, answer, ended in batch:
                place = request.place
                answers[place][request.query] = answer
                if answer.sent:
                    stats[place].seconds = ended
                    stats[place].answered += answer.error is None
                    if journals:
                        journals[place].add(answer)
                on_answer()
            for journal in journals:
                journal.flush()
    return answers, stats
