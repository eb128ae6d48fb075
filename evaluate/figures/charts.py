"""Figures of bars, curves, percentiles and trades between two measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from langshift.evaluate.figures import theme
from langshift.evaluate.figures.theme import INK, LINE, PAPER, SMALL, SvgFigure, drawing, marking, plain, wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Neighbours differ in lightness and in hatching, so that they can be told apart without colour.
_COLOURS = (theme.BLUE, theme.SKY, theme.ORANGE, theme.VERMILION, theme.PURPLE, PAPER)
_HATCHES = ("", "////", "", "\\\\\\\\", "xx", "--")
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
        for number, (part, colour, hatch) in enumerate(zip(parts, _COLOURS, _HATCHES, strict=False)):
            widths = table[:, number]
            axes.barh(
                range(len(rows)), widths, left=starts[:, number], height=0.74, color=colour, hatch=hatch,
                edgecolor=PAPER, linewidth=1, label=drawn.label(part),
            )  # fmt: skip
            for row, width in enumerate(widths):
                text = f"{width:.0%}" if width < 0.9995 else "100%"
                # An even ground for letters on a hatched part.
                if width * room > wide(text, SMALL) + 8:
                    axes.text(
                        starts[row, number] + width / 2, row, text, ha="center", va="center", size=SMALL,
                        color=INK if colour == PAPER else theme.letters_on(colour),
                        bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5} if hatch else None,
                    )  # fmt: skip
        plain(axes)
        axes.set_yticks(range(len(rows)), [drawn.label(row, 32) for row in rows])
        axes.set(xlim=(0, 1), ylim=(max(len(rows), 1) - 0.5, -0.5))
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        drawn.figure.legend(loc="outside upper left", ncols=min(len(parts), 4), handlelength=2, handleheight=1.1)
        return drawn.svg(title, description)


_CURVES_HEIGHT, _FRONTIER_HEIGHT, _LEGEND = 380, 460, 22


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
    lines: Sequence[Line], *, title: str, description: str, y_title: str = "", marked: tuple[float, str] | None = None
) -> str:
    """Draw curves over alpha.

    Args:
        lines: the curves.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.
        y_title: what was measured.
        marked: an alpha to mark, such as the chosen one, and what to write there.

    Returns:
        SVG.
    """
    across = 1 if max((len(line.name) for line in lines), default=0) > 36 else 2
    with drawing(_WIDTH, _CURVES_HEIGHT + _LEGEND * -(-len(lines) // across)) as drawn:
        axes = drawn.figure.subplots()
        for number, line in enumerate(lines):
            colour, marker = marking(number)
            axes.plot(line.x, line.y, color=colour, marker=marker, ms=6, lw=2, label=drawn.label(line.name, 80))
        if marked is not None:
            place, name = marked
            axes.axvline(place, color=INK, linewidth=1, linestyle=(0, (2, 2)))
            axes.annotate(
                drawn.label(name), (place, 1), (4, 2), size=SMALL,
                xycoords=("data", "axes fraction"), textcoords="offset points", annotation_clip=False,
                ha="left", va="bottom",
            )  # fmt: skip
        axes.grid(visible=True)
        axes.yaxis.set_major_formatter("{x:.2f}")
        axes.set(xlabel="alpha", ylabel=drawn.label(y_title, 48))
        if lines:
            drawn.figure.legend(loc="outside lower left", ncols=across, handlelength=3.5)
        return drawn.svg(title, description)


_GAP = 9.0
_LETTER = SMALL * 1.25
# Boxes as left, bottom, right, top.
_Box = tuple[float, float, float, float]


class FrontierPoint(NamedTuple):
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


def frontier(points: Sequence[FrontierPoint], *, title: str, description: str, x_title: str, y_title: str) -> str:
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
    with drawing(_WIDTH, _FRONTIER_HEIGHT + _LEGEND * (sum(map(bool, paths)) // 2)) as drawn:
        axes = drawn.figure.subplots()
        for number, path in enumerate(paths):
            ours = [point for point in known if point.path == path]
            colour, marker = marking(number)
            axes.plot(
                [point.x for point in ours], [point.y for point in ours], ls="-" if path else "none", color=colour,
                marker=marker, ms=8, lw=1.2, label=drawn.label(path, 60),
            )  # fmt: skip
        axes.grid(visible=True)
        axes.margins(0.1)
        axes.set(xlabel=drawn.label(x_title, 80), ylabel=drawn.label(y_title, 56))
        if any(paths):
            drawn.figure.legend(loc="outside lower left", ncols=2)
        _name(drawn, axes, known)
        return drawn.svg(title, description)


def _name(drawn: SvgFigure, axes: Axes, points: Sequence[FrontierPoint]) -> None:
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


PERCENTILES = ("p50", "p90", "p95", "p99")
_PART_BAR = 17


def percentiles(rows: Sequence[str], values: ArrayLike, *, title: str, description: str) -> str:
    """Draw a group of bars for each run, a bar a percentile, with its name and figure at its end.

    Args:
        rows: the runs.
        values: milliseconds, rows x percentiles; NaN is one that was not measured, which is said in its place.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.

    Returns:
        SVG.
    """
    return grouped_bars(
        rows,
        PERCENTILES,
        values,
        title=title,
        description=description,
        figure=lambda ms: f"{_figure(ms)} ms",
        unit="ms",
    )


def grouped_bars(
    rows: Sequence[str],
    parts: Sequence[str],
    values: ArrayLike,
    *,
    title: str,
    description: str,
    figure: Callable[[float], str],
    unit: str = "",
) -> str:
    """Draw a group of bars for each run, each with its name and figure at its end.

    Args:
        rows: the runs.
        parts: what each bar of a group is.
        values: rows x parts, from 0; NaN is one that was not measured, which is said in its place.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words.
        figure: how a value is written.
        unit: of the values, below the axis.

    Returns:
        SVG.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(rows), len(parts))
    known = table[np.isfinite(table)]
    greatest = float(known.max(initial=0.0)) or 1.0
    with drawing(_WIDTH, (_PART_BAR * len(parts) + 12) * max(len(rows), 1) + 50) as drawn:
        axes = drawn.figure.subplots()
        each = 1 / (len(parts) + 0.7)
        for row, column in np.ndindex(*table.shape):
            value, place = table[row, column], row + (column - (len(parts) - 1) / 2) * each
            measured = bool(np.isfinite(value))
            if measured:
                axes.barh(place, value, height=each * 0.86, color=theme.BLUE, alpha=1 - 0.6 * column / len(parts))
            text = f"{parts[column]} {figure(float(value)) if measured else 'not measured'}"
            axes.annotate(
                drawn.label(text), (value if measured else 0, place), (5, 0), textcoords="offset points",
                va="center", size=SMALL, color=INK, annotation_clip=False,
            )  # fmt: skip
        plain(axes)
        axes.grid(visible=True, axis="x")
        axes.set_yticks(range(len(rows)), [drawn.label(row, 32) for row in rows])
        # Room for the words at the end of the longest bar.
        room = _WIDTH - 40 - max((wide(row[:32]) for row in rows), default=0)
        words = wide(f"{parts[-1]}  {figure(greatest)}", SMALL) + 12
        axes.set(xlim=(0, greatest / max(1 - words / room, 0.3)), ylim=(max(len(rows), 1) - 0.5, -0.5))
        axes.set_xlabel(unit)
        return drawn.svg(title, description)


def _figure(value: float) -> str:
    """Three digits that mean something: ``3.25``, ``41.7``, ``1,204``."""
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


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
