"""What is asked and what is found: items of parallel text, and a short question cut out of each."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from langshift.errors import UsageError

if TYPE_CHECKING:
    from langshift.debias.parallel.rows import ParallelText

LEAST = 100
# As many questions in all as a few minutes on two cores allow.
_QUESTIONS = 4_800
_MOST = 600
_AT_ONCE = 1_024
# A question has about this many words, as people's have.
_WORDS = 10
_LARGEST_SHARE = 0.5


@dataclass(frozen=True)
class Items:
    """Items in several languages, evenly spread over parallel text.

    Attributes:
        texts: tag -> one text an item, "" where there is none; the pivot language, which every item has, first.
        pairs: tag -> how many items of the whole parallel text have both this language and the pivot.
    """

    texts: Mapping[str, Sequence[str]]
    pairs: Mapping[str, int]

    @property
    def pivot(self) -> str:
        """The pivot language's tag."""
        return next(iter(self.texts))

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.texts[self.pivot])


def default_sample(languages: int) -> int:
    """How many items are taken where nobody says: 600, less where there are more than eight languages."""
    return max(LEAST, min(_MOST, _QUESTIONS // languages))


def sample_items(source: ParallelText, pivot: str, languages: Sequence[str], wanted: int) -> Items:
    """Read parallel text once and keep items evenly spread over it, in memory bounded by how many are wanted.

    Items without the pivot language, or with no other language, are left aside.

    Args:
        source: parallel text.
        pivot: tag of the pivot language.
        languages: tags of the other languages.
        wanted: how many items to keep, at most.

    Raises:
        UsageError: the text has fewer items than anything can be learned from.
    """
    tags = [pivot, *languages]
    pairs = dict.fromkeys(languages, 0)
    kept: list[tuple[str, ...]] = []
    seen, stride = 0, 1
    for rows in source.batches(_AT_ONCE):
        for item in zip(*(rows.texts[tag] for tag in tags), strict=True):
            if not item[0] or not any(item[1:]):
                continue
            for tag, text in zip(languages, item[1:], strict=True):
                pairs[tag] += bool(text)
            if seen % stride == 0:
                kept.append(item)
            seen += 1
            if len(kept) == 2 * wanted:
                kept, stride = kept[::2], 2 * stride
    if seen < LEAST:
        raise UsageError(
            f"{source.shown}: {seen:,} items have text in {pivot} and another language of the vectors, and fewer than "
            f"{LEAST} say nothing that chance does not: give more parallel text, or join fewer lines."
        )
    places = np.linspace(0, len(kept) - 1, min(wanted, len(kept))).round().astype(int)
    columns = zip(*(kept[place] for place in places), strict=True)
    return Items(dict(zip(tags, columns, strict=True)), pairs)


def well_covered(items: Items) -> tuple[Items, list[str]]:
    """The items in the languages in which enough of them can be asked for, and the languages in which too few can.

    Raises:
        UsageError: the pivot language is one of the latter, or no language beside it is left.
    """
    share = question_share(items)
    counts = {
        tag: sum(question(text, share) is not None for text in texts if text) for tag, texts in items.texts.items()
    }
    few = [tag for tag, count in counts.items() if count < LEAST]
    texts = {tag: of for tag, of in items.texts.items() if tag not in few}
    rows = [row for row in zip(*texts.values(), strict=True) if any(row[1:])]
    if items.pivot in few or len(rows) < LEAST:
        found = ", ".join(f"{count:,} in {tag}" for tag, count in counts.items())
        raise UsageError(
            f"Of the {items.count:,} items sampled too few have text to cut a question out of in {items.pivot} and "
            f"another language ({found}; at least {LEAST} are needed): raise --sample, or give more parallel text."
        )
    return Items(dict(zip(texts, zip(*rows, strict=True), strict=True)), items.pairs), few


def question_share(items: Items) -> float:
    """What part of an item's characters a question of about ten words is, at most half.

    Words are counted in the language that parts most of them by spaces; the same part of the text is as many
    words in scripts that do without.
    """
    counts = [[len(text.split()) for text in texts if text] for texts in items.texts.values()]
    longest = max(float(np.median(of)) for of in counts if of)
    return min(_LARGEST_SHARE, _WORDS / longest)


def question(text: str, share: float) -> str | None:
    """A piece from the middle of a text; None where the text is too short to have one.

    The piece begins and ends at white space where there is some near, else between two characters.

    Args:
        text: an item in one language.
        share: how long the piece is, as a part of the text's characters.
    """
    long = max(1.0, len(text) * share)
    start, reach = (len(text) - long) / 2, max(2, int(long / 4) + 1)
    piece = text[_border(text, int(start), reach) : _border(text, int(start + long), reach)].strip()
    return piece if piece and piece != text.strip() else None


def _border(text: str, at: int, reach: int) -> int:
    """The place after white space that is nearest to ``at``; else ``at``, but never before a combining mark."""
    for away in range(reach):
        for place in (at - away, at + away):
            if 0 < place < len(text) and text[place - 1].isspace():
                return place
    while 0 < at < len(text) and unicodedata.category(text[at]).startswith("M"):
        at += 1
    return at
