"""Percentiles, and what coordinated omission does to them."""

import random

import numpy as np
import pytest

from langshift.evaluate.load.histogram import corrected, percentiles


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
