"""Figures of curves: what is measured along a dial, such as alpha."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langshift.evaluate.figures.colours import INK, marking
from langshift.evaluate.figures.theme import SMALL, drawing

_WIDTH, _HEIGHT, _LEGEND = 760, 380, 22


class Line(NamedTuple):
    """One curve.

    Attributes:
        name: what the legend calls it.
        x: where it was measured.
        y: what was measured there; NaN leaves a gap.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    description: str,
    x_title: str = "alpha",
    y_title: str = "",
    marked: float | None = None,
    marked_name: str = "",
) -> str:
    """Draw curves over one dial.

    Args:
        lines: the curves.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.
        x_title: what the dial is.
        y_title: what was measured.
        marked: a place on the dial to mark, such as the chosen alpha.
        marked_name: what to write there.

    Returns:
        SVG.
    """
    across = 1 if max((len(line.name) for line in lines), default=0) > 36 else 2
    with drawing(_WIDTH, _HEIGHT + _LEGEND * -(-len(lines) // across)) as drawn:
        axes = drawn.figure.subplots()
        for number, line in enumerate(lines):
            colour, marker = marking(number)
            axes.plot(line.x, line.y, color=colour, marker=marker, ms=6, lw=2, label=drawn.label(line.name, 80))
        if marked is not None:
            axes.axvline(marked, color=INK, linewidth=1, linestyle=(0, (2, 2)))
            axes.annotate(
                drawn.label(marked_name), (marked, 1), (4, 2), size=SMALL,
                xycoords=("data", "axes fraction"), textcoords="offset points", annotation_clip=False,
                ha="left", va="bottom",
            )  # fmt: skip
        axes.grid(visible=True)
        axes.yaxis.set_major_formatter("{x:.2f}")
        axes.set(xlabel=drawn.label(x_title), ylabel=drawn.label(y_title, 48))
        if lines:
            drawn.figure.legend(loc="outside lower left", ncols=across, handlelength=3.5)
        return drawn.svg(title, description)
