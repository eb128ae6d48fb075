"""Figures of a table: a cell of stronger colour is a greater figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from langshift.evaluate.figures.colours import LINE, MORE, PAPER, letters_on
from langshift.evaluate.figures.theme import SMALL, Drawing, drawing, plain, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 26
_LABEL, _TITLE = 24, 40
_STEPS = 24


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: ArrayLike,
    *,
    title: str,
    description: str,
    row_title: str = "",
    column_title: str = "",
    scale_title: str = "",
    annotate: bool = True,
    form: str = "{:.2f}",
    vmin: float | None = None,
    vmax: float | None = None,
) -> str:
    """Draw a table as coloured cells.

    Args:
        rows: their labels.
        columns: theirs.
        values: rows x columns; NaN is a cell without a figure, which is hatched.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words; how many cells are missing is said after it.
        row_title: what the rows are.
        column_title: what the columns are.
        scale_title: what the figures are.
        annotate: write each figure into its cell.
        form: how to write a figure, as ``str.format``.
        vmin: the figure of the paper's own colour; 0 unless there is a smaller one.
        vmax: the figure of full colour; the greatest unless given.

    Returns:
        SVG.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(rows), len(columns))
    low, high = _limits(table, vmin, vmax)
    texts = [_written(value, form) for value in table[np.isfinite(table)]] if annotate else []
    cell = max([32.0, *(wide(text, SMALL) + 8 for text in texts)])
    # Few columns are given more room, up to a width that still reads as a table.
    cell = max(cell, min(64.0, 560 / max(len(columns), 1)))
    tilted = any(wide(name) > cell for name in columns)
    around = 54 + _widest(rows) + 24 * bool(row_title) + wide(form.format(high)) + 20 * bool(scale_title)
    above = 38 + 20 * bool(column_title) + tilted * 0.7 * _widest(columns)
    # As high as its rows, and as the longest of what is written beside them from the bottom to the top.
    side = max(_HEIGHT * len(rows), 78.0, wide(scale_title[:_TITLE]), wide(row_title[:_TITLE]))
    with drawing(cell * len(columns) + around, above + side) as drawn:
        ratios = {"width_ratios": [max(cell * len(columns), 1), 12]}
        axes, bar = drawn.figure.subplots(1, 2, gridspec_kw=ratios)
        _cells(axes, table, low, high, form if annotate else None)
        _labels(drawn, axes, rows, columns, tilted=tilted)
        axes.set(xlabel=drawn.label(column_title), ylabel=drawn.label(row_title))
        _scale(bar, low, high, form)
        bar.set_ylabel(drawn.label(scale_title))
        return drawn.svg(title, f"{description} {_missing(table)}".strip())


def _limits(table: NDArray[np.float64], low: float | None, high: float | None) -> tuple[float, float]:
    known = table[np.isfinite(table)]
    low = low if low is not None else float(known.min(initial=0.0))
    high = high if high is not None else float(known.max(initial=low))
    return low, high if high > low else low + 1


def _written(value: float, form: str) -> str:
    """The figure; one that is written as nought has no minus."""
    text = form.format(value)
    return form.format(0.0) if text == form.format(-0.0) else text


def _opacity(value: float, low: float, high: float) -> float:
    """How much of the full colour a figure has."""
    return round(min(max((value - low) / (high - low), 0.0), 1.0), 2)


def _cells(axes: Axes, table: NDArray[np.float64], low: float, high: float, form: str | None) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    known, colours, missing = [], [], []
    for (row, column), value in np.ndenumerate(table):
        place = Rectangle((column, row), 1, 1)
        if not np.isfinite(value):
            missing.append(place)
            continue
        opacity = _opacity(value, low, high)
        known.append(place)
        colours.append(to_rgba(MORE, opacity))
        if form is not None:
            letters = letters_on(MORE, opacity)
            text = _written(float(value), form)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=SMALL, color=letters)
    axes.add_collection(PatchCollection(known, facecolors=colours, edgecolors=PAPER, linewidths=1))
    if missing:
        axes.add_collection(PatchCollection(missing, facecolors="none", edgecolors=LINE, linewidths=0, hatch="////"))
    axes.set(xlim=(0, max(table.shape[1], 1)), ylim=(max(table.shape[0], 1), 0))


def _widest(labels: Sequence[str]) -> float:
    return max((wide(label[:_LABEL]) for label in labels), default=0.0)


def _labels(drawn: Drawing, axes: Axes, rows: Sequence[str], columns: Sequence[str], *, tilted: bool) -> None:
    plain(axes)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.xaxis.labelpad = 8
    lean: dict[str, Any] = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if tilted else {}
    axes.set_xticks(np.arange(len(columns)) + 0.5, [drawn.label(name, _LABEL) for name in columns], **lean)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [drawn.label(name, _LABEL) for name in rows])


def _scale(bar: Axes, low: float, high: float, form: str) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    step = (high - low) / _STEPS
    steps = [low + (number + 0.5) * step for number in range(_STEPS)]
    places = [Rectangle((0, middle - step / 2), 1, step) for middle in steps]
    colours = [to_rgba(MORE, _opacity(middle, low, high)) for middle in steps]
    bar.add_collection(PatchCollection(places, facecolors=colours, linewidths=0))
    bar.set(xlim=(0, 1), ylim=(low, high), xticks=[])
    plain(bar)
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    ticks = [low, (low + high) / 2, high]
    bar.set_yticks(ticks, [_written(tick, form) for tick in ticks])


def _missing(table: NDArray[np.float64]) -> str:
    count = int((~np.isfinite(table)).sum())
    return f"{count:,} of {table.size:,} cells have no figure and are hatched." if count else ""
