"""Paired tests of two runs: could chance have given the difference? Pure functions, arrays in and out.

Queries about one article (or passage) share their luck, so they are one observation: the randomisation test
flips the sign of whole clusters, and Student's t takes its variance from cluster sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 100_000
SEED = 20_260
LEVEL = 0.05
CORRECTION = "Holm"
# Signs held at once, 8 bytes each.
_AT_ONCE = 1 << 22

Key = TypeVar("Key")
Floats = NDArray[np.float64]


class TestResult(NamedTuple):
    """A difference of two runs, and how likely chance alone gives one as large.

    Attributes:
        difference: mean over the queries of the later run's figure less the earlier one's.
        queries: how many queries both runs have a figure for.
        clusters: how many articles, groups or queries these belong to.
        randomisation: two-sided p-value of the randomisation test.
        student: two-sided p-value of Student's paired t; None where there is one cluster only.
        corrected: the randomisation test's p-value, corrected for all that was tested together.
        interval: where the difference lies with 95 % confidence, by Student's t; None where there is one cluster only.
    """

    difference: float
    queries: int
    clusters: int
    randomisation: float
    student: float | None
    corrected: float
    interval: tuple[float, float] | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below the level."""
        return self.corrected < LEVEL

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        return {**self._asdict(), "significant": self.significant}


def paired_tests(
    differences: Mapping[Key, Mapping[str, float]],
    clusters: Mapping[str, str],
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
) -> dict[Key, TestResult]:
    """Test differences, and correct the p-values for all of them together.

    Args:
        differences: what is tested -> query id -> difference; what has no query is left out of the result.
        clusters: query id -> cluster.
        permutations: how many of the ways to flip signs are tried, unless all of them are as few.
        seed: where the choice of these begins.
    """
    known = {key: found for key, found in differences.items() if found}
    names = sorted({clusters[query] for found in known.values() for query in found})
    row = {name: number for number, name in enumerate(names)}
    sums, counts = np.zeros((len(names), len(known))), np.zeros((len(names), len(known)))
    for column, found in enumerate(known.values()):
        rows = [row[clusters[query]] for query in found]
        np.add.at(sums[:, column], rows, list(found.values()))
        np.add.at(counts[:, column], rows, 1)
    chances = randomisation(sums, permutations, seed)
    adjusted = holm(chances.tolist())
    tests = {}
    for column, (key, found) in enumerate(known.items()):
        ours, of = sums[:, column], counts[:, column]
        mean, groups, chance = float(ours.sum() / of.sum()), int((of > 0).sum()), float(chances[column])
        by_student, interval = student(ours, of)
        tests[key] = TestResult(mean, len(found), groups, chance, by_student, adjusted[column], interval)
    return tests


def randomisation(sums: Floats, permutations: int = PERMUTATIONS, seed: int = SEED) -> Floats:
    """P-values of the paired randomisation test with signs flipped by cluster.

    The statistic is the mean difference over queries. As many random flips as asked for are drawn, and the
    observed one counts among them; where there are no more flips in all than that, every one is tried.

    Args:
        sums: each cluster's sum of differences, shape (clusters, tests).
        permutations: how many flips to draw.
        seed: of the random numbers.

    Returns:
        Two-sided p-values, shape (tests,).
    """
    observed = np.abs(sums.sum(axis=0))
    # Sums in another order differ in the last digits: as extreme means within those.
    least = observed - 1e-9 * np.abs(sums).sum(axis=0)
    extreme, drawn = np.zeros(sums.shape[1]), 0
    for signs in _signs(len(sums), permutations, seed):
        extreme += (np.abs(signs @ sums) >= least).sum(axis=0)
        drawn += len(signs)
    if exact(len(sums), permutations):
        return extreme / drawn
    return (extreme + 1) / (drawn + 1)


def exact(clusters: int, permutations: int = PERMUTATIONS) -> bool:
    """Whether every way to flip the signs is tried."""
    return clusters < permutations.bit_length()


def _signs(clusters: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield rows of -1 and 1, shape (flips, clusters), a bounded number at once."""
    size = max(1, _AT_ONCE // max(1, clusters))
    if exact(clusters, permutations):
        every = np.arange(2**clusters)
        for start in range(0, len(every), size):
            bits = every[start : start + size, np.newaxis] >> np.arange(clusters) & 1
            yield np.asarray(bits * 2.0 - 1.0, np.float64)
        return
    random = np.random.default_rng(seed)
    for start in range(0, permutations, size):
        flips = random.integers(0, 2, (min(size, permutations - start), clusters), dtype=np.int8)
        yield np.asarray(flips * 2.0 - 1.0, np.float64)


def student(sums: Floats, counts: Floats) -> tuple[float | None, tuple[float, float] | None]:
    """Student's paired t with a variance that holds for clusters of queries: two-sided p-value and 95 % interval.

    ``t = d̄ / SE`` with ``SE² = G / (G − 1) · Σ_g (s_g − n_g d̄)² / n²`` and G − 1 degrees of freedom; where every
    query is a cluster of its own this is the usual paired t. The interval of the mean difference is ``d̄ ± t SE``.
    Both are None where there is one cluster only.

    Args:
        sums: each cluster's sum of differences s_g, shape (clusters,).
        counts: each cluster's number of queries n_g, shape (clusters,); clusters with 0 stay out.
    """
    from scipy import stats

    there = counts > 0
    sums, counts, groups = sums[there], counts[there], int(there.sum())
    if groups < 2:
        return None, None
    mean = float(sums.sum() / counts.sum())
    error = float(np.sqrt(groups / (groups - 1) * ((sums - counts * mean) ** 2).sum()) / counts.sum())
    half = float(stats.t.ppf(1 - LEVEL / 2, groups - 1)) * error
    chance = 1.0 if not np.abs(sums).sum() else 0.0
    if error > 1e-12 * abs(mean):
        chance = float(2 * stats.t.sf(abs(mean) / error, groups - 1))
    return chance, (mean - half, mean + half)


def holm(chances: Sequence[float]) -> list[float]:
    """P-values corrected after Holm: the chance that any of those below the level is none stays below the level.

    Sorted ascending, ``p'_i = max_{j≤i} min(1, (m - j + 1) p_j)``, whatever the dependence between them.
    """
    found = np.array(chances, np.float64)
    order = np.argsort(found, kind="stable")
    found[order] = np.minimum(np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1)), 1.0)
    return [float(chance) for chance in found]
