"""How all figures look, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from threading import RLock
from typing import TYPE_CHECKING, Any

from langshift.errors import LangshiftError
from langshift.evaluate.figures.colours import INK, LINE, PAPER
from langshift.evaluate.figures.inline import inline
from langshift.evaluate.figures.lettering import Lettering

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Points are pixels: figures are measured in pixels of a page, at their full width.
_DPI = 72
SMALL = 11
_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "langshift",
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 12,
    "legend.fontsize": 12,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "figure.facecolor": PAPER,
    "grid.color": LINE,
    "grid.alpha": 0.3,
    "hatch.linewidth": 1,
    "legend.frameon": False,
    "xtick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.color": LINE,
    "ytick.labelcolor": INK,
}
# matplotlib's settings are the whole process's, and its fonts are no thread's own.
_ALONE = RLock()


def require_plotting(who: str) -> None:
    """Refuse, before any work, what cannot be drawn.

    Args:
        who: what needs it, such as ``--plot``.

    Raises:
        LangshiftError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise LangshiftError(f"{who} needs an extra: pip install 'langshift[plot]'.")


class Drawing:
    """A figure that is being drawn.

    Attributes:
        figure: matplotlib's, in points that are pixels.
        label: what makes a label of any text; every text that is not our own has to go through it.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self._lettering = Lettering()
        self.label = self._lettering.label

    def svg(self, title: str, description: str) -> str:
        """The figure as one inline ``<svg>``: no prolog, style sheet or metadata, ids of its own, inks of the page.

        The page may set ``--figure-ink``, ``--figure-line`` and ``--figure-paper``; without them it is dark on white.

        Args:
            title: its name for screen readers; it is not drawn.
            description: what it shows, in words, for those who do not see it.
        """
        written = StringIO()
        self.figure.savefig(written, format="svg", metadata={"Date": None})
        return inline(written.getvalue(), title, description, self._lettering.taken_back)


@contextmanager
def drawing(width: float, height: float) -> Iterator[Drawing]:
    """Draw a figure, in pixels, one at a time in the whole process; a user's matplotlibrc has no say."""
    from matplotlib import rc_context, rcdefaults, rcParams
    from matplotlib.figure import Figure

    with _ALONE, rc_context():
        rcdefaults()
        rcParams.update(_LOOK)
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, layout="constrained")
        yield Drawing(figure)


def plain(axes: Axes) -> None:
    """Take the frame and the ticks' marks away; the labels stay."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def wide(text: str, size: float = 12) -> float:
    """About how many pixels a label takes."""
    return 0.64 * size * len(text)
