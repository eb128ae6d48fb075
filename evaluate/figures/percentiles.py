"""Figures of latency: the percentiles of each run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from langshift.evaluate.figures.colours import BLUE, INK
from langshift.evaluate.figures.theme import SMALL, drawing, plain, wide

_BAR = 17
_WIDTH = 760


def percentiles(
    rows: Sequence[str],
    values: ArrayLike,
    *,
    title: str,
    description: str,
    names: Sequence[str] = ("p50", "p90", "p95", "p99"),
) -> str:
    """Draw a group of bars for each run, a bar a percentile, with its name and figure at its end.

    Args:
        rows: the runs.
        values: milliseconds, rows x names; NaN is one that was not measured, which is said in its place.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.
        names: the percentiles, from the smallest.

    Returns:
        SVG.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(rows), len(names))
    known = table[np.isfinite(table)]
    greatest = float(known.max(initial=0.0)) or 1.0
    with drawing(_WIDTH, (_BAR * len(names) + 12) * max(len(rows), 1) + 50) as drawn:
        axes = drawn.figure.subplots()
        each = 1 / (len(names) + 0.7)
        for row, column in np.ndindex(*table.shape):
            value, place = table[row, column], row + (column - (len(names) - 1) / 2) * each
            measured = bool(np.isfinite(value))
            if measured:
                axes.barh(place, value, height=each * 0.86, color=BLUE, alpha=1 - 0.6 * column / max(len(names), 1))
            text = f"{names[column]} {_figure(value)} ms" if measured else f"{names[column]} not measured"
            axes.annotate(
                drawn.label(text), (value if measured else 0, place), (5, 0), textcoords="offset points",
                va="center", size=SMALL, color=INK, annotation_clip=False,
            )  # fmt: skip
        plain(axes)
        axes.grid(visible=True, axis="x")
        axes.set_yticks(range(len(rows)), [drawn.label(row, 32) for row in rows])
        # Room for the words at the end of the longest bar.
        room = _WIDTH - 40 - max((wide(row[:32]) for row in rows), default=0)
        words = wide(f"{names[-1] if names else ''}  {_figure(greatest)} ms", SMALL) + 12
        axes.set(xlim=(0, greatest / max(1 - words / room, 0.3)), ylim=(max(len(rows), 1) - 0.5, -0.5))
        axes.set_xlabel("ms")
        return drawn.svg(title, description)


def _figure(value: float) -> str:
    """Three digits that mean something: ``3.25``, ``41.7``, ``1,204``."""
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
