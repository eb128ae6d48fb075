"""Colours of figures: for the colour-blind, and for pages that are light or dark."""

from __future__ import annotations

# Stand for the page's own colours while a figure is drawn; the SVG names CSS variables in their place.
INK = "#010203"
LINE = "#040506"
PAPER = "#070809"
VARIABLES = {
    INK: "var(--figure-ink, #1b1b1b)",
    LINE: "var(--figure-line, #8a8a8a)",
    PAPER: "var(--figure-paper, #ffffff)",
}

# Okabe and Ito's colours, which the colour-blind can tell apart, less black (the ink) and yellow (too pale for lines).
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
CATEGORIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
# 6 colours and 11 markers go round without a common measure: 66 pairs before one comes again.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "*", ">", "p")

# Heatmaps: the paper shows through, so that small figures fade into a light page and into a dark one.
MORE = BLUE
BLACK, WHITE = "#1b1b1b", "#ffffff"


def marking(number: int) -> tuple[str, str]:
    """Colour and marker of the ``number``-th of many kinds; no two of the first 66 are alike."""
    return CATEGORIES[number % len(CATEGORIES)], MARKERS[number % len(MARKERS)]


def letters_on(colour: str, opacity: float = 1.0) -> str:
    """What stands out best from this colour laid over paper: white, or black; where paper shows through, the ink.

    The ink of dark paper is light, and so stands out there from any cell of a heatmap, all of which are darker.
    """
    ground = luminance(colour, opacity) + 0.05
    if (1 + 0.05) / ground > ground / (luminance(BLACK) + 0.05):
        return WHITE
    return INK if opacity < 1 else BLACK


def luminance(colour: str, opacity: float = 1.0, paper: str = "#ffffff") -> float:
    """Relative luminance of WCAG 2, 0 to 1, of ``colour`` laid over ``paper``."""
    mixed = (opacity * front + (1 - opacity) * back for front, back in zip(_rgb(colour), _rgb(paper), strict=True))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in mixed]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red / 255, green / 255, blue / 255
