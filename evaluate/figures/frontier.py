"""Figures of a trade: what each setting gains in one measure, and what it costs in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.figures.colours import LINE, marking
from langshift.evaluate.figures.theme import SMALL, Drawing, drawing, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT, _LEGEND = 760, 460, 22
_GAP = 9.0
_LETTER = SMALL * 1.25
# Boxes as left, bottom, right, top.
_Box = tuple[float, float, float, float]


class Point(NamedTuple):
    """One setting.

    Attributes:
        name: what to write beside it.
        x: its figure across.
        y: its figure upwards.
        path: points of one path are connected in the order given; none where empty.
    """

    name: str
    x: float
    y: float
    path: str = ""


def frontier(points: Sequence[Point], *, title: str, description: str, x_title: str, y_title: str) -> str:
    """Draw settings as named points.

    Args:
        points: the settings; one that has no figure (NaN) is left out.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.
        x_title: what is measured across.
        y_title: what is measured upwards.

    Returns:
        SVG.
    """
    known = [point for point in points if np.isfinite(point.x) and np.isfinite(point.y)]
    paths = list(dict.fromkeys(point.path for point in known))
    with drawing(_WIDTH, _HEIGHT + _LEGEND * (sum(bool(path) for path in paths) // 2)) as drawn:
        axes = drawn.figure.subplots()
        for number, path in enumerate(paths):
            ours = [point for point in known if point.path == path]
            colour, marker = marking(number)
            line = "-" if path else "none"
            xs, ys = [point.x for point in ours], [point.y for point in ours]
            axes.plot(xs, ys, ls=line, color=colour, marker=marker, ms=8, lw=1.2, label=drawn.label(path, 60))
        axes.grid(visible=True)
        axes.margins(0.1)
        axes.set(xlabel=drawn.label(x_title, 80), ylabel=drawn.label(y_title, 56))
        if any(paths):
            drawn.figure.legend(loc="outside lower left", ncols=2)
        _name(drawn, axes, known)
        return drawn.svg(title, description)


def _name(drawn: Drawing, axes: Axes, points: Sequence[Point]) -> None:
    """Write each name where it covers no point and no other name, as near as that is possible."""
    if not points:
        return
    # The places are known only once the room for the axes is.
    drawn.figure.draw_without_rendering()
    places: NDArray[np.float64] = axes.transData.transform([(point.x, point.y) for point in points])
    frame = axes.get_window_extent()
    inside = (frame.x0, frame.y0, frame.x1, frame.y1)
    taken: list[_Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    for point, (x, y) in zip(points, places, strict=True):
        name = drawn.label(point.name, 32)
        far, box = min(
            enumerate(_around(x, y, wide(name, SMALL))), key=lambda one: (_covered(one[1], taken, inside), one[0])
        )
        taken.append(box)
        # Letters may turn out narrower than reckoned: the side towards the point is the one that is held.
        side, held = ("left", box[0]) if box[0] > x else ("right", box[2]) if box[2] < x else ("center", x)
        arrow = {"arrowstyle": "-", "color": LINE, "linewidth": 0.8, "shrinkB": 5} if far >= 8 else None
        axes.annotate(
            name, (point.x, point.y), (held - x, (box[1] + box[3]) / 2 - y), size=SMALL,
            textcoords="offset points", ha=side, va="center", arrowprops=arrow,
        )  # fmt: skip


def _around(x: float, y: float, width: float) -> list[_Box]:
    """Places for a name, the nearest first: right, left, above, below, the corners, and these again further out."""
    boxes = []
    for gap in (_GAP, 2.5 * _GAP, 4.5 * _GAP, 7 * _GAP):
        middle, under, over = y - _LETTER / 2, y - gap - _LETTER, y + gap
        right, left, centre = x + gap, x - gap - width, x - width / 2
        corners = [(right, over), (right, under), (left, over), (left, under)]
        starts = [(right, middle), (left, middle), (centre, over), (centre, under), *corners]
        boxes += [(start, low, start + width, low + _LETTER) for start, low in starts]
    return boxes


def _covered(box: _Box, taken: Sequence[_Box], inside: _Box) -> float:
    """How much of other things a name would cover, in square pixels, and how far it would stick out."""
    covered = 0.0
    for other in taken:
        across = min(box[2], other[2]) - max(box[0], other[0])
        upwards = min(box[3], other[3]) - max(box[1], other[1])
        covered += max(across, 0.0) * max(upwards, 0.0)
    out = max(inside[0] - box[0], box[2] - inside[2], inside[1] - box[1], box[3] - inside[3], 0.0)
    return covered + 1000 * out
