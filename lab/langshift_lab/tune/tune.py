"""What to recommend: chosen on some folds of the queries, judged on the others, taken where the gain is no chance.

Two steps, both of documents alone: the shift, at one alpha, judged against nothing shifted; and a gamma with the whole
shift, beside which alphas differ little, along some number of directions, judged against the first step. Of what is
tried the smallest is chosen whose nDCG@20, every query language alike, falls short of the highest by no more than
chance. A gamma, which is one more thing to keep and to undo, has to gain what is worth seeing, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.directions import spanned_directions
from langshift.evaluate.compare.significance import LEVEL, SEED, Floats, paired_tests
from langshift.evaluate.compare.verdict import VISIBLE
from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline.ranking import debias_vectors, score_blocks, top
from langshift_lab.tune.task import FOLDS, Mask, TuningTask, select_queries

TARGET, OTHERS, COST = "nDCG@20", "TLR@20", "SLR@20"
MEASURES = (TARGET, OTHERS, COST, "R@20")
_DEPTH = 20

_RESAMPLES = 9_999


class MeasureChange(NamedTuple):
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


class Weighing(NamedTuple):
    """How queries count: every query language alike, whatever its number of queries.

    Attributes:
        weights: of each query, shape (queries,).
        blocks: block of neighbouring items of each query, shape (queries,).
    """

    weights: Floats
    blocks: NDArray[np.int64]

    @classmethod
    def of(cls, task: TuningTask) -> Weighing:
        """One over the number of queries in the same language."""
        _, language, counts = np.unique(task.languages, return_inverse=True, return_counts=True)
        return cls(1 / counts[language], task.blocks)

    def mean(self, figures: Floats, mask: Mask) -> float:
        """Mean over query languages, of some of the queries; NaN where a measure counts none of them."""
        counted = mask & ~np.isnan(figures)
        return float(np.average(figures[counted], weights=self.weights[counted])) if counted.any() else float("nan")

    def change(self, before: Floats, after: Floats, mask: Mask) -> MeasureChange:
        """Compare two settings on some of the queries, query by query; those that the measure counts."""
        test = self.p_values({"": after - before}, mask & ~np.isnan(before))[""]
        low, high = self.interval(after - before, mask)
        return MeasureChange(self.mean(before, mask), self.mean(after, mask), low, high, test)

    def p_values(self, differences: dict[str, Floats], mask: Mask) -> dict[str, float]:
        """P-values of differences over some of the queries, corrected for being several."""
        # The test's mean is one over queries: scaled, it is that over query languages.
        scale = self.weights[mask] / self.weights[mask].mean()
        names = [str(row) for row in np.flatnonzero(mask)]
        scaled = {key: dict(zip(names, (of[mask] * scale).tolist(), strict=True)) for key, of in differences.items()}
        clusters = dict(zip(names, map(str, self.blocks[mask]), strict=True))
        return {key: tested.corrected for key, tested in paired_tests(scaled, clusters).items()}

    def interval(self, differences: Floats, mask: Mask) -> tuple[float, float]:
        """95 % interval of a mean difference, by the bootstrap over blocks; NaN where a measure counts no query."""
        from scipy import stats

        counted = mask & ~np.isnan(differences)
        if not counted.any():
            return float("nan"), float("nan")
        weights, blocks = self.weights[counted], self.blocks[counted]
        sums = np.bincount(blocks, weights * differences[counted])
        sizes = np.bincount(blocks, weights)
        there = sizes > 0

        found = stats.bootstrap(
            (sums[there], sizes[there]),
            lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
            paired=True,
            vectorized=True,
            n_resamples=_RESAMPLES,
            method="percentile",
            random_state=SEED,
        )
        return float(found.confidence_interval.low), float(found.confidence_interval.high)


class TuningSettings(NamedTuple):
    """How documents are moved.

    Attributes:
        alpha: scale of the shift.
        gamma: how much of what all queries have in common is taken out.
        directions: along how many directions; 0 where gamma is.
    """

    alpha: float = 0.0
    gamma: float = 0.0
    directions: int = 0


@dataclass(frozen=True)
class TuningPoint:
    """What a setting gives.

    Attributes:
        setting: the setting.
        figures: measure -> each query's figure, shape (queries,), in the task's order.
    """

    setting: TuningSettings
    figures: Mapping[str, Floats] = field(repr=False)


def search(task: TuningTask, mask: Mask, debias: MethodDebiaser) -> dict[str, Floats]:
    """Search a task's documents with some of its queries, exactly.

    Args:
        task: queries and documents.
        mask: which queries, shape (queries,).
        debias: what moves documents.

    Returns:
        Measure -> each query's figure, shape (queries,); NaN where the measure does not count a query.
    """
    encoded, grades = select_queries(task.encoded, mask), task.grades[mask]
    order = np.array(sorted(range(len(encoded.ids)), key=encoded.ids.__getitem__, reverse=True))
    own = {encoded.ids[place]: column for column, place in enumerate(order)} if encoded.dataset.own_documents else {}
    depth = min(_DEPTH, len(order))
    best = np.empty((grades.shape[0], depth), np.int64)
    for first, block in score_blocks(debias_vectors(encoded, debias), order):
        for row, cosines in enumerate(block, first):
            if (query := encoded.dataset.queries[row].id) in encoded.dataset.own_documents:
                cosines[own[query]] = -np.inf
            best[row] = order[top(cosines, depth)]
    asked = np.arange(len(best))[:, np.newaxis]
    gains = np.asarray(grades[asked, best].todense())
    same = task.document_languages[best] == task.languages[mask][:, np.newaxis]
    rows, columns = grades.nonzero()
    in_own = task.document_languages[columns] == task.languages[mask][rows]
    answers, own_answers = (np.bincount(rows, which, len(best)) for which in (np.ones(len(rows)), in_own))
    discounts = 1 / np.log2(np.arange(2, _DEPTH + 2))
    highest = [np.sort(grades.data[begin:end])[::-1][:_DEPTH] for begin, end in pairwise(grades.indptr)]
    ideal = np.array([found @ discounts[: len(found)] for found in highest])
    # A measure does not count the queries for which there is nothing to find.
    with np.errstate(invalid="ignore"):
        return {
            TARGET: gains @ discounts[:depth] / ideal,
            OTHERS: ((gains > 0) & ~same).sum(axis=1) / (answers - own_answers),
            COST: ((gains > 0) & same).sum(axis=1) / own_answers,
            "R@20": (gains > 0).sum(axis=1) / answers,
        }


OnPoint = Callable[[], None]


class Judge:
    """Searches a task at one setting after the other, and remembers.

    Attributes:
        task: queries and documents.
        vectors: the language vectors to judge.
        most_directions: how many directions the means of queries have, in every fold; 0 where none are known.
    """

    def __init__(self, task: TuningTask, vectors: MethodVectors, on_point: OnPoint = lambda: None) -> None:
        """Keep what all settings share.

        Args:
            task: queries and documents.
            vectors: the language vectors to judge.
            on_point: called after each search.
        """
        self.task, self.vectors = task, vectors
        self._on_point, self._known = on_point, dict[TuningSettings, TuningPoint]()
        self._parts = task.parts(vectors)
        means = (part.query_means for _, part in self._parts)
        self.most_directions = min(0 if one is None else spanned_directions(one) for one in means)

    def at(self, setting: TuningSettings) -> TuningPoint:
        """Search at a setting, and score; from memory where that was done before."""
        if setting not in self._known:
            figures = {measure: np.empty(len(self.task.folds)) for measure in MEASURES}
            for mask, vectors in self._parts:
                known = vectors.with_rank(setting.directions) if setting.gamma else vectors
                found = search(self.task, mask, MethodDebiaser(known, alpha=setting.alpha, gamma=setting.gamma))
                for measure in MEASURES:
                    figures[measure][mask] = found[measure]
            self._known[setting] = TuningPoint(setting, figures)
            self._on_point()
        return self._known[setting]


#: What is tried; ascending. Gammas from .9 to .98 are alike, and those between 0 and .9 worse than either.
ALPHAS, GAMMA, DIRECTIONS = tuple(tenth / 10 for tenth in range(11)), 0.97, (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
PLAIN = TuningSettings()
# Figures that differ by less come from another order of the same sums.
_DIGITS = 12


@dataclass(frozen=True)
class TuningStep:
    """One of the two steps, and whether it pays.

    Attributes:
        name: ``shift`` or ``gamma``.
        points: what was tried, ascending.
        setting: what is chosen on all folds.
        held_out: measure -> each query's figure at the setting chosen on the other folds, shape (queries,).
        change: of nDCG@20 over all queries, held out, from what stood before.
        taken: whether that is a gain beyond chance, and of a gamma one that is worth seeing.
    """

    name: str
    points: Sequence[TuningPoint]
    setting: TuningSettings
    held_out: Mapping[str, Floats] = field(repr=False)
    change: MeasureChange
    taken: bool


class TuningResult(NamedTuple):
    """All that was found.

    Attributes:
        plain: what is found with nothing shifted.
        steps: the shift, and then gamma, where the vectors have means of queries.
        weighing: how queries count.
    """

    plain: TuningPoint
    steps: Sequence[TuningStep]
    weighing: Weighing

    @property
    def recommended(self) -> TuningSettings:
        """That of the last step taken; nothing is shifted where none is."""
        return next((step.setting for step in reversed(self.steps) if step.taken), PLAIN)

    def changes(self, step: TuningStep, mask: Mask) -> dict[str, MeasureChange]:
        """Measure -> its change from nothing shifted, held out, over some of the queries; if it counts any of them."""
        plain = {name: of for name, of in self.plain.figures.items() if not np.isnan(of[mask]).all()}
        return {name: self.weighing.change(before, step.held_out[name], mask) for name, before in plain.items()}


def tune(judge: Judge) -> TuningResult:
    """Measure, choose and judge.

    Args:
        judge: searches the task.
    """
    weighing, plain = Weighing.of(judge.task), judge.at(PLAIN)
    shift = _step("shift", [TuningSettings(alpha) for alpha in ALPHAS], judge, weighing, plain.figures)
    steps = [shift]
    if judge.most_directions:
        tried = [TuningSettings(1.0, GAMMA, count) for count in DIRECTIONS if count <= judge.most_directions]
        before = shift.held_out if shift.taken else plain.figures
        steps.append(_step("gamma", tried, judge, weighing, before, VISIBLE))
    return TuningResult(plain, steps, weighing)


def _step(
    name: str,
    settings: Sequence[TuningSettings],
    judge: Judge,
    weighing: Weighing,
    before: Mapping[str, Floats],
    least: float = 0.0,
) -> TuningStep:
    """Choose on all folds for the recommendation, and on all but one for judging on that one."""
    points, folds = [judge.at(setting) for setting in settings], judge.task.folds
    every = np.ones(len(folds), bool)
    held_out = {measure: np.empty(len(folds)) for measure in MEASURES}
    for fold in range(FOLDS):
        inside = folds == fold
        point = _smallest(points, weighing, ~inside)
        for measure in MEASURES:
            held_out[measure][inside] = point.figures[measure][inside]
    setting = _smallest(points, weighing, every).setting
    change = weighing.change(before[TARGET], held_out[TARGET], every)
    return TuningStep(
        name, points, setting, held_out, change, change.gained and change.difference >= least and setting != PLAIN
    )


def _smallest(points: Sequence[TuningPoint], weighing: Weighing, mask: Mask) -> TuningPoint:
    """The first point that falls short of the best by no more than chance: 0 lies in the 95 % interval of that."""
    best = max(points, key=lambda point: round(weighing.mean(point.figures[TARGET], mask), _DIGITS))
    for point in points:
        if weighing.interval(best.figures[TARGET] - point.figures[TARGET], mask)[0] <= 0:
            return point
    return best
