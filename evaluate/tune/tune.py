"""What to recommend: chosen on some folds of the items, judged on the others, taken where the gain is no chance.

Two steps: documents alone, at one alpha, judged against nothing shifted; and both sides, without the common mean and
with queries shifted, judged against the documents alone. Each setting comes with the language preference that it needs:
the smallest with which SLR@20 over all queries, every query language alike, is at most the budget below that of nothing
shifted. Of these the one with the highest TLR@20 is sought, and of those that fall short of it by no more than chance
the smallest is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import Debiaser
from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.evaluate.compare.significance import LEVEL, SEED, Floats, paired_tests
from langshift.evaluate.tune.search import COST, MEASURES, TARGET, TuningCandidates, find_candidates
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


class TuningSettings(NamedTuple):
    """How both sides are moved, and what documents in the query's language get.

    Attributes:
        alpha: scale of the shift.
        gamma: scale of the common mean, which both sides lose.
        shift_queries: whether queries of other languages than the pivot are shifted too.
        preference: what a document in the query's language gets on top of its cosine.
    """

    alpha: float = 0.0
    gamma: float = 0.0
    shift_queries: bool = False
    preference: float = 0.0

    def recommendation(self) -> Recommendation:
        """The same for the file of language vectors."""
        return Recommendation(**self._asdict())


@dataclass(frozen=True)
class TuningPoint:
    """What a setting gives.

    Attributes:
        setting: the setting.
        figures: measure -> each query's figure, shape (queries,), in the task's order.
    """

    setting: TuningSettings
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
        self._on_point, self._known = on_point, dict[TuningSettings, TuningCandidates]()
        self._parts = [(np.ones(len(task.folds), bool), vectors)]
        if same_text:
            self._parts = [(task.folds == fold, held_out_vectors(vectors, task, fold)) for fold in range(FOLDS)]

    def candidates(self, setting: TuningSettings) -> TuningCandidates:
        """Search at a setting, whatever its preference; from memory where that was done before."""
        setting = setting._replace(preference=0.0, shift_queries=setting.shift_queries and setting.alpha > 0)
        if setting not in self._known:
            parts = []
            for mask, vectors in self._parts:
                debias = Debiaser(vectors, "shift", setting.alpha, {}, setting.shift_queries, setting.gamma)
                parts.append(find_candidates(self.task, mask, debias))
            places = np.argsort(np.concatenate([np.flatnonzero(mask) for mask, _ in self._parts]))
            self._known[setting] = TuningCandidates(*(np.concatenate(of)[places] for of in zip(*parts, strict=True)))
            self._on_point()
        return self._known[setting]

    def at(self, setting: TuningSettings) -> TuningPoint:
        """Search at a setting, and score."""
        return TuningPoint(setting, self.candidates(setting).figures(setting.preference))


#: Scales of the shift, and of the common mean, that are tried; ascending.
SCALES = tuple(tenth / 10 for tenth in range(11))
PLAIN = TuningSettings()
# A preference is given to so many digits, rounded up.
_PRECISION = 3
# Figures that differ by less come from another order of the same sums.
_DIGITS, _TOLERANCE = 12, 1e-12
Choice = Callable[[Mask], TuningPoint]


@dataclass(frozen=True)
class TuningStep:
    """One of the two recommendations, and whether it pays.

    Attributes:
        name: ``documents_only`` or ``both_sides``.
        setting: what is chosen on all folds.
        held_out: measure -> each query's figure at the setting chosen on the other folds, shape (queries,).
        change: of TLR@20 over all queries, held out, from what stood before.
        taken: whether that is a gain beyond chance.
    """

    name: str
    setting: TuningSettings
    held_out: Mapping[str, Floats] = field(repr=False)
    change: MeasureChange
    taken: bool


class TuningResult(NamedTuple):
    """All that was found.

    Attributes:
        budget: how much SLR@20 may fall.
        plain: what is found with nothing shifted.
        curves: step -> a point for each alpha, and for both sides for each gamma instead, where the file has common
            means; each with the preference that it needs.
        steps: the two, documents alone first.
        weighing: how queries count.
    """

    budget: float
    plain: TuningPoint
    curves: Mapping[str, Sequence[TuningPoint]]
    steps: Sequence[TuningStep]
    weighing: Weighing

    @property
    def last(self) -> TuningStep | None:
        """The last step taken; None where nothing is gained."""
        return next((step for step in reversed(self.steps) if step.taken), None)

    @property
    def documents_only(self) -> TuningSettings:
        """What is recommended where queries stay as they are."""
        return self.steps[0].setting if self.steps[0].taken else PLAIN

    @property
    def both_sides(self) -> TuningSettings:
        """What is recommended where queries may be moved, too."""
        return self.last.setting if self.last else PLAIN

    def changes(self, step: TuningStep, mask: Mask) -> dict[str, MeasureChange]:
        """Measure -> its change from nothing shifted, held out, over some of the queries."""
        return {name: self.weighing.change(self.plain.figures[name], step.held_out[name], mask) for name in MEASURES}


def tune(judge: Judge, budget: float) -> TuningResult:
    """Measure, choose and judge.

    Args:
        judge: searches the task.
        budget: how much SLR@20 may fall from that of nothing shifted.
    """
    chooser = _Chooser(judge, budget)
    plain = judge.at(PLAIN)
    documents = chooser.step("documents_only", chooser.documents_only, PLAIN, plain.figures)
    before = (documents.setting, documents.held_out) if documents.taken else (PLAIN, plain.figures)
    both = chooser.step("both_sides", chooser.both_sides, *before)
    every = np.ones(len(judge.task.folds), bool)
    settings = chooser.gammas(both.setting) if judge.vectors.common else chooser.alphas(both.setting)
    curves = {
        documents.name: chooser.affordable([TuningSettings(alpha) for alpha in SCALES], every),
        both.name: chooser.affordable(
            [one for one in settings if one.shift_queries == both.setting.shift_queries], every
        ),
    }
    return TuningResult(budget, plain, curves, [documents, both], chooser.weighing)


class _Chooser:
    """Chooses among settings by what they give on some of the queries."""

    def __init__(self, judge: Judge, budget: float) -> None:
        self._judge, self._budget, self._folds = judge, budget, judge.task.folds
        self.weighing = Weighing.of(judge.task)

    def step(self, name: str, choice: Choice, stands: TuningSettings, before: Mapping[str, Floats]) -> TuningStep:
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

    def documents_only(self, mask: Mask) -> TuningPoint:
        """The smallest alpha that is as good as the best where queries stay as they are."""
        settings = [TuningSettings(alpha) for alpha in SCALES]
        return self._smallest(settings, self._best(settings, mask), mask)

    def both_sides(self, mask: Mask) -> TuningPoint:
        """The smallest setting as good as the best: by gamma first, then with queries as they are, then by alpha.

        The best is sought along lines, with queries shifted and not: alpha, gamma at that alpha, alpha at that gamma.
        The grid of all would take four times as long, and is flat about its highest place (e5-small, NTREX).
        """
        best = self._best(self.alphas(PLAIN), mask)
        for settings in (self.gammas, self.alphas):
            best = self._best(settings(best.setting), mask)
        smallest = self._smallest(self.gammas(best.setting), best, mask)
        return self._smallest(self.alphas(smallest.setting), best, mask)

    def alphas(self, setting: TuningSettings) -> list[TuningSettings]:
        """The setting at each alpha, queries as they are and shifted."""
        return [setting._replace(alpha=alpha, shift_queries=queries) for queries in (False, True) for alpha in SCALES]

    def gammas(self, setting: TuningSettings) -> list[TuningSettings]:
        """The setting at each gamma for which the file has common means, queries as they are and shifted."""
        gammas = SCALES if self._judge.vectors.common else SCALES[:1]
        return [setting._replace(gamma=gamma, shift_queries=queries) for gamma in gammas for queries in (False, True)]

    def affordable(self, settings: Iterable[TuningSettings], mask: Mask) -> list[TuningPoint]:
        """The settings that can keep the budget on some queries, each with the preference that it needs for that."""
        needed = ((setting, self._preference(setting, mask)) for setting in settings)
        return [self._judge.at(one._replace(preference=least)) for one, least in needed if least is not None]

    def _preference(self, setting: TuningSettings, mask: Mask) -> float | None:
        """The smallest language preference that keeps the budget; None where none does."""
        least = self._mean(self._judge.at(PLAIN), COST, mask) - self._budget - _TOLERANCE
        thresholds, weights = self._judge.candidates(setting).thresholds()[mask], self.weighing.weights[mask]
        order = np.argsort(thresholds)
        kept = np.cumsum(weights[order]) / weights.sum()
        reached = order[np.searchsorted(kept, least) :][:1]
        needed = float(thresholds[reached[0]]) if len(reached) else np.inf
        digits = 10**_PRECISION
        return float(np.ceil(max(needed, 0.0) * digits) / digits) if needed <= 1 else None

    def _best(self, settings: Iterable[TuningSettings], mask: Mask) -> TuningPoint:
        """The point with the highest TLR within the budget; among equals, and where none is, the first."""
        points = self.affordable(settings, mask) or [self._judge.at(PLAIN)]
        return max(points, key=lambda point: self._mean(point, TARGET, mask))

    def _smallest(self, settings: Iterable[TuningSettings], best: TuningPoint, mask: Mask) -> TuningPoint:
        """The first point that falls short of the best by no more than chance: 0 lies in the 95 % interval of that."""
        for point in self.affordable(settings, mask):
            loss = best.figures[TARGET] - point.figures[TARGET]
            if self.weighing.interval(loss, mask)[0] <= 0:
                return point
        return best

    def _mean(self, point: TuningPoint, measure: str, mask: Mask) -> float:
        return round(self.weighing.mean(point.figures[measure], mask), _DIGITS)
