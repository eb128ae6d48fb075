"""Figures over alpha and language preference: the curves, and what preferring a language costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from langshift.evaluate.compare.comparing import Comparison, sign
from langshift.evaluate.compare.runs import Candidate
from langshift.evaluate.compare.sections import ALL, Column
from langshift.evaluate.figures.curves import Line, curves
from langshift.evaluate.figures.frontier import Point, frontier
from langshift.evaluate.report.building import Report
from langshift.evaluate.report.drawing import Drawing
from langshift.evaluate.report.sweeps import Sweep

LPR = "LPR"


def alpha_curves(report: Report) -> list[Drawing]:
    """Measures by alpha, from each sweep and from runs that differ in alpha only: the paper's Figure 3."""
    drawings = [_swept(name, sweep) for name, sweep in report.sweeps.items() if sweep.alpha]
    for alphas in _by_alpha(report):
        compared = report.found.compared
        lines = [
            _line(column.measure, [(alpha, compared.mean(run.letter, column)) for alpha, run in alphas])
            for column in _directed(compared)
        ]
        letters = ", ".join(run.letter for _, run in alphas)
        drawings.append(_curves(f"Measures by alpha, from the runs {letters}", lines, None))
    return drawings


def _swept(name: str, sweep: Sweep) -> Drawing:
    # LPR is of another scale; it is in the frontier.
    measures = [name for name in dict.fromkeys(name for point in sweep.alpha for name in point.all) if name != LPR]
    lines = [_line(measure, [(point.alpha, point.all.get(measure)) for point in sweep.alpha]) for measure in measures]
    return _curves(f"Measures by alpha, from {name}; chosen by {sweep.select}", lines, sweep.best.alpha)


def _line(measure: str, points: Sequence[tuple[float, float | None]]) -> Line:
    known = [(x, math.nan if y is None else y) for x, y in points]
    return Line(measure, [x for x, _ in known], [y for _, y in known])


def _curves(caption: str, lines: Sequence[Line], best: float | None) -> Drawing:
    drawn = curves(
        lines,
        title=caption,
        description=f"A curve over alpha for each of {', '.join(line.name for line in lines)}.",
        y_title="mean over all queries",
        marked=best,
        marked_name="" if best is None else "best",
    )
    return Drawing(caption, drawn)


def _by_alpha(report: Report) -> list[list[tuple[float, Candidate]]]:
    """Runs that differ in alpha only, by alpha; two at least of different alphas."""
    found: dict[str, dict[float, Candidate]] = {}
    for run in report.found.compared.candidates:
        told = report.told[run.letter]
        alpha = (told.fingerprint or {}).get("alpha")
        if isinstance(alpha, int | float) and not (told.fingerprint or {}).get("alphas"):
            rest = {name: value for name, value in (told.fingerprint or {}).items() if name != "alpha"}
            key = repr((sorted(rest.items()), run.how, told.mode, told.method, told.shift_queries, told.beta))
            found.setdefault(key, {}).setdefault(float(alpha), run)
    return [sorted(runs.items(), key=lambda item: item[0]) for runs in found.values() if len(runs) > 1]


def _directed(compared: Comparison) -> list[Column]:
    """One column for each measure of which more is better."""
    found: dict[str, Column] = {}
    for column in compared.columns:
        if sign(column) > 0 and column.measure != LPR:
            found.setdefault(column.measure, column)
    return list(found.values())


def frontiers(report: Report) -> list[Drawing]:
    """Ranking against LPR, a point a run, and sweeps' language preferences: what preferring a language costs.

    Empty where LPR was not measured twice at least.
    """
    compared = report.found.compared
    column = _ranking(compared)
    points = points_of(report)
    if column is None or len(points) < 2:
        return []
    caption = (
        f"{column.measure} against LPR: further up ranks better; further right, the best passage is more often in the "
        "query's language"
    )
    drawn = frontier(
        points,
        title=caption,
        description="A point for each run; points of a sweep are joined.",
        x_title=LPR,
        y_title=column.measure,
    )
    return [Drawing(caption, drawn)]


def points_of(report: Report) -> list[Point]:
    """The points to draw: LPR and how well is ranked."""
    compared = report.found.compared
    column, fair = _ranking(compared), Column(ALL, LPR)
    if column is None:
        return []
    points = []
    if fair in compared.columns:
        for run in compared.candidates:
            points += _point(run.label, compared.mean(run.letter, fair), compared.mean(run.letter, column), "")
    for sweep in report.sweeps.values():
        # Those without a preference are among the others where any was tried.
        for point in sweep.beta or sweep.alpha:
            name, path = f"{point.alpha:g}", "alpha"
            if sweep.beta:
                name, path = f"beta {point.beta:g}", f"alpha {point.alpha:g}"
            points += _point(name, point.all.get(LPR), point.all.get(column.measure), path)
    return points


def _ranking(compared: Comparison) -> Column | None:
    return next((found for found in compared.columns if found.measure.startswith("nDCG")), compared.primary)


def _point(name: str, x: float | None, y: float | None, path: str) -> list[Point]:
    return [] if x is None or y is None else [Point(name, x, y, path=path)]
