"""What tuning found: as JSON, in sentences and tables, and for the file of language vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from langshift.debias.vectors import Recommendation
from langshift.evaluate.compare.verdict import SHIFT, PairedFigures, Verdict, judge_pair
from langshift.settings import VERSION
from langshift.wording import format_score, join_words, pluralize
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.tune import tune
from langshift_lab.tune.task import FOLDS, ParallelTask
from langshift_lab.tune.tune import COST, MEASURES, PLAIN, TARGET, MeasureChange, TuningPoint, TuningStep


@dataclass(frozen=True)
class TuningReport:
    """All that is told of a tuning.

    Attributes:
        data: how the dataset or the parallel text is called.
        judge: searched the task.
        found: curves, steps and the choice.
        absent: languages of the vectors that parallel text does not have.
        few: languages that too few items have.
    """

    data: str
    judge: tune.Judge
    found: tune.TuningResult
    absent: Sequence[str] = ()
    few: Sequence[str] = ()

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
        names = [str(number) for number in range(len(task.languages))]
        before, after = (
            {
                name: {
                    query: figure for query, figure in zip(names, of[name].tolist(), strict=True) if not isnan(figure)
                }
                for name in MEASURES
            }
            for of in (self.found.plain.figures, step.held_out)
        )
        languages, blocks = (
            dict(zip(names, of.tolist(), strict=True)) for of in (task.languages, task.blocks.astype(str))
        )
        choice = SHIFT._replace(more="raise --sample, or give more parallel text") if self._parallel else SHIFT
        verdict = judge_pair(PairedFigures(before, after, languages, blocks), choice)
        if self.found.recommended == PLAIN and verdict.kind in ("shift", "at a cost"):
            nothing = f"{choice.leave}: no setting raises {TARGET} by more than chance."
            return verdict._replace(kind="do not shift", sentence=nothing)
        return verdict

    @property
    def _parallel(self) -> ParallelTask | None:
        task = self.judge.task
        return task if isinstance(task, ParallelTask) else None

    @property
    def recommendation(self) -> Recommendation:
        """The same for the file of language vectors."""
        chosen = self.found.recommended
        return Recommendation(chosen.alpha, gamma=chosen.gamma)

    def recommended(self) -> MethodVectors:
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
            **self._source(),
            "queries": len(task.languages),
            "documents": len(task.encoded.ids),
            "languages": sorted(set(task.languages.tolist())),
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

    def _source(self) -> dict[str, Any]:
        task = self._parallel
        if task is None:
            return {"dataset": self.data}
        cut = {"items": task.count, "question_share": round(task.share, 4), "fitted_on_same_text": task.same_text}
        return {"pairs": self.data, **cut}

    def mean(self, point: TuningPoint, measure: str, group: str = "all") -> float | None:
        """A measure over the queries that are reported together, every query language alike; None if it counts none."""
        found = self.found.weighing.mean(point.figures[measure], self.judge.task.groups[group])
        return None if isnan(found) else found

    def _means(self, point: TuningPoint, group: str = "all") -> dict[str, float | None]:
        means = {name: self.mean(point, name, group) for name in MEASURES}
        return {name: None if mean is None else round(mean, 4) for name, mean in means.items()}

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


def _step(step: TuningStep) -> dict[str, Any]:
    return {"name": step.name, **step.setting._asdict(), "taken": step.taken, TARGET: _change(step.change)}


def _change(change: MeasureChange) -> dict[str, float]:
    return {name: round(value, 6) for name, value in (*change._asdict().items(), ("difference", change.difference))}


# Where nearly everything is found, little can be lost.
_EASY = 0.98


def describe_task(report: TuningReport) -> list[str]:
    """What was asked and searched."""
    task = report.judge.task
    languages, documents = sorted(set(task.languages.tolist())), f"{len(task.encoded.ids):,} documents"
    queries, judged = f"{len(task.languages):,} queries", "The vectors are judged as they are."
    of = f"{report.data}: {queries} in {join_words(languages)} search {documents}."
    if isinstance(task, ParallelTask):
        of = (
            f"{report.data}: {task.count:,} items in {join_words(languages)}. {queries}, each about {task.share:.0%} "
            f"of an item, cut from its middle, search {documents}, the whole items; an item is relevant in every "
            "language."
        )
        if task.same_text:
            fitted = "The vectors were fitted on this same text"
            judged = f"{fitted}, so each fifth of it is judged with vectors that leave it out."
    return [of, f"{judged} Every query language counts equally; the pivot is {report.judge.vectors.pivot}."]


def recommendation(report: TuningReport) -> list[str]:
    """What is recommended, and whether to shift at all."""
    count = report.found.recommended.directions
    along = f" along {pluralize(count, 'direction')}" if count else ""
    return [f"Recommended: {report.recommendation.words}{along}.", report.verdict.sentence]


def warnings(report: TuningReport) -> list[str]:
    """What makes the figures less than they seem, in sentences."""
    notes = []
    if report.absent:
        notes.append(f"Not measured: {join_words(list(report.absent))}, in which {report.data} has no text.")
    if report.few:
        notes.append(
            f"Not measured: {join_words(list(report.few))}, in which too few items have text to cut a query from; "
            "a higher --sample may help."
        )
    before = report.mean(report.found.plain, COST)
    if before is not None and before > _EASY and isinstance(report.judge.task, ParallelTask):
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
