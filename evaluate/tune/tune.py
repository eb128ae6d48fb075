"""How far to shift: chosen on some folds of the items, judged on the others, taken where the gain is no chance.

Three steps, each against what stands after the one before: shift documents at one alpha; shift queries too, at
an alpha chosen for that; give single languages their own alpha. What is chosen is the setting with the highest
TLR@20 over all queries, every query language alike, whose SLR@20 is at most the budget below that of alpha 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.compare.significance import LEVEL, SEED, Floats, paired_tests
from langshift.evaluate.offline.sweep import Sweeper
from langshift.evaluate.tune.task import FOLDS, Mask, TuningTask, held_out_vectors

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
        """Mean over query languages, of some of the queries."""
        return float(np.average(figures[mask], weights=self.weights[mask]))

    def change(self, before: Floats, after: Floats, mask: Mask) -> MeasureChange:
        """Compare two settings on some of the queries, query by query."""
        test = self.p_values({"": after - before}, mask)[""]
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
        """95 % interval of a mean difference, by the bootstrap over blocks."""
        from scipy import stats

        weights, blocks = self.weights[mask], self.blocks[mask]
        sums = np.bincount(blocks, weights * differences[mask])
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


TARGET, COST = "TLR@20", "SLR@20"
MEASURES = (TARGET, COST, "nDCG@20", "R@20")


class ShiftSettings(NamedTuple):
    """How documents, and perhaps queries, are shifted.

    Attributes:
        alpha: scale of the shift.
        own: language vector and its own alpha, sorted, for those that differ from ``alpha``.
        shift_queries: whether queries of other languages than the pivot are shifted too.
    """

    alpha: float = 0.0
    own: tuple[tuple[str, float], ...] = ()
    shift_queries: bool = False

    def with_own(self, alphas: Mapping[str, float]) -> ShiftSettings:
        """The same with alphas of single languages in the place of those that it has."""
        return self._replace(own=tuple(sorted((key, alpha) for key, alpha in alphas.items() if alpha != self.alpha)))


@dataclass(frozen=True)
class TuningPoint:
    """What a setting gives.

    Attributes:
        setting: the setting.
        figures: measure -> each query's figure, shape (queries,), in the task's order.
    """

    setting: ShiftSettings
    figures: Mapping[str, Floats] = field(repr=False)


OnPoint = Callable[[], None]


class Judge:
    """Searches a task at one setting after the other, and remembers."""

    def __init__(
        self, task: TuningTask, vectors: LanguageVectors, *, same_text: bool, on_point: OnPoint = lambda: None
    ) -> None:
        """Keep what all settings share.

        Args:
            task: encoded questions and items.
            vectors: the language vectors to judge.
            same_text: whether they were fitted on the task's own text: each fold is then judged with what they
                would be without it.
            on_point: called after each search.
        """
        self.task, self.vectors = task, vectors
        self._on_point, self._known = on_point, dict[ShiftSettings, TuningPoint]()
        parts = [(np.ones(len(task.folds), bool), vectors)]
        if same_text:
            parts = [(task.folds == fold, held_out_vectors(vectors, task, fold)) for fold in range(FOLDS)]
        self._parts = [(mask, Sweeper(task.with_queries(mask), fitted, MEASURES)) for mask, fitted in parts]
        self.keys = self._parts[0][1].shiftable()

    def at(self, setting: ShiftSettings) -> TuningPoint:
        """Search at a setting, and score; from memory where that was done before."""
        if setting not in self._known:
            figures = {name: np.empty(len(self.task.items)) for name in MEASURES}
            queries = np.array([query.id for query in self.task.encoded.dataset.queries])
            for mask, sweeper in self._parts:
                point = sweeper.point(setting.alpha, dict(setting.own), shift_queries=setting.shift_queries)
                for name, scores in point.scores.items():
                    figures[name][mask] = [scores.per_query[query] for query in queries[mask]]
            self._known[setting] = TuningPoint(setting, figures)
            self._on_point()
        return self._known[setting]

    def curve(self, alphas: Sequence[float], *, shift_queries: bool = False) -> list[TuningPoint]:
        """One point for each alpha, all languages alike; alpha 0 leaves queries as they are, too."""
        return [self.at(ShiftSettings(alpha, shift_queries=shift_queries and alpha > 0)) for alpha in alphas]


ALPHAS = tuple(tenth / 10 for tenth in range(11))
PLAIN = ShiftSettings()
# Figures that differ by less come from another order of the same sums.
_DIGITS, _TOLERANCE = 12, 1e-12
Choice = Callable[[Mask], TuningPoint]


@dataclass(frozen=True)
class TuningStep:
    """One thing that can be shifted more than before, and whether that pays.

    Attributes:
        name: ``documents``, ``queries`` or ``languages``.
        setting: what is chosen on all folds.
        held_out: measure -> each query's figure at the setting chosen on the other folds, shape (queries,).
        change: of TLR@20 over all queries, held out, from what stood before.
        taken: whether that is a gain beyond chance.
    """

    name: str
    setting: ShiftSettings
    held_out: Mapping[str, Floats] = field(repr=False)
    change: MeasureChange
    taken: bool


class TuningResult(NamedTuple):
    """All that was found.

    Attributes:
        budget: how much SLR@20 may fall.
        curves: a point for each alpha: ``documents`` shifted, and ``both``, queries shifted too.
        steps: what was tried, in order.
        weighing: how queries count.
    """

    budget: float
    curves: Mapping[str, Sequence[TuningPoint]]
    steps: Sequence[TuningStep]
    weighing: Weighing

    @property
    def plain(self) -> TuningPoint:
        """What is found with nothing shifted."""
        return self.curves["documents"][0]

    @property
    def last(self) -> TuningStep | None:
        """The last step taken; None where nothing is gained."""
        return next((step for step in reversed(self.steps) if step.taken), None)

    @property
    def setting(self) -> ShiftSettings:
        """What is recommended."""
        return self.last.setting if self.last else PLAIN

    def changes(self, step: TuningStep, mask: Mask) -> dict[str, MeasureChange]:
        """Measure -> its change from no shift at all, held out, over some of the queries."""
        return {name: self.weighing.change(self.plain.figures[name], step.held_out[name], mask) for name in MEASURES}


def tune(judge: Judge, budget: float) -> TuningResult:
    """Measure, choose and judge.

    Args:
        judge: searches the task.
        budget: how much SLR@20 may fall from that of alpha 0.
    """
    chooser = _Chooser(judge, budget)
    documents, both = judge.curve(ALPHAS), judge.curve(ALPHAS, shift_queries=True)
    shifted = chooser.step("documents", lambda mask: chooser.best(documents, mask), PLAIN, documents[0].figures)
    before = (shifted.setting, shifted.held_out) if shifted.taken else (PLAIN, documents[0].figures)
    queries = chooser.step("queries", lambda mask: chooser.best(both, mask), *before)
    common = queries.setting if queries.taken else before[0]
    steps = [shifted, queries]
    # One language alone was tried at every alpha already.
    if len(judge.keys) > 1:
        before = (common, judge.at(common).figures)
        steps.append(chooser.step("languages", lambda mask: chooser.with_own_alphas(common, mask), *before))
    return TuningResult(budget, {"documents": documents, "both": both}, steps, chooser.weighing)


class _Chooser:
    """Chooses among points by what they give on some of the queries."""

    def __init__(self, judge: Judge, budget: float) -> None:
        self._judge, self._budget, self._folds = judge, budget, judge.task.folds
        self.weighing = Weighing.of(judge.task)

    def step(self, name: str, choice: Choice, stands: ShiftSettings, before: Mapping[str, Floats]) -> TuningStep:
        """Choose on all folds for the recommendation, and on all but one for judging on that one."""
        every = np.ones(len(self._folds), bool)
        held_out = {measure: np.empty(len(self._folds)) for measure in MEASURES}
        for fold in range(FOLDS):
            inside = self._folds == fold
            point = choice(~inside)
            for measure in MEASURES:
                held_out[measure][inside] = point.figures[measure][inside]
        setting = choice(every).setting
        change = self.weighing.change(before[TARGET], held_out[TARGET], every)
        return TuningStep(name, setting, held_out, change, change.gained and setting != stands)

    def best(self, points: Sequence[TuningPoint], mask: Mask) -> TuningPoint:
        """The point with the highest TLR within the budget, where the first always is; among equals the first."""
        allowed = [points[0], *(point for point in points[1:] if self._within_budget(point, mask))]
        return max(allowed, key=lambda point: self._mean(point, TARGET, mask))

    def with_own_alphas(self, common: ShiftSettings, mask: Mask) -> TuningPoint:
        """The point with single languages' own alphas, and the alpha that is best for the others beside these.

        What is common was chosen on all folds, before and after alike: what this step gains, own alphas gain.
        """
        own = self.own_alphas(common, mask)
        if not own:
            return self._judge.at(common)
        others = (common._replace(alpha=alpha).with_own(own) for alpha in _nearest_alphas(common))
        return self.best([self._judge.at(setting) for setting in others], mask)

    def own_alphas(self, common: ShiftSettings, mask: Mask) -> dict[str, float]:
        """Language vector -> its own alpha, where that gains more than chance on these queries.

        Each language is tried by itself, the others as they are in common; none gets its own alpha where all
        of these together would cost more than the budget.
        """
        stands = self._judge.at(common)
        near = _nearest_alphas(common)
        found = {}
        for key in self._judge.keys:
            best = self.best([self._judge.at(common.with_own({key: alpha})) for alpha in near], mask)
            if best is not stands:
                found[key] = best
        gains = {key: point.figures[TARGET] - stands.figures[TARGET] for key, point in found.items()}
        chances = self.weighing.p_values(gains, mask) if gains else {}
        own = {key: dict(found[key].setting.own)[key] for key, chance in chances.items() if chance < LEVEL}
        return own if self._within_budget(self._judge.at(common.with_own(own)), mask) else {}

    def _within_budget(self, point: TuningPoint, mask: Mask) -> bool:
        loss = self._mean(self._judge.at(PLAIN), COST, mask) - self._mean(point, COST, mask)
        return loss <= self._budget + _TOLERANCE

    def _mean(self, point: TuningPoint, measure: str, mask: Mask) -> float:
        return round(self.weighing.mean(point.figures[measure], mask), _DIGITS)


def _nearest_alphas(setting: ShiftSettings) -> list[float]:
    return sorted(ALPHAS, key=lambda alpha: abs(alpha - setting.alpha))
