"""When queries are sent, and to which index first; no server is asked."""

import threading
from itertools import pairwise
from time import perf_counter

import pytest

from langshift.evaluate.dataset import Query
from langshift.evaluate.load.answer import Answer, Request, Step
from langshift.evaluate.load.requests import Prepared, alternating
from langshift.evaluate.load.schedule import Load, arrivals, rotated
from langshift.evaluate.load.sending import Sending
from langshift.evaluate.load.workers import GIVE_UP_AFTER, send_all


def answered(batches):
    return [done.answer for batch in batches for done in batch]


def requests(count, due=None):
    return [
        Request(0, "news-v0001", f"q{n}", Step(b"{}"), never_begun, None if due is None else due[n])
        for n in range(count)
    ]


def never_begun():
    raise AssertionError("what asks is a stand-in here")


def test_arrivals_keep_the_rate_and_come_as_a_poisson_process():
    times = arrivals(5000, 50)
    assert times == sorted(times)
    assert times == arrivals(5000, 50)
    assert times[0] >= 0
    assert 99 < times[-1] < 100
    gaps = [late - early for early, late in pairwise(times)]
    # Gaps of a Poisson process are exponential: their mean is their deviation, and 1 - 1/e are below it.
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 50, rel=0.01)
    assert sum(gap < mean for gap in gaps) / len(gaps) == pytest.approx(1 - 1 / 2.718281828, abs=0.02)


def test_when_queries_are_due():
    assert Load().due(3) == [None, None, None]
    assert Load(rate=4.0).due(8) == arrivals(8, 4.0)
    assert Load(speed=2.0).due(3, [100.0, 101.0, 105.0]) == [0.0, 0.5, 2.5]
    assert [Load().open_loop, Load(rate=1.0).open_loop, Load(speed=1.0).open_loop] == [False, True, True]


def test_indices_alternate_and_each_comes_first_in_turn():
    assert [rotated(number, 3) for number in range(4)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    queries = [Query(name, name, None, None) for name in ("a", "b", "c")]
    content = [[Prepared(Step(f"{name}{place}".encode()), never_begun) for name in ("a", "b", "c")] for place in (0, 1)]
    made = list(alternating(["plain", "shifted"], queries, content, [0.0, 1.0, 2.0]))
    assert [(request.target, request.first.content, request.due) for request in made] == [
        ("plain", b"a0", 0.0),
        ("shifted", b"a1", 0.0),
        ("shifted", b"b1", 1.0),
        ("plain", b"b0", 1.0),
        ("plain", b"c0", 2.0),
        ("shifted", b"c1", 2.0),
    ]
    assert [request.place for request in made] == [0, 1, 1, 0, 0, 1]


def test_every_request_is_sent_once_by_as_many_as_may():
    together = threading.Barrier(4, timeout=30)
    seen = []

    def ask(request, due):
        assert due is None
        together.wait()  # passes only when four are under way at once
        seen.append(request.query)
        return Answer(request.query)

    answers = [answer.query for answer in answered(send_all([ask] * 4, requests(40)))]
    assert sorted(answers) == sorted(seen) == sorted(request.query for request in requests(40))


def test_one_at_a_time_keeps_the_order():
    assert [answer.query for answer in answered(send_all([lambda request, _: Answer(request.query)], requests(5)))] == [
        *("q0", "q1", "q2", "q3", "q4"),
    ]
    assert answered(send_all([lambda request, _: Answer(request.query)], [])) == []


def test_a_query_is_not_sent_before_it_is_due_and_its_time_is_told():
    sent = []

    def ask(request, due):
        sent.append((perf_counter(), due))
        return Answer(request.query)

    due = [0.0, 0.02, 0.05, 0.05]
    start = perf_counter()
    assert len(answered(send_all([ask] * 2, requests(4, due)))) == 4
    assert all(at >= told for at, told in sent)
    assert sorted(told - sent[0][1] for _, told in sent) == pytest.approx(due)
    assert sent[0][1] >= start


def test_queries_behind_a_slow_one_are_late_by_what_is_left_of_it():
    late = {}

    def ask(request, due):
        late[request.query] = perf_counter() - due
        if request.query == "q0":
            threading.Event().wait(0.3)
        return Answer(request.query)

    list(send_all([ask], requests(4, [0.0, 0.1, 0.2, 0.3])))
    # One user is at work: what was due during the 0.3 s had to wait for their end at least.
    assert late["q1"] >= 0.2
    assert late["q2"] >= 0.1


def test_no_cluster_is_not_asked_for_ever():
    asked = []

    def ask(request, _):
        asked.append(request.query)
        reached = request.query in {"q0", "q4"}
        return Answer(request.query, error=None if reached else "refused", reached=reached)

    answers = answered(send_all([ask], requests(30)))
    assert asked == [f"q{n}" for n in range(5 + GIVE_UP_AFTER)]
    assert [answer.sent for answer in answers] == [True] * 15 + [False] * 15
    assert answers[-1].error == "Not sent: 10 queries in a row found no cluster."
    assert not any(answer.reached for answer in answers[5:])


def test_what_fails_otherwise_is_not_swallowed():
    def ask(request, _):
        raise RuntimeError(request.query)

    with pytest.raises(RuntimeError, match=r"^q0$"):
        list(send_all([ask], requests(3)))


def test_sending_ends_when_nobody_listens_any_more():
    asked = []
    threads = threading.active_count()

    def ask(request, _):
        asked.append(request.query)
        return Answer(request.query)

    coming = send_all([ask] * 2, requests(1000, [n / 10 for n in range(1000)]))
    next(coming)
    coming.close()
    after = len(asked)
    assert after < 1000
    assert threading.active_count() == threads
    assert len(asked) == after


def test_throughput_is_of_answers():
    assert Sending(2.0, 5).throughput == 2.5
    assert Sending().throughput is None
