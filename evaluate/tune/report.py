"""What tuning found: as JSON, in sentences and tables, and for the file of language vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.evaluate.compare.verdict import Choice, PairedFigures, Verdict, judge
from langshift.evaluate.report.run_tables import bars
from langshift.evaluate.report.tables import probability
from langshift.evaluate.tune import tune
from langshift.evaluate.tune.task import FOLDS
from langshift.evaluate.tune.tune import COST, MEASURES, PLAIN, TARGET, MeasureChange, TuningPoint, TuningStep
from langshift.output import heading, line, table
from langshift.settings import VERSION
from langshift.wording import format_change, format_score, join_words, pluralize


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
    def reported(self) -> list[TuningStep]:
        """The steps whose held-out figures are shown: those taken, else the first that would move anything."""
        steps = self.found.steps
        moving = [step for step in steps if step.setting != PLAIN] or list(steps)
        return [step for step in steps if step.taken] or moving[:1]

    @cached_property
    def held_out(self) -> dict[str, dict[str, dict[str, MeasureChange]]]:
        """Step -> which queries -> measure -> its change from nothing shifted, on held-out items."""
        groups = self.judge.task.groups
        return {
            step.name: {group: self.found.changes(step, mask) for group, mask in groups.items()}
            for step in self.reported
        }

    @cached_property
    def verdict(self) -> Verdict:
        """Whether to shift, by the held-out figures of the last step that is reported; no more than what is taken."""
        step, task = self.reported[-1], self.judge.task
        names = [str(number) for number in range(len(task.items))]
        before, after = (
            {name: dict(zip(names, of[name].tolist(), strict=True)) for name in MEASURES}
            for of in (self.found.plain.figures, step.held_out)
        )
        languages, blocks = (
            dict(zip(names, of.tolist(), strict=True)) for of in (task.languages, task.blocks.astype(str))
        )
        verdict = judge(PairedFigures(before, after, languages, blocks), _CHOICE)
        if self.found.recommended == PLAIN and verdict.kind in ("shift", "at a cost"):
            nothing = f"{_CHOICE.leave}: no setting raises {TARGET} by more than chance."
            return verdict._replace(kind="do not shift", sentence=nothing)
        return verdict

    @property
    def recommendation(self) -> Recommendation:
        """The same for the file of language vectors."""
        chosen = self.found.recommended
        return Recommendation(chosen.alpha, gamma=chosen.gamma)

    def recommended(self) -> LanguageVectors:
        """The language vectors with what is recommended, the directions among it, and what that rests on."""
        vectors, count = self.judge.vectors, self.found.recommended.directions
        chosen = vectors.with_rank(count) if count else vectors
        return replace(chosen, recommendation=self.recommendation, tuning=self._record())

    def document(self) -> dict[str, Any]:
        """All that was found."""
        return {
            **self._record(),
            "verdict": self.verdict.to_dict(),
            "absent": list(self.absent),
            "too_few_items": list(self.few),
            "curve": {step.name: self._curve(step.points) for step in self.found.steps},
            "steps": [_step(step) for step in self.found.steps],
        }

    def _record(self) -> dict[str, Any]:
        """What the file keeps: what was measured, on what, and the curves in brief."""
        judge, found = self.judge, self.found
        task = judge.task
        return {
            "recommended": found.recommended._asdict(),
            "shift": found.recommended != PLAIN,
            "pairs": self.pairs,
            "items": task.count,
            "queries": len(task.items),
            "documents": len(task.encoded.ids),
            "languages": sorted(set(task.languages.tolist())),
            "question_share": round(task.share, 4),
            "fitted_on_same_text": self.same_text,
            "measure": TARGET,
            "folds": FOLDS,
            "blocks": len(np.unique(task.blocks)),
            "held_out": {
                step: {
                    group: {measure: _change(change) for measure, change in changes.items()}
                    for group, changes in groups.items()
                }
                for step, groups in self.held_out.items()
            },
            "curve": {
                step.name: [[*point.setting, *self._means(point).values()] for point in step.points]
                for step in found.steps
            },
            "curve_columns": [*PLAIN._fields, *MEASURES],
            "langshift": VERSION,
        }

    def mean(self, point: TuningPoint, measure: str, group: str = "all") -> float:
        """A measure over the queries that are reported together, every query language alike."""
        return self.found.weighing.mean(point.figures[measure], self.judge.task.groups[group])

    def _means(self, point: TuningPoint, group: str = "all") -> dict[str, float]:
        return {name: round(self.mean(point, name, group), 4) for name in MEASURES}

    def _curve(self, points: Sequence[TuningPoint]) -> list[dict[str, Any]]:
        """The curve with each group's means, and the 95 % interval of each change from nothing shifted."""
        plain, interval, every = self.found.plain.figures, self.found.weighing.interval, self.judge.task.groups["all"]
        return [
            {
                **point.setting._asdict(),
                **{group: self._means(point, group) for group in self.judge.task.groups},
                "change": {name: list(interval(point.figures[name] - plain[name], every)) for name in MEASURES},
            }
            for point in points
        ]


_CHOICE = Choice(more="raise --sample, or give more parallel text")


def _step(step: TuningStep) -> dict[str, Any]:
    return {"name": step.name, **step.setting._asdict(), "taken": step.taken, TARGET: _change(step.change)}


def _change(change: MeasureChange) -> dict[str, float]:
    return {name: round(value, 6) for name, value in (*change._asdict().items(), ("difference", change.difference))}


# Step -> what is varied in it.
_SCALES = {"shift": "alpha", "gamma": "directions"}


def _heading(step: TuningStep) -> str:
    """``Shift by alpha``, ``Gamma 0.97 with alpha 1 by directions``."""
    of = step.points[-1].setting
    return f"Gamma {of.gamma:g} with alpha {of.alpha:g} by directions" if of.gamma else "Shift by alpha"


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
        f"{judged} Every query language counts equally; the pivot is {vectors.pivot}.",
    ]


def recommendation(report: TuningReport) -> list[str]:
    """What is recommended, and whether to shift at all."""
    count = report.found.recommended.directions
    along = f" along {pluralize(count, 'direction')}" if count else ""
    return [f"Recommended: {report.recommendation.words}{along}.", report.verdict.sentence]


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
    before = report.mean(report.found.plain, COST)
    if before > _EASY:
        notes.append(
            f"{COST} is {format_score(before)} with nothing shifted, so this task can hardly show what a shift "
            "costs: a higher --sample makes the task harder."
        )
    if len(report.found.steps) == 1:
        notes.append(
            "No gamma was tried: the language vectors contain no means of queries; fit them anew with `langshift "
            "vectors fit`."
        )
    return notes


def interval(found: MeasureChange) -> str:
    """``+.0084 to +.0123``."""
    return f"{format_change(found.low)} to {format_change(found.high)}"


def change_of(found: MeasureChange) -> str:
    """A change with its interval: ``+.0103 (95 % +.0084 to +.0123)``."""
    return f"{format_change(found.difference)} (95 % {interval(found)})"


def show(report: TuningReport) -> None:
    """Print the task, the curves, what each step and the recommendation give on held-out items, and the words."""
    for sentence in describe_task(report):
        line(sentence)
    for step in report.found.steps:
        heading(f"\n{_heading(step)}, with bars for {TARGET}")
        _curve(step, report)
    heading(f"\n{TARGET} on each fifth of the items, with the setting chosen on the other four")
    _steps(report)
    for step in report.reported:
        heading(f"\nThe {step.name} compared with nothing shifted, on the same fifths")
        _held_out(report.held_out[step.name], report.judge.vectors.pivot)
    line("")
    for sentence in recommendation(report):
        line(sentence)


def _curve(step: TuningStep, report: TuningReport) -> None:
    means = [{name: report.mean(point, name) for name in MEASURES} for point in step.points]
    scale = _SCALES[step.name]
    rows = [
        [f"{getattr(point.setting, scale):g}", *(format_score(mean[name]) for name in MEASURES), bar]
        for point, mean, bar in zip(step.points, means, bars([mean[TARGET] for mean in means]), strict=True)
    ]
    heads = [scale, *MEASURES]
    table(None, [*heads, ""], rows, right=set(heads))


def _steps(report: TuningReport) -> None:
    rows = [
        [
            step.name,
            *(f"{value:g}" for value in step.setting),
            interval(step.change),
            probability(step.change.p),
            "yes" if step.taken else "no",
        ]
        for step in report.found.steps
    ]
    heads = ["step", *PLAIN._fields, "change, 95 %", "p", "gained"]
    table(None, heads, rows, right=set(heads) - {"step", "gained"})


def _held_out(groups: Mapping[str, Mapping[str, MeasureChange]], pivot: str) -> None:
    said = {"all": "all", "pivot": f"in {pivot}", "others": "in other languages"}
    rows = [
        [
            said[group] if measure == TARGET else "",
            measure,
            *map(format_score, (change.before, change.after)),
            change_of(change),
        ]
        for group, changes in groups.items()
        for measure, change in changes.items()
    ]
    heads = ["queries", "measure", "without", "with", "change"]
    table(None, heads, rows, right=set(heads[2:]))
