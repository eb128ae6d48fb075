"""Whether a difference is more than chance, and its bounds; items near each other count as one observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.compare.significance import LEVEL, SEED, paired_tests
from langshift.evaluate.tune.task import Mask, Task

Floats = NDArray[np.float64]
_RESAMPLES = 9_999


class Change(NamedTuple):
    """A measure before and after, over some of the queries.

    Attributes:
        before: mean over query languages.
        after: the same at the other setting.
        low: 95 % interval of the difference, lower bound.
        high: its upper bound.
        p: two-sided p-value of the randomisation test.
    """

    before: float
    after: float
    low: float
    high: float
    p: float

    @property
    def difference(self) -> float:
        """After less before."""
        return self.after - self.before

    @property
    def gained(self) -> bool:
        """Whether it is a gain, and more than chance."""
        return self.difference > 0 and self.p < LEVEL


@dataclass(frozen=True)
class Weighing:
    """How queries count: every query language alike, whatever its number of queries.

    Attributes:
        weights: of each query, shape (queries,).
        blocks: block of neighbouring items of each query, shape (queries,).
    """

    weights: Floats
    blocks: NDArray[np.int64]

    @classmethod
    def of(cls, task: Task) -> Weighing:
        """One over the number of queries in the same language."""
        _, language, counts = np.unique(task.languages, return_inverse=True, return_counts=True)
        return cls(1 / counts[language], task.blocks)

    def mean(self, figures: Floats, kept: Mask) -> float:
        """Mean over query languages, of some of the queries."""
        return float(np.average(figures[kept], weights=self.weights[kept]))

    def change(self, before: Floats, after: Floats, kept: Mask) -> Change:
        """Compare two settings on some of the queries, query by query."""
        test = self.p_values({"": after - before}, kept)[""]
        low, high = self.interval(after - before, kept)
        return Change(self.mean(before, kept), self.mean(after, kept), low, high, test)

    def p_values(self, differences: dict[str, Floats], kept: Mask) -> dict[str, float]:
        """P-values of differences over some of the queries, corrected for being several."""
        # The test's mean is one over queries: scaled, it is that over query languages.
        scale = self.weights[kept] / self.weights[kept].mean()
        names = [str(row) for row in np.flatnonzero(kept)]
        scaled = {key: dict(zip(names, (of[kept] * scale).tolist(), strict=True)) for key, of in differences.items()}
        clusters = dict(zip(names, map(str, self.blocks[kept]), strict=True))
        return {key: tested.corrected for key, tested in paired_tests(scaled, clusters).items()}

    def interval(self, differences: Floats, kept: Mask) -> tuple[float, float]:
        """95 % interval of a mean difference, by the bootstrap over blocks."""
        from scipy import stats

        weights, blocks = self.weights[kept], self.blocks[kept]
        sums = np.bincount(blocks, weights * differences[kept])
        sizes = np.bincount(blocks, weights)
        there = sizes > 0

        def mean(total: Floats, size: Floats, axis: int) -> Floats:
            found: Floats = total.sum(axis=axis) / size.sum(axis=axis)
            return found

        found = stats.bootstrap(
            (sums[there], sizes[there]),
            mean,
            paired=True,
            vectorized=True,
            n_resamples=_RESAMPLES,
            method="percentile",
            random_state=SEED,
        )
        return float(found.confidence_interval.low), float(found.confidence_interval.high)
