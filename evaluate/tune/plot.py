"""The curves of a tuning as a figure; matplotlib is an extra."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from langshift.errors import UsageError
from langshift.evaluate.figures.colours import BLUE, GREEN, VERMILION
from langshift.evaluate.figures.theme import require_plotting as require_matplotlib
from langshift.evaluate.tune.choosing import ALPHAS
from langshift.evaluate.tune.judging import COST, TARGET
from langshift.evaluate.tune.report import Report
from langshift.whole import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        raise UsageError(f"--plot {path}: a figure's name ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    require_matplotlib("--plot")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if path.is_dir() or not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"--plot {path} cannot be written: it is a folder, or in none that you may write in.")


def plot(report: Report, path: Path) -> None:
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
        with whole(path) as partial:
            drawn.savefig(partial, format=format_, dpi=150, metadata={"Date": None} if format_ == "svg" else None)


def _curves(axes: Axes, report: Report, measure: str) -> None:
    """One measure's change from alpha 0 along alpha, both curves, each with its interval as a band."""
    for name, points in (("documents", report.found.documents), ("both", report.found.both)):
        every = report.every
        plain = report.found.weighing.mean(report.found.plain.figures[measure], every)
        changes = [report.found.weighing.mean(point.figures[measure], every) - plain for point in points]
        colour = _COLOURS[measure]
        axes.plot(ALPHAS, changes, _LINES[name], color=colour, marker="o", ms=3, label=f"{measure}, {_SAID[name]}")
        if name == "documents":
            low, high = zip(*(report.intervals(point)[measure] for point in points), strict=True)
            axes.fill_between(ALPHAS, low, high, color=colour, alpha=0.15, linewidth=0)


def _dress(axes: Axes, report: Report, title: str) -> None:
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.axvline(report.found.setting.alpha, color="black", linewidth=0.8, label="recommended alpha")
    axes.yaxis.set_major_formatter("{x:+.3f}")
    axes.set(title=title, xlabel="alpha", ylabel="change from alpha 0")
    axes.legend(fontsize="small")


def _title(report: Report) -> str:
    task = report.judge.task
    vectors, languages = report.judge.vectors, len(set(task.languages.tolist()))
    return (
        f"{vectors.encoder}, pivot {vectors.pivot}, on {report.pairs}: {len(task.items):,} questions in {languages} "
        "languages\nbands: 95 % over blocks of items, documents shifted"
    )
