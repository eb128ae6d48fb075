"""Figures of vectors in two dimensions: a sample before and after, by language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from langshift.evaluate.figures.colours import LINE, marking
from langshift.evaluate.figures.theme import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# With more, marks could not be told apart, and the legend would be longer than the figure.
_MOST = 44
_REST = "others"
_OTHERS = (LINE, ".")
_SIDE = 350
_COLUMN = 22


class Panel(NamedTuple):
    """One picture.

    Attributes:
        name: what to write above it.
        points: (n, 2).
        languages: a tag a point.
    """

    name: str
    points: ArrayLike
    languages: Sequence[str]


def scatter(panels: Sequence[Panel], *, title: str, description: str) -> str:
    """Draw vectors as points, panels side by side with the same axes, a colour and a marker a language.

    Args:
        panels: such as before and after; the axes hold all points that are finite.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.

    Returns:
        SVG.
    """
    counted = Counter(language for panel in panels for language in panel.languages)
    shown = sorted(language for language, _ in counted.most_common(_MOST))
    names = [*shown, *([_REST] if len(counted) > _MOST else [])]
    columns = -(-len(names) // _COLUMN)
    with drawing((_SIDE + 10) * max(len(panels), 1) + 90 * columns, _SIDE + 40) as drawn:
        every = drawn.figure.subplots(1, max(len(panels), 1), sharex=True, sharey=True, squeeze=False)[0]
        for axes, panel in zip(every, panels, strict=False):
            _points(axes, panel, shown, rest=len(counted) > _MOST)
            axes.set_title(drawn.label(panel.name, 40))
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set_visible(True)
        handles = [_handle(*(marking(number) if number < _MOST else _OTHERS)) for number in range(len(names))]
        labels = [drawn.label(name, 12) for name in names]
        drawn.figure.legend(
            handles, labels, loc="outside right upper", ncols=max(columns, 1), handletextpad=0.3, columnspacing=1
        )
        return drawn.svg(title, description)


def _points(axes: Axes, panel: Panel, shown: Sequence[str], *, rest: bool) -> None:
    points: NDArray[np.float64] = np.asarray(panel.points, dtype=np.float64).reshape(-1, 2)
    number = {tag: number for number, tag in enumerate(shown)}
    numbers = np.array([number.get(tag, -1) for tag in panel.languages], dtype=np.intp)
    for one in [*([-1] if rest else []), *range(len(shown))]:
        colour, marker = marking(one) if one >= 0 else _OTHERS
        ours = points[numbers == one]
        axes.scatter(ours[:, 0], ours[:, 1], s=34, marker=marker, color=colour, alpha=0.75, linewidths=0)


def _handle(colour: str, marker: str) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, markersize=7, color=colour, markeredgewidth=0)
