"""How all figures look, what they need, and how they come into a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from io import StringIO
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    from matplotlib.colors import to_rgb

    mixed = (opacity * front + (1 - opacity) * back for front, back in zip(to_rgb(colour), to_rgb(paper), strict=True))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in mixed]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"
# Braille, Canadian syllabics and hexagrams: in matplotlib's own font, and of about a letter's width.
_STAND_INS = dict.fromkeys(map(chr, [*range(0x2801, 0x2900), *range(0x1401, 0x1677), *range(0x4DC0, 0x4E00)]))


def clean(text: str) -> str:
    """One line of what XML allows: white space becomes a space, and what it forbids the replacement character."""
    return " ".join(_FORBIDDEN.sub(_REPLACEMENT, text).split())


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis where it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


@cache
def _known() -> frozenset[int]:
    """The code points of matplotlib's own font."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


_REFERENCE = re.compile(r"(?:url\(#|^#)([\w.-]+)")
_FONT = re.compile(r"(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+)px .*")
_ROOT = (
    "display: block; width: 100%; max-width: {width:g}px; height: auto; "
    "font-family: sans-serif; stroke-linejoin: round; stroke-linecap: butt"
)


def inline(drawn: str, title: str, description: str, letters: Mapping[int, str]) -> str:
    """An ``<svg>`` without prolog, metadata and style sheet, whose ids are its own and whose inks are the page's.

    Args:
        drawn: what matplotlib wrote, with letters as letters.
        title: what it is, for those who do not see it.
        description: what it shows, likewise.
        letters: stand-in, by its code point -> the letter that it stands for.

    Returns:
        the same bytes for the same figure.
    """
    root = ET.fromstring(drawn)  # noqa: S314  (matplotlib's own words, not a stranger's)
    _strip(root, letters)
    _, _, width, _ = (float(number) for number in root.attrib["viewBox"].split())
    names = {"title": clean(title), "desc": clean(description)}
    root.attrib = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": root.attrib["viewBox"], "role": "img"}
    root.attrib |= {"aria-labelledby": " ".join(f"#{name}" for name in names), "style": _ROOT.format(width=width)}
    for place, (name, text) in enumerate(names.items()):
        element = ET.Element(name, {"id": name})
        element.text = text
        root.insert(place, element)
    _name(root, "f" + sha256(ET.tostring(root)).hexdigest()[:10])
    return ET.tostring(root, encoding="unicode")


def _strip(root: ET.Element, letters: Mapping[int, str]) -> None:
    """Leave only what is seen: no name spaces, metadata, style sheet or empty space."""
    for parent in list(root.iter()):
        for child in list(parent):
            child.tag = child.tag.rpartition("}")[2]
            child.tail = None
            if child.tag in ("metadata", "style"):
                parent.remove(child)
        parent.attrib = {name.rpartition("}")[2]: value for name, value in parent.attrib.items()}
        _dress(parent)
        if parent.tag == "text":
            parent.text = (parent.text or "").translate(letters)
        elif not (parent.text or "").strip():
            parent.text = None
    root.tag = "svg"


def _dress(element: ET.Element) -> None:
    """Colours and letters of an element; variables work in styles only, so that attributes become styles."""
    parts = (part.partition(":") for part in element.attrib.pop("style", "").split(";"))
    style = {name.strip(): value.strip() for name, colon, value in parts if colon}
    style |= {name: element.attrib.pop(name) for name in ("fill", "stroke") if name in element.attrib}
    style.pop("font-family", None)
    if short := _FONT.fullmatch(style.pop("font", "")):
        style |= {"font-size": f"{short['size']}px", **({"font-weight": short["weight"]} if short["weight"] else {})}
    if style:
        element.attrib["style"] = "; ".join(f"{name}: {VARIABLES.get(value, value)}" for name, value in style.items())


def _name(root: ET.Element, prefix: str) -> None:
    """Keep the ids that something refers to, and make them this figure's own."""
    used = {found for element in root.iter() for value in element.attrib.values() for found in _references(value)}
    known = {name: f"{prefix}-{number}" for number, name in enumerate(sorted(used))}
    for element in root.iter():
        if "id" in element.attrib and element.attrib["id"] not in known:
            del element.attrib["id"]
        for name, value in element.attrib.items():
            if name == "id":
                element.attrib[name] = known[value]
            elif name == "aria-labelledby":
                element.attrib[name] = " ".join(known[part.removeprefix("#")] for part in value.split())
            else:
                element.attrib[name] = _REFERENCE.sub(
                    lambda found: found[0].removesuffix(found[1]) + known[found[1]], value
                )


def _references(value: str) -> list[str]:
    return [found for part in value.split() for found in _REFERENCE.findall(part)]


# Points are pixels: figures are measured in pixels of a page, at their full width.
_DPI = 72
SMALL = 11
_LOOK = Path(__file__).with_name("look.mplstyle")
# matplotlib's settings are the whole process's, and its fonts are no thread's own.
_ALONE = RLock()


class SvgFigure:
    """A figure that is being drawn.

    matplotlib's font lacks most of the world's letters, and measuring one that it lacks gives a warning.
    So each of these gets a stand-in that the font has, which is taken back out of the drawn SVG.

    Attributes:
        figure: matplotlib's, in points that are pixels.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self._stand_ins: dict[str, str] = {}
        self._free = [letter for letter in _STAND_INS if ord(letter) in _known()]

    def label(self, text: str, most: int = 40) -> str:
        """A label of any text, cleaned, cut, and in letters that the font has; what is not our own goes through it."""
        return "".join(self._stand_in(letter, place) for place, letter in enumerate(cut(clean(text), most)))

    def svg(self, title: str, description: str) -> str:
        """The figure as one inline ``<svg>``: no prolog, style sheet or metadata, ids of its own, inks of the page.

        The page may set ``--figure-ink``, ``--figure-line`` and ``--figure-paper``; without them it is dark on white.

        Args:
            title: its name for screen readers; it is not drawn.
            description: what it shows, in words, for those who do not see it.
        """
        written = StringIO()
        self.figure.savefig(written, format="svg", metadata={"Date": None})
        letters = {ord(stand_in): letter for letter, stand_in in self._stand_ins.items()}
        return inline(written.getvalue(), title, description, letters)

    def _stand_in(self, letter: str, place: int) -> str:
        # A legend leaves out what begins with an underscore.
        if ord(letter) in _known() and letter not in _STAND_INS and (letter, place) != ("_", 0):
            return letter
        if letter not in self._stand_ins:
            if not self._free:
                return _REPLACEMENT
            self._stand_ins[letter] = self._free.pop(0)
        return self._stand_ins[letter]


@contextmanager
def drawing(width: float, height: float) -> Iterator[SvgFigure]:
    """Draw a figure, in pixels, one at a time in the whole process; a user's matplotlibrc has no say."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # What the file does not set is as matplotlib itself has it.
    with _ALONE, rc_context(fname=_LOOK):
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, layout="constrained")
        yield SvgFigure(figure)


def plain(axes: Axes) -> None:
    """Take the frame and the ticks' marks away; the labels stay."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def wide(text: str, size: float = 12) -> float:
    """About how many pixels a label takes."""
    return 0.64 * size * len(text)
