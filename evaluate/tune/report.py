"""What tuning found, as one JSON document, and as what goes into the file of language vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.tune.chance import Change
from langshift.evaluate.tune.choosing import PLAIN, Step, Tuned, groups
from langshift.evaluate.tune.judging import MEASURES, TARGET, Judge, Point, Setting
from langshift.evaluate.tune.task import FOLDS
from langshift.settings import VERSION


@dataclass(frozen=True)
class Report:
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
    judge: Judge
    found: Tuned
    absent: Sequence[str]
    few: Sequence[str]
    same_text: bool

    @property
    def told(self) -> Step:
        """The step whose held-out figures are shown: the last taken, else the first that would shift anything."""
        shifting = (step for step in self.found.steps if step.setting != PLAIN)
        return self.found.last or next(shifting, self.found.steps[0])

    @property
    def every(self) -> NDArray[np.bool_]:
        """All queries."""
        return groups(self.judge)["all"]

    @cached_property
    def held_out(self) -> dict[str, dict[str, Change]]:
        """Which queries -> measure -> its change from no shift at all, on held-out items."""
        return {name: self.found.changes(self.told, kept) for name, kept in groups(self.judge).items()}

    def recommended(self) -> LanguageVectors:
        """The language vectors with the recommendation and what it rests on."""
        setting = self.found.setting
        return replace(
            self.judge.vectors,
            alpha=setting.alpha,
            alphas=dict(setting.own),
            shift_queries=setting.shift_queries,
            tuning=self._record(),
        )

    def document(self) -> dict[str, Any]:
        """All that was found."""
        return {
            **self._record(),
            "absent": list(self.absent),
            "too_few_items": list(self.few),
            "curve": {"documents": self._curve(self.found.documents), "both": self._curve(self.found.both)},
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
            "chosen_by": self.told.name,
            "held_out": {
                name: {measure: _change(change) for measure, change in changes.items()}
                for name, changes in self.held_out.items()
            },
            "curve": {
                name: [[point.setting.alpha, *self._means(point, self.every)] for point in points]
                for name, points in (("documents", found.documents), ("both", found.both))
            },
            "curve_columns": ["alpha", *MEASURES],
            "langshift": VERSION,
        }

    def _means(self, point: Point, kept: NDArray[np.bool_]) -> list[float]:
        return [round(self.found.weighing.mean(point.figures[measure], kept), 4) for measure in MEASURES]

    def _curve(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        """The curve with each group's means, and the interval of each change from alpha 0."""
        return [
            {
                "alpha": point.setting.alpha,
                **{
                    name: dict(zip(MEASURES, self._means(point, kept), strict=True))
                    for name, kept in groups(self.judge).items()
                },
                "change": {measure: list(bounds) for measure, bounds in self.intervals(point).items()},
            }
            for point in points
        ]

    def intervals(self, point: Point) -> Mapping[str, tuple[float, float]]:
        """95 % intervals of the changes from alpha 0, over all queries."""
        plain = self.found.plain
        return {
            measure: self.found.weighing.interval(point.figures[measure] - plain.figures[measure], self.every)
            for measure in MEASURES
        }


def _setting(setting: Setting) -> dict[str, Any]:
    return {"alpha": setting.alpha, "alphas": dict(setting.own), "shift_queries": setting.shift_queries}


def _step(step: Step) -> dict[str, Any]:
    return {"name": step.name, **_setting(step.setting), "taken": step.taken, TARGET: _change(step.change)}


def _change(change: Change) -> dict[str, float]:
    return {name: round(value, 6) for name, value in (*change._asdict().items(), ("difference", change.difference))}
