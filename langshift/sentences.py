"""Sentences: where they end in a text of any language, and how many of them are taken together.

ICU knows where sentences, words and characters end. It counts in UTF-16, where a character beyond U+FFFF is two: it is
given a text with one stand-in for each of them (``within_bmp``), so that its places are those of the text in code
points.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

from langshift.languages import primary

if TYPE_CHECKING:
    from icu4py.breakers import BaseBreaker

#: A place in a text: its first character and the one after its last, counted from 0 in code points.
Span = tuple[int, int]

_BEYOND = re.compile("[\U0001f1e6-\U0001f1ff]{2}|[\ud800-\udfff\U00010000-\U0010ffff]")
_SQUARE, _IDEOGRAPH, _MODIFIER = "\u2b1b", "\u3400", "\ufe0f"


def within_bmp(text: str) -> str:
    """A text of as many characters, none beyond U+FFFF, whose sentences, words and characters end where its own do."""
    return text if text.isascii() else _BEYOND.sub(_stand_in, text)


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    if len(character) == 2:
        # Two letters are one flag.
        return _SQUARE + _MODIFIER
    category = unicodedata.category(character)
    # Combining marks, tags in flags, and the five colours of skin.
    if category[0] == "M" or category == "Cf" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return _MODIFIER
    return _IDEOGRAPH if category[0] in "LN" else _SQUARE


def breaks(breaker: type[BaseBreaker], text: str, locale: str = "und") -> list[int]:
    """Where the parts of a text end, in code points; the last is the end of the text."""
    return [end for _, end in breaker(text, locale).segments()]


# Thai and Lao, which have no marks at the end of a sentence.
_UNMARKED = re.compile(r"[\u0e00-\u0eff]")
_USUAL_SENTENCE = 80  # characters
#: White space before something else.
SPACE = re.compile(r"\s(?=\S)")


def sentence_spans(text: str, start: int, end: int, language: str) -> list[Span]:
    """The sentences between two places, with the white space behind each.

    Args:
        text: as ``within_bmp`` gives it.
        start: where the first begins.
        end: the character after the last.
        language: primary tag or ``und``; it tells abbreviations from ends of sentences.
    """
    from icu4py.breakers import SentenceBreaker

    piece = text[start:end]
    bounds = [0]
    # The key has it know abbreviations.
    for stop in breaks(SentenceBreaker, _unwrapped(piece), f"{primary(language)}-u-ss-standard"):
        sentence = piece[bounds[-1] : stop]
        if stop < len(piece) and _is_abbreviated(sentence):
            continue
        if len(sentence) > _USUAL_SENTENCE and 2 * len(_UNMARKED.findall(sentence)) > len(sentence):
            begin = bounds[-1]
            for gap in SPACE.finditer(sentence):
                if begin + gap.end() - bounds[-1] >= _USUAL_SENTENCE:
                    bounds.append(begin + gap.end())
        bounds.append(stop)
    return [(start + first, start + last) for first, last in pairwise(bounds)]


def _is_abbreviated(sentence: str) -> bool:
    """Whether its full stop is that of an initial, of a title such as Dr., or of the number of a day or in a list."""
    last = sentence.rsplit(maxsplit=1)[-1] if not sentence.isspace() else ""
    return len(last) in (2, 3) and last[-1] == "." and (last[0].isupper() or last[:-1].isdecimal())


_WRAPPED = range(40, 121)  # characters of the longest line


def _unwrapped(paragraph: str) -> str:
    """A paragraph whose lines were broken to be equally long, with spaces in place of line breaks; another as it is.

    A line is broken there because the next word would have made it longer than any other.
    """
    lines = paragraph.replace("\r\n", " \n").split("\n")
    longest = max(len(line.rstrip()) for line in lines)
    if longest not in _WRAPPED:
        return paragraph
    parts = lines[:1]
    for line, following in pairwise(lines):
        word = following.split(maxsplit=1)[:1]
        parts += [" " if len(line.rstrip()) + len("".join(word)) >= longest else "\n", following]
    return "".join(parts)


def joined(pieces: list[Span], sizes: list[int], most: int) -> list[Span]:
    """Pieces that follow each other, as many together as have at most a certain size; one that has more is alone."""
    made = pieces[:1]
    together = sizes[0]
    for (begin, end), size in zip(pieces[1:], sizes[1:], strict=True):
        together += size
        if together <= most:
            made[-1] = (made[-1][0], end)
        else:
            made.append((begin, end))
            together = size
    return made
