"""Paired tests against scipy's own, against enumeration by hand, and against simulated luck."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from langshift.evaluate.compare import significance
from langshift.evaluate.compare.significance import exact, holm, paired_tests, randomisation, student


def alone(differences):
    """One query a cluster."""
    named = {f"q{number}": float(value) for number, value in enumerate(differences)}
    return named, {name: name for name in named}


def one(differences, clusters=None, **options):
    named, of = alone(differences)
    if clusters is not None:
        of = dict(zip(named, clusters, strict=True))
    return paired_tests({"x": named}, of, **options)["x"]


def test_by_hand():
    # Signs of 3 differences can be flipped in 8 ways; +++ and --- alone give a sum as large as 6.
    found = one([1.0, 2.0, 3.0])
    assert found.randomisation == 2 / 8
    assert (found.difference, found.queries, found.clusters) == (2.0, 3, 3)
    # Mean 2, standard deviation 1: t = 2 / (1 / sqrt 3), two degrees of freedom.
    assert found.student == pytest.approx(2 * stats.t.sf(2 * 3**0.5, 2))
    # 1, -2, 3: of the eight sums 2, 6, 4 and 0 and their opposites, all but 0 are as large as 2.
    assert one([1.0, -2.0, 3.0]).randomisation == 6 / 8
    # Clusters of {1, 2} and {3}: sums 3 and 3 flip as one, so 6 and 0 and their opposites.
    assert one([1.0, 2.0, 3.0], ["a", "a", "b"]).randomisation == 2 / 4
    assert one([1.0, 2.0, 3.0], ["a", "a", "b"]).clusters == 2


def test_the_interval_is_students_and_wider_where_queries_share_their_luck():
    differences = np.random.default_rng(3).normal(0.05, 0.2, 12)
    found = one(differences).interval
    assert found == pytest.approx(tuple(stats.ttest_1samp(differences, 0).confidence_interval(0.95)))
    # Each figure three times over says no more than once.
    tripled = one(np.repeat(differences, 3), [f"c{number // 3}" for number in range(36)]).interval
    assert tripled == pytest.approx(found)
    assert one([1.0, 2.0], ["a", "a"]).interval is None
    assert one([0.5, 0.5]).interval == (0.5, 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_every_flip_as_scipy_has_it(seed):
    draw = np.random.default_rng(seed)
    before = draw.random(9)
    after = np.round(before + draw.normal(0.05, 0.2, 9), 1 if seed % 2 else 9)  # with ties in every second case
    theirs = stats.permutation_test(
        (after, before), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    found = one(after - before)
    assert found.randomisation == pytest.approx(theirs)
    assert found.student == pytest.approx(stats.ttest_rel(after, before).pvalue)


def test_random_flips_come_near_every_flip():
    draw = np.random.default_rng(5)
    differences = draw.normal(0.1, 0.3, 16)
    assert exact(16)
    assert not exact(17)
    every = one(differences).randomisation
    flips = np.array(list(product((-1, 1), repeat=16)))
    assert every == np.mean(np.abs(flips @ differences) >= abs(differences.sum()) - 1e-12)
    some = one(differences, permutations=20_000).randomisation
    assert some != every
    assert some == pytest.approx(every, abs=4 * (every * (1 - every) / 20_000) ** 0.5)
    assert one(differences, permutations=20_000).randomisation == some  # the seed is fixed
    assert one(differences, permutations=20_000, seed=1).randomisation != some
    # The observed flip counts among those drawn: no p-value is 0.
    assert one(np.ones(60)).randomisation == 1 / 100_001


@pytest.mark.parametrize("seed", range(5))
def test_clusters_as_independent_formulas_have_them(seed):
    draw = np.random.default_rng(seed)
    of = [f"c{number}" for number in draw.integers(0, 7, 40)]
    differences = draw.normal(0.02, 0.1, 40)
    names = sorted(set(of))
    sums = np.array([sum(d for d, c in zip(differences, of, strict=True) if c == name) for name in names])
    found = one(differences, of)
    theirs = stats.permutation_test(
        (sums, np.zeros_like(sums)), lambda x, y: np.sum(x - y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert found.randomisation == pytest.approx(theirs)
    # The variance of a mean under clustering is that of a regression on a constant: the sandwich, G / (G - 1).
    residuals = differences - differences.mean()
    meat = sum(sum(r for r, c in zip(residuals, of, strict=True) if c == name) ** 2 for name in names)
    count = len(names)
    error = (count / (count - 1) * meat) ** 0.5 / 40
    assert found.student == pytest.approx(2 * stats.t.sf(abs(differences.mean()) / error, count - 1))


def test_queries_that_share_their_luck_are_not_counted_as_many():
    # Eight articles of 50 questions, all of an article with one difference: eight observations, not 400.
    luck = np.random.default_rng(2).normal(0.05, 0.2, 8)
    differences = np.repeat(luck, 50)
    together = one(differences, np.repeat(np.arange(8).astype(str), 50))
    assert together.randomisation == pytest.approx(one(luck).randomisation)
    assert together.student == pytest.approx(one(luck).student)
    assert together.student > 100 * one(differences).student


def test_what_has_no_spread():
    nothing = one([0.0, 0.0, 0.0])
    assert (nothing.randomisation, nothing.student, nothing.corrected, nothing.significant) == (1.0, 1.0, 1.0, False)
    assert one([0.1] * 30).student == 0.0
    lone = one([0.1, 0.3], ["a", "a"])
    assert (lone.randomisation, lone.student, lone.clusters) == (1.0, None, 1)
    assert student(np.zeros(3), np.zeros(3)) == (None, None)


def test_several_tests_are_corrected_together():
    # By hand: the least p times 3, the next times 2, none below the one before it or above 1.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    named, of = alone([1.0, 2.0, 3.0, -1.0])
    both = paired_tests({"x": named, "y": {"q0": 1.0}, "z": {}}, of)
    assert both.keys() == {"x", "y"}
    assert [found.corrected for found in both.values()] == holm([found.randomisation for found in both.values()])
    assert both["y"].queries == 1
    assert paired_tests({"z": {}}, of) == {}


def test_blocks_of_flips_change_nothing_where_all_are_tried(monkeypatch):
    sums = np.random.default_rng(3).normal(size=(10, 4))
    whole = randomisation(sums)
    monkeypatch.setattr(significance, "_AT_ONCE", 70)
    assert np.array_equal(randomisation(sums), whole)


def test_chance_alone_is_rarely_called_significant():
    # 400 comparisons of equal runs, 12 articles each: about 5 % below .05, and not more than luck allows.
    draw = np.random.default_rng(11)
    sums = draw.normal(size=(12, 400))
    share = np.mean(randomisation(sums) < 0.05)
    assert 0.02 < share < 0.08
