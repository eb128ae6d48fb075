"""Questions cut out of texts: a piece of one sentence."""

from __future__ import annotations

import re
import zlib
from typing import Final

import numpy as np

from langshift.retrieval.bodies import MOST_CLAUSES

_SENTENCE: Final = re.compile(r"(?<=[.!?؟۔])\s+|(?<=[。！？।॥])\s*|\n+")
_WORDS: Final = 10
_LEAST_WORDS: Final = 4
# Of scripts without spaces about as many characters as ten words have.
_CHARACTERS: Final = {"zh": 18, "yue": 18, "ja": 18, "th": 40, "lo": 40, "km": 40, "my": 40, "bo": 40}
_LONGEST: Final = 300
assert _LONGEST < MOST_CLAUSES // 2  # noqa: S101 - whatever an analyzer makes of it, the server takes it


def cut(text: str, language: str, name: str) -> str | None:
    """A question of about ten words out of one sentence.

    Args:
        text: of a document.
        language: its language; in scripts without spaces characters are counted instead.
        name: the document's id, by which the place is chosen, so that it is the same each time.

    Returns:
        The piece; None where no sentence is long enough.
    """
    chance = np.random.default_rng(zlib.crc32(name.encode(errors="replace")))
    # A text that was cut in the middle of a character has half of it left, which no request can hold.
    whole = text.encode(errors="ignore").decode()
    pieces = [found for sentence in _SENTENCE.split(whole) if (found := _parts(sentence, language))]
    if not pieces:
        return None
    parts, joint = pieces[int(chance.integers(len(pieces)))]
    wanted = _WORDS if joint else _CHARACTERS[language]
    start = int(chance.integers(max(1, len(parts) - wanted + 1)))
    return joint.join(parts[start : start + wanted]).strip()[:_LONGEST]


def _parts(sentence: str, language: str) -> tuple[list[str], str] | None:
    """What a question can be cut of, and what joins it; None where that is too little."""
    if language in _CHARACTERS:
        characters = list(sentence.strip())
        return (characters, "") if len(characters) >= _CHARACTERS[language] // 2 else None
    words = sentence.split()
    return (words, " ") if len(words) >= _LEAST_WORDS else None
