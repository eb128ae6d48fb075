"""What tuning found: as JSON, in sentences and tables, as a curve, and for the file of language vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.errors import UsageError, require_extra
from langshift.evaluate.figures.theme import BLUE, GREEN, VERMILION
from langshift.evaluate.report.run_tables import bars
from langshift.evaluate.report.tables import probability
from langshift.evaluate.tune import tune
from langshift.evaluate.tune.task import FOLDS
from langshift.evaluate.tune.tune import ALPHAS, COST, MEASURES, PLAIN, TARGET, MeasureChange, TuningPoint
from langshift.files import atomic_write
from langshift.output import format_change, format_score, heading, join_words, line, table
from langshift.settings import VERSION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class TuningReport:
    """All that is told of a tuning.

    Attributes:
        pairs: how the parallel text is called.
        judge: searched the task.
        found: curves, steps and the choice.
        absent: languages of the vectors that the parallel text does not have.
        few: languages that too few items have.
        same_text: whether the vectors were fitted on this text.
    """

    pairs: str
    judge: tune.Judge
    found: tune.TuningResult
    absent: Sequence[str]
    few: Sequence[str]
    same_text: bool

    @property
    def reported_step(self) -> tune.TuningStep:
        """The step whose held-out figures are shown: the last taken, else the first that would shift anything."""
        shifting = (step for step in self.found.steps if step.setting != PLAIN)
        return self.found.last or next(shifting, self.found.steps[0])

    @cached_property
    def held_out(self) -> dict[str, dict[str, MeasureChange]]:
        """Which queries -> measure -> its change from no shift at all, on held-out items."""
        return {name: self.found.changes(self.reported_step, mask) for name, mask in self.judge.task.groups.items()}

    def recommended(self) -> LanguageVectors:
        """The language vectors with the recommendation and what it rests on."""
        shifted = self.found.steps[0]
        documents = shifted.setting if shifted.taken else PLAIN
        advice = {"both_sides": _advice(self.found.setting), "documents_only": _advice(documents)}
        return replace(self.judge.vectors, **advice, tuning=self._record())

    def document(self) -> dict[str, Any]:
        """All that was found."""
        return {
            **self._record(),
            "absent": list(self.absent),
            "too_few_items": list(self.few),
            "curve": {name: self._curve(points) for name, points in self.found.curves.items()},
            "steps": [_step(step) for step in self.found.steps],
        }

    def _record(self) -> dict[str, Any]:
        """What the file keeps: what was measured, on what, and the curve in brief."""
        judge, found = self.judge, self.found
        task = judge.task
        return {
            "recommended": _setting(found.setting),
            "shift": found.last is not None,
            "pairs": self.pairs,
            "items": task.count,
            "queries": len(task.items),
            "documents": len(task.encoded.ids),
            "languages": sorted(set(task.languages.tolist())),
            "question_share": round(task.share, 4),
            "fitted_on_same_text": self.same_text,
            "measure": TARGET,
            "budget": found.budget,
            "folds": FOLDS,
            "blocks": len(np.unique(task.blocks)),
            "chosen_by": self.reported_step.name,
            "held_out": {
                name: {measure: _change(change) for measure, change in changes.items()}
                for name, changes in self.held_out.items()
            },
            "curve": {
                name: [[point.setting.alpha, *self._means(point).values()] for point in points]
                for name, points in found.curves.items()
            },
            "curve_columns": ["alpha", *MEASURES],
            "langshift": VERSION,
        }

    def mean(self, point: TuningPoint, measure: str, group: str = "all") -> float:
        """A measure over the queries that are reported together, every query language alike."""
        return self.found.weighing.mean(point.figures[measure], self.judge.task.groups[group])

    def _means(self, point: TuningPoint, group: str = "all") -> dict[str, float]:
        return {name: round(self.mean(point, name, group), 4) for name in MEASURES}

    def _curve(self, points: Sequence[TuningPoint]) -> list[dict[str, Any]]:
        """The curve with each group's means, and the interval of each change from alpha 0."""
        return [
            {
                "alpha": point.setting.alpha,
                **{group: self._means(point, group) for group in self.judge.task.groups},
                "change": {measure: list(bounds) for measure, bounds in self.intervals(point).items()},
            }
            for point in points
        ]

    def intervals(self, point: TuningPoint) -> Mapping[str, tuple[float, float]]:
        """95 % intervals of the changes from alpha 0, over all queries."""
        before, after, interval = self.found.plain.figures, point.figures, self.found.weighing.interval
        return {name: interval(after[name] - before[name], self.judge.task.groups["all"]) for name in MEASURES}


def _advice(setting: tune.ShiftSettings) -> Recommendation:
    return Recommendation(setting.alpha, dict(setting.own), shift_queries=setting.shift_queries)


def _setting(setting: tune.ShiftSettings) -> dict[str, Any]:
    return {"alpha": setting.alpha, "alphas": dict(setting.own), "shift_queries": setting.shift_queries}


def _step(step: tune.TuningStep) -> dict[str, Any]:
    return {"name": step.name, **_setting(step.setting), "taken": step.taken, TARGET: _change(step.change)}


def _change(change: MeasureChange) -> dict[str, float]:
    return {name: round(value, 6) for name, value in (*change._asdict().items(), ("difference", change.difference))}


FORMATS = (".svg", ".png", ".pdf")
_COLOURS = {TARGET: BLUE, "nDCG@20": GREEN, COST: VERMILION}
_LINES = {"documents": "-", "both": "--"}
_SAID = {"documents": "documents shifted", "both": "queries shifted too"}


def require_plotting(path: Path) -> None:
    """Refuse, before any work, a figure that cannot be drawn or written.

    Raises:
        UsageError: the name ends in none of the known formats, or names no place to write to.
        LangshiftError: the extra is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--plot {path}: the file name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    require_extra("--plot needs", "plot", "matplotlib")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"--plot {path} cannot be written: it is a folder, or its folder is not writable.")


def plot(report: TuningReport, path: Path) -> None:
    """Draw both curves: what is gained over alpha 0 on the left, what it costs on the right.

    Args:
        report: what was found.
        path: where to; its ending names the format. It appears whole or not at all.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Letters stay letters, and the same curves give the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "langshift"}):
        drawn = Figure(figsize=(10, 4.5), layout="constrained")
        gains, losses = drawn.subplots(1, 2)
        for measure in (TARGET, "nDCG@20"):
            _curves(gains, report, measure)
        _curves(losses, report, COST)
        losses.axhline(-report.found.budget, color="black", linestyle=":", label=f"budget {report.found.budget:g}")
        _dress(gains, report, "What it gains")
        _dress(losses, report, "What it costs")
        drawn.suptitle(_title(report))
        format_ = path.suffix.lower().removeprefix(".")
        with atomic_write(path) as partial:
            drawn.savefig(partial, format=format_, dpi=150, metadata={"Date": None} if format_ == "svg" else None)


def _curves(axes: Axes, report: TuningReport, measure: str) -> None:
    """One measure's change from alpha 0 along alpha, both curves, each with its interval as a band."""
    plain, colour = report.mean(report.found.plain, measure), _COLOURS[measure]
    for name, points in report.found.curves.items():
        changes = [report.mean(point, measure) - plain for point in points]
        axes.plot(ALPHAS, changes, _LINES[name], color=colour, marker="o", ms=3, label=f"{measure}, {_SAID[name]}")
        if name == "documents":
            low, high = zip(*(report.intervals(point)[measure] for point in points), strict=True)
            axes.fill_between(ALPHAS, low, high, color=colour, alpha=0.15, linewidth=0)


def _dress(axes: Axes, report: TuningReport, title: str) -> None:
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.axvline(report.found.setting.alpha, color="black", linewidth=0.8, label="recommended alpha")
    axes.yaxis.set_major_formatter("{x:+.3f}")
    axes.set(title=title, xlabel="alpha", ylabel="change from alpha 0")
    axes.legend(fontsize="small")


def _title(report: TuningReport) -> str:
    task, vectors = report.judge.task, report.judge.vectors
    languages = len(set(task.languages.tolist()))
    return (
        f"{vectors.encoder}, pivot {vectors.pivot}, on {report.pairs}: {len(task.items):,} queries in {languages} "
        "languages\nbands: 95 % intervals over blocks of items, documents shifted"
    )


# Where nearly everything is found, little can be lost.
_EASY = 0.98


def describe_task(report: TuningReport) -> list[str]:
    """What was asked and searched."""
    task, vectors = report.judge.task, report.judge.vectors
    languages = sorted(set(task.languages.tolist()))
    judged = (
        "The vectors were fitted on this same text, so each fifth of it is judged with vectors that leave it out."
        if report.same_text
        else "The vectors are judged as they are."
    )
    return [
        f"{report.pairs}: {task.count:,} items in {join_words(languages)}. {len(task.items):,} queries, each about "
        f"{task.share:.0%} of an item, cut from its middle, search {len(task.encoded.ids):,} documents, the whole "
        "items; an item is relevant in every language.",
        f"{judged} Every query language counts equally; the pivot is {vectors.pivot}, and the shift may cost at most "
        f"{format_score(report.found.budget)} of {COST}.",
    ]


def recommendation(report: TuningReport) -> list[str]:
    """What to do, what it gains, and what it costs."""
    overall = report.held_out["all"]
    target, cost = overall[TARGET], overall[COST]
    if report.found.last is None:
        why = f"no alpha above 0 raises {TARGET} within the budget"
        if report.reported_step.setting != PLAIN:
            why = (
                f"the alpha chosen on the other items changes {TARGET} on held-out ones by {change_of(target)}, "
                f"p {probability(target.p)}, which is not a gain beyond chance"
            )
        return [f"Do not shift this model: {why}. Recommended: alpha 0."]
    return [
        f"Recommended: {_setting_sentence(report)}.",
        f"On held-out items {TARGET} changes from {format_score(target.before)} to {format_score(target.after)}: "
        f"{change_of(target)}, p {probability(target.p)}; {COST} from {format_score(cost.before)} to "
        f"{format_score(cost.after)}: {change_of(cost)}.",
    ]


def warnings(report: TuningReport) -> list[str]:
    """What makes the figures less than they seem, in sentences."""
    notes = []
    if report.absent:
        notes.append(f"Not measured: {join_words(list(report.absent))}, in which {report.pairs} has no text.")
    if report.few:
        notes.append(
            f"Not measured: {join_words(list(report.few))}, in which too few items have text to cut a query from; "
            "a higher --sample may help."
        )
    overall = report.held_out["all"][COST]
    if overall.before > _EASY:
        notes.append(
            f"{COST} is {format_score(overall.before)} with nothing shifted, so this task can hardly show what a shift "
            "costs: a higher --sample makes the task harder."
        )
    # A mean can hide a group of queries whose own loss is beyond the budget.
    names = {"all": "over all queries", "pivot": "for queries in the pivot language", "others": "for the other queries"}
    losses = {names[group]: -changes[COST].difference for group, changes in report.held_out.items()}
    over = [f"{format_score(loss)} {name}" for name, loss in losses.items() if loss > report.found.budget]
    if report.found.last and over:
        notes.append(f"On held-out items {COST} falls by more than the budget: by {join_words(over)}.")
    return notes


def interval(found: MeasureChange) -> str:
    """``+.0084 to +.0123``."""
    return f"{format_change(found.low)} to {format_change(found.high)}"


def change_of(found: MeasureChange) -> str:
    """A change with its interval: ``+.0103 (95 % +.0084 to +.0123)``."""
    return f"{format_change(found.difference)} (95 % {interval(found)})"


def _setting_sentence(report: TuningReport) -> str:
    setting, pivot = report.found.setting, report.judge.vectors.pivot
    own = [f"{alpha:g} for {key}" for key, alpha in setting.own]
    alphas = join_words([*own, f"{setting.alpha:g} for {'every other' if own else 'every'} language"])
    queries = f"queries in languages other than {pivot} shifted too" if setting.shift_queries else "queries not shifted"
    return f"alpha {alphas}; {queries}"


_QUERIES = {"documents": "queries not shifted", "both": "and queries in languages other than the pivot too"}
_STEPS = {"documents": "shift documents", "queries": "shift queries too", "languages": "alphas by language"}


def show(report: TuningReport) -> None:
    """Print the task, both curves, what each step and the recommendation give on held-out items, and the words."""
    for sentence in describe_task(report):
        line(sentence)
    for name, points in report.found.curves.items():
        heading(f"\nDocuments shifted, {_QUERIES[name]}")
        _curve(report, points)
    heading(f"\nStep by step: {TARGET} on each fifth of the items, with the settings chosen on the other four")
    _steps(report)
    heading(f"\nNo shift compared with the step {_STEPS[report.reported_step.name]!r}, on the same fifths")
    _held_out(report)
    line("")
    for sentence in recommendation(report):
        line(sentence)


def _curve(report: TuningReport, points: Sequence[TuningPoint]) -> None:
    means = [{name: report.mean(point, name) for name in MEASURES} for point in points]
    least = means[0][COST] - report.found.budget
    rows = [
        [
            f"{point.setting.alpha:g}",
            *(format_score(mean[name]) for name in MEASURES),
            bar,
            "over budget" if mean[COST] < least else "",
        ]
        for point, mean, bar in zip(points, means, bars([mean[TARGET] for mean in means]), strict=True)
    ]
    table(None, ["alpha", *MEASURES, f"{TARGET} as a bar", ""], rows, right={"alpha", *MEASURES})


def _steps(report: TuningReport) -> None:
    rows = [
        [
            _STEPS[step.name],
            _alphas(step.setting),
            *map(format_score, (step.change.before, step.change.after)),
            interval(step.change),
            probability(step.change.p),
            "yes" if step.taken else "no",
        ]
        for step in report.found.steps
    ]
    heads = ["step", "alpha", "without", "with", "change, 95 %", "p", "gained"]
    table(None, heads, rows, right={"alpha", "without", "with", "change, 95 %", "p"}, prose={"alpha"})


def _alphas(setting: tune.ShiftSettings) -> str:
    return ", ".join([f"{setting.alpha:g}", *(f"{key} {alpha:g}" for key, alpha in setting.own)])


def _held_out(report: TuningReport) -> None:
    said = {"all": "all", "pivot": f"in {report.judge.vectors.pivot}", "others": "in other languages"}
    rows = [
        [
            said[group] if measure == TARGET else "",
            measure,
            *map(format_score, (change.before, change.after)),
            change_of(change),
        ]
        for group, changes in report.held_out.items()
        for measure, change in changes.items()
    ]
    heads = ["queries", "measure", "alpha 0", "shifted", "change"]
    table(None, heads, rows, right=set(heads[2:]))
