"""Points of several kinds as inline SVG, whose letters are the page's own, so that every script shows."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's colours, which the colour-blind can tell apart, less black and yellow.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Around the middle, as paths: 6 colours and 7 shapes make 42 pairs before one comes again.
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
    "M-3.5-3.5h7v7h-7Z",
    "M0-4.5L4.5 3.5h-9Z",
    "M0 4.5L4.5-3.5h-9Z",
    "M0-5L4 0L0 5L-4 0Z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
    "M-4.5-2.5l2-2L0-2l2.5-2.5l2 2L2 0l2.5 2.5l-2 2L0 2l-2.5 2.5l-2-2L-2 0Z",
)
_MOST = len(_COLOURS) * len(_SHAPES)
_REST = "others"
_SIDE, _GAP, _LINE, _ROWS = 360, 16, 17, 21


class Panel(NamedTuple):
    """One picture.

    Attributes:
        name: what stands above it.
        points: x and y of each, shape (n, 2).
        kinds: what each point is: its colour and shape.
    """

    name: str
    points: ArrayLike
    kinds: Sequence[str]


def scatter(
    panels: Sequence[Panel], *, title: str, description: str, x_title: str = "", y_title: str = "", letters: int = 40
) -> str:
    """Draw points, panels side by side with the same axes, a colour and a shape for each kind.

    Of more than 42 kinds the rarest are grey crosses, ``others``. The axes hold all points that are finite.

    Args:
        panels: such as before and after.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words, likewise.
        x_title: what is measured across; with it the axes have their least and greatest figure.
        y_title: what is measured upwards.
        letters: how many characters of a kind's name the legend has room for.

    Returns:
        An ``<svg>`` in the page's own ``currentColor``.
    """
    counted = Counter(kind for panel in panels for kind in panel.kinds)
    shown = sorted(kind for kind, _ in counted.most_common(_MOST))
    looks = {kind: (_COLOURS[n % len(_COLOURS)], _SHAPES[n % len(_SHAPES)]) for n, kind in enumerate(shown)}
    names = [*shown, *([_REST] if len(counted) > _MOST else [])]
    points = [np.asarray(panel.points, np.float64).reshape(-1, 2) for panel in panels]
    known = np.concatenate([some[np.isfinite(some).all(axis=1)] for some in points] or [np.zeros((0, 2))])
    low, high = (known.min(axis=0), known.max(axis=0)) if len(known) else (np.zeros(2), np.ones(2))
    # Figures of the upright axis stand left of the frame.
    left = 50 if x_title else 0
    drawn = [
        f'<g transform="translate({left + (_SIDE + _GAP) * place} {_LINE})">{_panel(panel, some, low, high, looks)}</g>'
        for place, (panel, some) in enumerate(zip(panels, points, strict=True))
    ]
    if x_title:
        drawn += _axes(low, high, left, x_title, y_title)
    right, wide = left + (_SIDE + _GAP) * len(panels), 22 + 7.5 * min(letters, max(map(len, names), default=0))
    for number, name in enumerate(names):
        column, row = divmod(number, _ROWS)
        text = name if len(name) <= letters else name[: letters - 1] + "…"
        drawn.append(
            f'<g transform="translate({right + wide * column + 8:g} {_LINE * row + 24})">{_mark(name, looks)}'
            f'<text x="10" y="4">{escape(text)}</text></g>'
        )
    width, height = right + wide * -(-len(names) // _ROWS), _SIDE + _LINE + 20
    return (
        f'<svg viewBox="0 0 {width:g} {height}" width="{width:g}" role="img" font-size="13" fill="currentColor">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(drawn)}</svg>"
    )


def _panel(
    panel: Panel,
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    looks: dict[str, tuple[str, str]],
) -> str:
    frame = f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    span = np.where(high > low, high - low, 1.0)
    places = np.round(_SIDE * np.where(high > low, 0.05 + 0.9 * (points - low) / span, 0.5), 1)
    marks = [
        f'<g transform="translate({x:g} {_SIDE - y:g})">{_mark(kind, looks)}</g>'
        for (x, y), kind in zip(places, panel.kinds, strict=True)
        if np.isfinite(x) and np.isfinite(y)
    ]
    return f'<text x="{_SIDE / 2}" y="-5" text-anchor="middle">{escape(panel.name)}</text>{frame}{"".join(marks)}'


def _mark(kind: str, looks: dict[str, tuple[str, str]]) -> str:
    colour, shape = looks.get(kind, ("currentColor", _SHAPES[-1]))
    faint = "" if kind in looks else ' fill-opacity=".4"'
    return f'<path d="{shape}" fill="{colour}"{faint}><title>{escape(kind)}</title></path>'


def _axes(low: NDArray[np.float64], high: NDArray[np.float64], left: int, x_title: str, y_title: str) -> list[str]:
    """The titles, each between the least and the greatest figure."""
    bottom, start, end = _SIDE + _LINE + 15, 0.05 * _SIDE, 0.95 * _SIDE
    texts = [(low, "start", start), (high, "end", end)]
    across = [f'<text x="{left + at:g}" y="{bottom}" text-anchor="{side}">{of[0]:.3f}</text>' for of, side, at in texts]
    upwards = [f'<text x="4" y="{_LINE + _SIDE - at + 4:g}">{of[1]:.3f}</text>' for of, _, at in texts]
    middle = f'<text x="{left + _SIDE / 2}" y="{bottom}" text-anchor="middle">{escape(x_title)}</text>'
    return [*across, *upwards, middle, f'<text x="0" y="12">{escape(y_title)}</text>']
