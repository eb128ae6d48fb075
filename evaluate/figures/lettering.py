"""Labels that matplotlib can measure, whatever is in them."""

from __future__ import annotations

import re
from functools import cache

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"
# Braille, Canadian syllabics and hexagrams: in matplotlib's own font, and of about a letter's width.
_STAND_INS = (range(0x2801, 0x2900), range(0x1401, 0x1677), range(0x4DC0, 0x4E00))


def clean(text: str) -> str:
    """One line of what XML allows: white space becomes a space, and what it forbids the replacement character."""
    return " ".join(_FORBIDDEN.sub(_REPLACEMENT, text).split())


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis where it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


class Lettering:
    """The labels of one figure.

    matplotlib's font lacks most of the world's letters, and measuring one that it lacks gives a warning.
    So each of these gets a stand-in that the font has, which is taken back out of the drawn SVG.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._free = [letter for letter in _pool() if ord(letter) in _known()]

    def label(self, text: str, most: int = 40) -> str:
        """A label to give to matplotlib: cleaned, cut, and in letters that its font has."""
        return "".join(self._stand_in(letter, place) for place, letter in enumerate(cut(clean(text), most)))

    def taken_back(self, text: str) -> str:
        """What a drawn text was before."""
        return text.translate({ord(stand_in): letter for letter, stand_in in self._stand_ins.items()})

    def _stand_in(self, letter: str, place: int) -> str:
        # A legend leaves out what begins with an underscore.
        if ord(letter) in _known() and letter not in _pool() and (letter, place) != ("_", 0):
            return letter
        if letter not in self._stand_ins:
            if not self._free:
                return _REPLACEMENT
            self._stand_ins[letter] = self._free.pop(0)
        return self._stand_ins[letter]


@cache
def _pool() -> dict[str, None]:
    return {chr(number): None for numbers in _STAND_INS for number in numbers}


@cache
def _known() -> frozenset[int]:
    """The code points of matplotlib's own font."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())
