"""A replay's load: who is asked when, percentiles of times, and drift between answers."""

import random
import threading
import warnings
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest

from langshift.evaluate.datasets.dataset import DatasetQuery
from langshift.evaluate.replay.load_generator import GIVE_UP_AFTER, LoadStats, corrected, percentiles, send_all
from langshift.evaluate.replay.overlap import jaccard, mean_shares, measure_overlap, rank_biased_overlap, shares
from langshift.evaluate.replay.requests import (
    LoadProfile,
    PreparedQuery,
    PreparedSearch,
    QueryResult,
    alternating,
    arrivals,
)


def answered(batches):
    return [done.answer for batch in batches for done in batch]


def requests(count, due=None):
    return [
        PreparedQuery(0, "news-v0001", f"q{n}", b"{}", never_begun, None if due is None else due[n])
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
    assert LoadProfile().due(3) == [None, None, None]
    assert LoadProfile(rate=4.0).due(8) == arrivals(8, 4.0)
    assert LoadProfile(speed=2.0).due(3, [100.0, 101.0, 105.0]) == [0.0, 0.5, 2.5]
    assert [LoadProfile().open_loop, LoadProfile(rate=1.0).open_loop, LoadProfile(speed=1.0).open_loop] == [
        False,
        True,
        True,
    ]


def test_indices_alternate_and_each_comes_first_in_turn():
    queries = [DatasetQuery(name, name, None, None) for name in ("a", "b", "c")]
    content = [[PreparedSearch(f"{name}{place}".encode(), never_begun) for name in ("a", "b", "c")] for place in (0, 1)]
    made = list(alternating(["plain", "shifted"], queries, content, [0.0, 1.0, 2.0], {}))
    assert [(request.target, request.first, request.due) for request in made] == [
        ("plain", b"a0", 0.0),
        ("shifted", b"a1", 0.0),
        ("shifted", b"b1", 1.0),
        ("plain", b"b0", 1.0),
        ("plain", b"c0", 2.0),
        ("shifted", b"c1", 2.0),
    ]
    assert [request.place for request in made] == [0, 1, 1, 0, 0, 1]
    of_three = alternating(["a", "b", "c"], [*queries, queries[0]], [[*content[0], content[0][0]]] * 3, [None] * 4, {})
    assert [request.place for request in of_three] == [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]


def test_every_request_is_sent_once_by_as_many_as_may():
    together = threading.Barrier(4, timeout=30)
    seen = []

    def ask(request, due):
        assert due is None
        together.wait()  # passes only when four are under way at once
        seen.append(request.query)
        return QueryResult(request.query)

    answers = [answer.query for answer in answered(send_all([ask] * 4, requests(40)))]
    assert sorted(answers) == sorted(seen) == sorted(request.query for request in requests(40))


def test_one_at_a_time_keeps_the_order():
    assert [
        answer.query for answer in answered(send_all([lambda request, _: QueryResult(request.query)], requests(5)))
    ] == [
        *("q0", "q1", "q2", "q3", "q4"),
    ]
    assert answered(send_all([lambda request, _: QueryResult(request.query)], [])) == []


def test_a_query_is_not_sent_before_it_is_due_and_its_time_is_told():
    sent = []

    def ask(request, due):
        sent.append((perf_counter(), due))
        return QueryResult(request.query)

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
        return QueryResult(request.query)

    list(send_all([ask], requests(4, [0.0, 0.1, 0.2, 0.3])))
    # One user is at work: what was due during the 0.3 s had to wait for their end at least.
    assert late["q1"] >= 0.2
    assert late["q2"] >= 0.1


def test_no_cluster_is_not_asked_for_ever():
    asked = []

    def ask(request, _):
        asked.append(request.query)
        reached = request.query in {"q0", "q4"}
        return QueryResult(request.query, error=None if reached else "refused", reached=reached)

    answers = answered(send_all([ask], requests(30)))
    assert asked == [f"q{n}" for n in range(5 + GIVE_UP_AFTER)]
    assert [answer.sent for answer in answers] == [True] * 15 + [False] * 15
    assert answers[-1].error == "Not sent: 10 queries in a row did not reach the cluster."
    assert not any(answer.reached for answer in answers[5:])


def test_what_fails_otherwise_is_not_swallowed():
    def ask(request, _):
        raise RuntimeError(request.query)

    with pytest.raises(RuntimeError, match=r"^q0$"):
        list(send_all([ask], requests(3)))


def test_sending_ends_when_nobody_listens_any_more():
    asked = []
    # Which, not how many: those of other tests may end meanwhile.
    before = set(threading.enumerate())

    def ask(request, _):
        asked.append(request.query)
        return QueryResult(request.query)

    coming = send_all([ask] * 2, requests(1000, [n / 10 for n in range(1000)]))
    next(coming)
    coming.close()
    after = len(asked)
    assert after < 1000
    assert set(threading.enumerate()) <= before
    assert len(asked) == after


def test_throughput_is_of_answers():
    assert LoadStats(2.0, 5).throughput == 2.5
    assert LoadStats().throughput is None


def test_percentiles_are_numpys_to_three_digits():
    drawn = random.Random(1)
    times = [drawn.lognormvariate(2, 1) for _ in range(5000)]
    found = percentiles(times)
    for p in (50, 90, 95, 99):
        assert found[f"p{p}"] == pytest.approx(np.percentile(times, p, method="inverted_cdf"), rel=2e-3)


def test_nothing_and_the_outermost():
    assert percentiles([]) == corrected([]) == {"p50": None, "p90": None, "p95": None, "p99": None}
    assert percentiles([0.0, 0.0]) == {"p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0}
    assert corrected([0.0, 0.0]) == {"p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0}
    # Longer than an hour counts as an hour, and is not dropped.
    assert percentiles([9e9])["p50"] == pytest.approx(3_600_000, rel=1e-3)


def test_coordinated_omission_worked_out():
    """One user asks every 10 ms. For 100 s answers take 1 ms; then all stops for 100 s, and one answer takes that.

    Measured: 10,000 times of 1 ms and one of 100 s, so even p99 is 1 ms. But had the user gone on asking
    every 10 ms, 10,000 queries would have come during the stop, and waited 100 s, 99.99 s, and so on to
    10 ms. Of those 20,000 half waited 1 ms, so p75 is the middle of the stop, 50 s; p90 is 80 s, p95 90 s,
    p99 98 s.
    """
    times = [1.0] * 10_000 + [100_000.0]
    assert percentiles(times) == {"p50": 1.0, "p90": 1.0, "p95": 1.0, "p99": 1.0}
    found = corrected(times, 10.0)
    assert found["p50"] == 1.0
    assert found["p90"] == pytest.approx(80_000, rel=2e-3)
    assert found["p95"] == pytest.approx(90_000, rel=2e-3)
    assert found["p99"] == pytest.approx(98_000, rel=2e-3)


def test_without_a_pace_the_usual_time_is_the_pace():
    # The median is 10 ms, so a stop of 1 s hides 99 queries, which waited 990 ms down to 10 ms.
    times = [10.0] * 101 + [1000.0]
    found = corrected(times)
    waited = [10.0] * 101 + [1000.0 - 10.0 * n for n in range(100)]
    for p in (50, 90, 95, 99):
        assert found[f"p{p}"] == pytest.approx(np.percentile(waited, p, method="inverted_cdf"), rel=0.02)


def test_times_below_two_paces_hide_nothing():
    times = [10.0, 11.0, 12.0, 19.9]
    assert corrected(times, 10.0) == percentiles(times)


def answers(**rankings):
    return [
        QueryResult(query, tuple((name, 1.0) for name in names.split()), 1.0, 1.0) for query, names in rankings.items()
    ]


def extrapolated(one, other, p=0.9):
    """RBO_ext of two rankings of one length, Equation 30 of Webber, Moffat and Zobel (2010)."""
    depth = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
    return agreement[-1] * p**depth + (1 - p) / p * sum(p ** (d + 1) * a for d, a in enumerate(agreement))


@pytest.mark.parametrize(
    ("one", "other"), [("abcde", "abcde"), ("abcde", "edcba"), ("abcde", "abxyz"), ("abcd", "wxyz"), ("a", "a")]
)
def test_rank_biased_overlap_is_the_papers(one, other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rank_biased_overlap(one, other) == pytest.approx(extrapolated(one, other), abs=1e-12)


def test_rankings_that_are_empty():
    assert rank_biased_overlap([], []) == 1
    assert rank_biased_overlap(["a"], []) == 0
    assert jaccard([], []) == 1
    assert jaccard(["a"], []) == 0


def test_only_the_first_twenty_count():
    one = [f"d{n}" for n in range(30)]
    assert jaccard(one, one[:20]) == 1
    assert jaccard(one, one[10:]) == pytest.approx(10 / 30)
    assert shares(one, {f"d{n}": "en" if n < 15 else "de" for n in range(30)}) == {"en": 0.75, "de": 0.25}
    assert mean_shares([{"en": 1.0}, {"de": 0.5, "en": 0.5}]) == {"en": 0.75, "de": 0.25}


def test_drift_by_query_language():
    documents = {"a": "en", "b": "de", "c": "en", "d": None}
    before = answers(q1="a c", q2="a b", q3="b a", q4="a")
    after = [*answers(q1="a b", q2="a b", q3="d a"), QueryResult("q4", error="no")]
    found = measure_overlap(
        ("plain", "shifted"), before, after, queries={"q1": "en", "q2": "en", "q3": "de"}, documents=documents
    )
    assert (found.before, found.after, found.left_out) == ("plain", "shifted", 1)
    english = found.by_language["en"]
    assert english.queries == 2
    assert english.jaccard == pytest.approx((1 / 3 + 1) / 2)
    assert english.rbo == pytest.approx((extrapolated("ac", "ab") + 1) / 2)
    assert english.before == {"en": 0.75, "de": 0.25}
    assert english.after == {"de": 0.5, "en": 0.5}
    assert found.by_language["de"].after == {"en": 0.5, "und": 0.5}
    # Over all: overlap by query, shares by query language.
    assert found.whole.jaccard == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert found.whole.before == {"en": 0.625, "de": 0.375}
    document = found.to_dict()
    assert document["Share@20"]["before"] == {"en": 0.625, "de": 0.375}
    assert set(document) == {
        "before",
        "after",
        "left_out",
        "queries",
        "RBO(p=0.9)",
        "Jaccard@20",
        "Share@20",
        "by_language",
    }


def test_nothing_was_answered_by_both():
    found = measure_overlap(
        ("a", "b"), [QueryResult("q", error="no")], answers(q="a"), queries={"q": "en"}, documents={}
    )
    assert (found.whole.queries, found.whole.rbo, found.whole.jaccard, found.left_out) == (0, None, None, 1)
