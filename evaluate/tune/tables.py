"""What tuning found, as tables and sentences on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from langshift import console
from langshift.evaluate.report.compare_tables import probability
from langshift.evaluate.report.sweep_tables import bars
from langshift.evaluate.tune import words
from langshift.evaluate.tune.judging import COST, MEASURES, TARGET, Point, Setting
from langshift.evaluate.tune.report import Report
from langshift.shown import figure, heading, line

_STEPS = {
    "documents": "shift documents",
    "queries": "shift queries too",
    "languages": "single alphas",
}


def show(report: Report) -> None:
    """Print the task, both curves, what each step and the recommendation give on held-out items, and the words."""
    for sentence in words.task(report):
        line(sentence)
    heading("\nDocuments shifted, all queries as they are")
    _curve(report, report.found.documents)
    heading("\nDocuments shifted, and queries in other languages than the pivot too")
    _curve(report, report.found.both)
    heading(f"\nStep by step: {TARGET} on each fifth of the items, at what is chosen on the other four")
    _steps(report)
    heading(f"\nNothing shifted, and as in the step {_STEPS[report.told.name]!r}, on the same fifths")
    _held_out(report)
    line("")
    for sentence in words.recommendation(report):
        line(sentence)


def _curve(report: Report, points: Sequence[Point]) -> None:
    found = report.found
    means = [{name: found.weighing.mean(point.figures[name], report.every) for name in MEASURES} for point in points]
    least = means[0][COST] - found.budget
    rows = [
        [
            f"{point.setting.alpha:g}",
            *(figure(mean[name]) for name in MEASURES),
            bar,
            "over budget" if mean[COST] < least else "",
        ]
        for point, mean, bar in zip(points, means, bars([mean[TARGET] for mean in means]), strict=True)
    ]
    console.table(None, ["alpha", *MEASURES, f"{TARGET} as a bar", ""], rows, right={"alpha", *MEASURES})


def _steps(report: Report) -> None:
    rows = [
        [
            _STEPS[step.name],
            _alphas(step.setting),
            figure(step.change.before),
            figure(step.change.after),
            words.interval(step.change),
            probability(step.change.p),
            "yes" if step.taken else "no",
        ]
        for step in report.found.steps
    ]
    heads = ["step", "alpha", "without", "with", "change, 95 %", "p", "gained"]
    console.table(None, heads, rows, right={"without", "with", "change, 95 %", "p"})


def _alphas(setting: Setting) -> str:
    return ", ".join([f"{setting.alpha:g}", *(f"{key} {alpha:g}" for key, alpha in setting.own)])


def _held_out(report: Report) -> None:
    said = {"all": "all", "pivot": f"in {report.judge.vectors.pivot}", "others": "in others"}
    rows = [
        [
            said[group] if measure == TARGET else "",
            measure,
            figure(change.before),
            figure(change.after),
            words.change(change),
        ]
        for group, changes in report.held_out.items()
        for measure, change in changes.items()
    ]
    heads = ["queries", "measure", "alpha 0", "shifted", "change"]
    console.table(None, heads, rows, right=set(heads[2:]))
