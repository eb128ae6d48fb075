"""Figures of shares that add to one: a bar a run, cut into its outcomes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from langshift.evaluate.figures.colours import BLUE, INK, ORANGE, PAPER, PURPLE, SKY, VERMILION, letters_on
from langshift.evaluate.figures.theme import SMALL, drawing, plain, wide

# Neighbours differ in lightness and in hatching, so that they can be told apart without colour.
_FILLS = ((BLUE, ""), (SKY, "////"), (ORANGE, ""), (VERMILION, "\\\\\\\\"), (PURPLE, "xx"), (PAPER, "--"))
_BAR = 34
_WIDTH = 760


def bars(rows: Sequence[str], parts: Sequence[str], shares: ArrayLike, *, title: str, description: str) -> str:
    """Draw stacked bars, with the share in each part that has room for it.

    Args:
        rows: what each bar is.
        parts: what each part is, in the order of the bar, six at most.
        shares: rows x parts, each row adding to 1; NaN draws nothing.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.

    Returns:
        SVG.
    """
    table = np.nan_to_num(np.asarray(shares, dtype=np.float64).reshape(len(rows), len(parts)))
    starts = np.cumsum(table, axis=1) - table
    with drawing(_WIDTH, _BAR * max(len(rows), 1) + 70) as drawn:
        axes = drawn.figure.subplots()
        room = _WIDTH - 30 - max((wide(row[:32]) for row in rows), default=0)
        for number, (part, (colour, hatch)) in enumerate(zip(parts, _FILLS, strict=False)):
            widths = table[:, number]
            axes.barh(
                range(len(rows)), widths, left=starts[:, number], height=0.74, color=colour, hatch=hatch,
                edgecolor=PAPER, linewidth=1, label=drawn.label(part),
            )  # fmt: skip
            for row, width in enumerate(widths):
                text = f"{width:.0%}" if width < 0.9995 else "100%"
                if width * room > wide(text, SMALL) + 8:
                    axes.text(
                        starts[row, number] + width / 2, row, text, ha="center", va="center", size=SMALL,
                        color=INK if colour == PAPER else letters_on(colour, 1), bbox=_ground(colour, hatch),
                    )  # fmt: skip
        plain(axes)
        axes.set_yticks(range(len(rows)), [drawn.label(row, 32) for row in rows])
        axes.set(xlim=(0, 1), ylim=(max(len(rows), 1) - 0.5, -0.5))
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        drawn.figure.legend(loc="outside upper left", ncols=min(len(parts), 4), handlelength=2, handleheight=1.1)
        return drawn.svg(title, description)


def _ground(colour: str, hatch: str) -> dict[str, object] | None:
    """An even ground for letters on a hatched part."""
    return {"facecolor": colour, "edgecolor": "none", "pad": 1.5} if hatch else None
