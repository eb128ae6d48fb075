"""What a list of hits shows of each: texts in their own direction, the score, and the place on the other side."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from langshift.retrieval.hit import Hit

SNIPPET: Final = 240
TITLE: Final = 160
# How much of a text is shown before the first of the query's words in it.
_BEFORE = 60
# What is kept of a text, and how much of it before that word: more than any list shows.
_KEPT, _KEPT_BEFORE = 2_000, 500
_SHORTEST_WORD = 3
# No script puts more marks on a character.
_MOST_MARKS = 16
# A query may be as long as a page.
_MOST_WORDS = 32

Movement = Literal["up", "down", "same", "absent"]


class Row(NamedTuple):
    """One hit of a list.

    Attributes:
        rank: from 1.
        hit: what was found.
        title: of the document; empty where it has none.
        snippet: the beginning of its text, or what is around a word of the query.
        own: whether it is in the searcher's language.
        movement: which way it stands against the other side.
        moved: the same in words.
        others: the other documents of its group: their languages, and their titles or the beginnings of their texts.
    """

    rank: int
    hit: Hit
    title: str
    snippet: str
    own: bool
    movement: Movement
    moved: str
    others: tuple[tuple[str, str], ...]


def rows(hits: Sequence[Hit], words: str, language: str, there: Mapping[str, int]) -> list[Row]:
    """The hits as they are listed.

    Args:
        hits: best first.
        words: the query.
        language: the searcher's.
        there: document -> rank on the other side, from ``places``.
    """
    found = []
    for rank, hit in enumerate(hits, start=1):
        movement, moved = _moved(rank, _place(hit, there))
        found.append(
            Row(
                rank=rank,
                hit=hit,
                title=cut(hit.title, TITLE),
                snippet=snippet(hit.text, words),
                own=hit.language == language,
                movement=movement,
                moved=moved,
                others=tuple((one.language, cut(one.title or one.text, TITLE)) for one in hit.others),
            )
        )
    return found


def places(hits: Iterable[Hit]) -> dict[str, int]:
    """Document -> its rank; one inside a hit has that of the hit."""
    found: dict[str, int] = {}
    for rank, hit in enumerate(hits, start=1):
        for name in (hit.id, *(one.id for one in hit.others)):
            found.setdefault(name, rank)
    return found


def shares(hits: Sequence[Hit]) -> list[tuple[str, int]]:
    """Language -> how many of the hits are in it, most first."""
    counted = Counter(hit.language for hit in hits)
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def snippet(text: str, words: str, most: int = SNIPPET) -> str:
    """The beginning of a text, or what is around the first of the query's words in it where that is further on."""
    text = " ".join(text.split())
    found = _first_word(text, words, most)
    if found is None:
        return cut(text, most)
    start = max(0, min(found - _BEFORE, len(text) - most))
    space = text.find(" ", start, found)
    start = space + 1 if space >= 0 else _whole(text, start)
    return f"…{cut(text[start:], most)}"


def cut(text: str, most: int) -> str:
    """The beginning of a text, to the end of a word where one ends soon."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    end = _whole(text, most)
    space = text.rfind(" ", most * 3 // 4, end)
    return f"{text[: space if space > 0 else end].rstrip()}…"


def excerpt(text: str, words: str = "") -> str:
    """As much of a text as ``cut`` and ``snippet`` need to make the same of it as of the whole."""
    # Most are short, and to part them into words is the slowest here.
    if len(text) <= _KEPT:
        return text
    text = " ".join(text.split())
    if len(text) <= _KEPT:
        return text
    found = _first_word(text, words, SNIPPET)
    start = 0 if found is None else max(0, found - _KEPT_BEFORE)
    return text[start : start + _KEPT]


def ordinal(rank: int) -> str:
    """``1st``, ``22nd``, ``113th``."""
    teens = 10 < rank % 100 < 14
    return f"{rank}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th')}"


def _first_word(text: str, words: str, most: int) -> int | None:
    """Where the first of the query's words begins in a text; None where it is in the beginning, or there is none."""
    if len(text) <= most:
        return None
    lowered = text.lower()
    # Of some letters it makes two.
    searched = lowered if len(lowered) == len(text) else text
    wanted = [word.lower() for word in words.split()[:_MOST_WORDS] if len(word) >= _SHORTEST_WORD]
    start, end = min(
        ((place, place + len(word)) for word in wanted if (place := searched.find(word)) >= 0), default=(0, 0)
    )
    return start if end > most else None


def _whole(text: str, place: int) -> int:
    """The place, further on where it would part a character from its marks."""
    furthest = min(len(text), place + _MOST_MARKS)
    while place < furthest and unicodedata.category(text[place])[0] == "M":
        place += 1
    return place


def _place(hit: Hit, there: Mapping[str, int]) -> int | None:
    found = [there[name] for name in (hit.id, *(one.id for one in hit.others)) if name in there]
    return there.get(hit.id, min(found) if found else None)


def _moved(rank: int, there: int | None) -> tuple[Movement, str]:
    if there is None:
        return "absent", "not among the first 100 there"
    if there == rank:
        return "same", "same place"
    direction: Literal["up", "down"] = "up" if rank < there else "down"
    return direction, f"{direction} {abs(there - rank)}, there {ordinal(there)}"
