"""One replay's sending: warm-up, then every request that has no answer yet, and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from opensearchpy import OpenSearch

from langshift.evaluate.replay.answer import Answer, Request, ask
from langshift.evaluate.replay.journal import Journal
from langshift.evaluate.replay.schedule import Load
from langshift.evaluate.replay.workers import send_all


@dataclass(frozen=True)
class Sending:
    """How sending went, in one way.

    Attributes:
        seconds: from the first query to the last answer; what was answered in an earlier call is not counted.
        answered: how many queries were answered in that time, without an error.
        kept: how many answers are from an earlier call.
        sent_again: how many queries had found no cluster in an earlier call, and were sent again.
    """

    seconds: float = 0.0
    answered: int = 0
    kept: int = 0
    sent_again: int = 0

    @property
    def throughput(self) -> float | None:
        """Answered queries a second; None where none was sent."""
        return self.answered / self.seconds if self.seconds else None


def send(
    clients: Sequence[OpenSearch],
    requests: Sequence[Request],
    places: int,
    load: Load,
    journals: Sequence[Journal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> tuple[list[dict[str, Answer]], list[Sending]]:
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
    answers = [dict(journal.kept) for journal in journals] or [{} for _ in range(places)]
    kept = [len(heard) for heard in answers]
    for _ in range(sum(kept)):
        on_answer()
    missing = _from_now([request for request in requests if request.query not in answers[request.place]])
    asks = [partial(ask, clients[number % len(clients)]) for number in range(load.concurrency)]
    _warm_up(asks, missing[: load.warm_up * places])
    seconds, answered = [0.0] * places, [0] * places
    # Closed also when this loop ends early, so that no thread goes on sending.
    with closing(send_all(asks, missing)) as coming:
        for batch in coming:
            for request, answer, ended in batch:
                place = request.place
                answers[place][request.query] = answer
                if answer.sent:
                    seconds[place] = ended
                    answered[place] += answer.error is None
                    if journals:
                        journals[place].add(answer)
                on_answer()
            for journal in journals:
                journal.flush()
    again = [journal.sent_again for journal in journals] or [0] * places
    return answers, [Sending(*figures) for figures in zip(seconds, answered, kept, again, strict=True)]


def _from_now(requests: Sequence[Request]) -> list[Request]:
    """The same requests, the first of them due at once."""
    first = requests[0].due if requests else None
    if first is None:
        return list(requests)
    return [request._replace(due=None if request.due is None else request.due - first) for request in requests]


def _warm_up(asks: Sequence[Callable[[Request, float | None], Answer]], requests: Sequence[Request]) -> None:
    """Send requests at no time and forget the answers, so that no figure is of a cold cluster."""
    for _ in send_all(asks, [request._replace(due=None) for request in requests]):
        pass
