"""Points as inline SVG, whose letters are the page's own, so that every script shows."""

from collections.abc import Mapping
from html import escape

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
_SIDE, _GAP, _LINE, _ROWS = 360, 16, 17, 21
#: Room for the figures of the upright axis, left of the frame; and characters of a name in the legend.
_LEFT, _LETTERS = 50, 40


def scatter(
    points: Mapping[str, tuple[float, float]], *, title: str, description: str, x_title: str, y_title: str
) -> str:
    """Draw points, each of a colour and a shape of its own, with a legend.

    Args:
        points: name -> x and y; at least one.
        title: the picture's name for screen readers; it is not drawn.
        description: what it shows, in words, likewise.
        x_title: what is measured across.
        y_title: what is measured upwards.

    Returns:
        An ``<svg>`` in the page's own ``currentColor``.
    """
    names = sorted(points)
    marks = {
        name: f'<path d="{_SHAPES[n % len(_SHAPES)]}" fill="{_COLOURS[n % len(_COLOURS)]}">'
        f"<title>{escape(name)}</title></path>"
        for n, name in enumerate(names)
    }
    across, upwards = zip(*points.values(), strict=True)
    placed = "".join(
        f'<g transform="translate({_place(x, across):g} {_SIDE - _place(y, upwards):g})">{marks[name]}</g>'
        for name, (x, y) in points.items()
    )
    frame = f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    drawn = [f'<g transform="translate({_LEFT} {_LINE})">{frame}{placed}</g>']
    drawn += _axes(across, upwards, x_title, y_title)
    right, wide = _LEFT + _SIDE + _GAP, 22 + 7.5 * min(_LETTERS, max(map(len, names)))
    for number, name in enumerate(names):
        column, row = divmod(number, _ROWS)
        text = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        drawn.append(
            f'<g transform="translate({right + wide * column + 8:g} {_LINE * row + 24})">{marks[name]}'
            f'<text x="10" y="4">{escape(text)}</text></g>'
        )
    width, height = right + wide * -(-len(names) // _ROWS), _SIDE + _LINE + 20
    return (
        f'<svg viewBox="0 0 {width:g} {height}" width="{width:g}" role="img" font-size="13" fill="currentColor">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(drawn)}</svg>"
    )


def _place(value: float, values: tuple[float, ...]) -> float:
    """How far from the beginning of an axis that holds all values; in the middle where they are all the same."""
    low, high = min(values), max(values)
    return round(_SIDE * (0.05 + 0.9 * (value - low) / (high - low) if high > low else 0.5), 1)


def _axes(across: tuple[float, ...], upwards: tuple[float, ...], x_title: str, y_title: str) -> list[str]:
    """The titles, each between the least and the greatest figure."""
    bottom = _SIDE + _LINE + 15
    low = (min(across), min(upwards), "start", 0.05 * _SIDE)
    high = (max(across), max(upwards), "end", 0.95 * _SIDE)
    return [
        *(
            f'<text x="{_LEFT + at:g}" y="{bottom}" text-anchor="{side}">{x:.3f}</text>'
            f'<text x="4" y="{_LINE + _SIDE - at + 4:g}">{y:.3f}</text>'
            for x, y, side, at in (low, high)
        ),
        f'<text x="{_LEFT + _SIDE / 2}" y="{bottom}" text-anchor="middle">{escape(x_title)}</text>',
        f'<text x="0" y="12">{escape(y_title)}</text>',
    ]
