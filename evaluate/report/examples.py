"""Who gains and loses most, side by side, as in the paper's Tables 12 to 15."""

from __future__ import annotations

from collections.abc import Sequence

from langshift.evaluate.compare.winners import Example, Extremes, Found
from langshift.evaluate.report.tables import GAIN, MARK, Cell, Head, Table
from langshift.languages import UNDETERMINED
from langshift.shown import figure, signed

HITS = 5
_CHARACTERS = 240
_LONGEST_WORD = 30


def examples(extreme: Extremes, labels: Sequence[str]) -> list[Table]:
    """A table for each query that gains or loses much, gains first.

    Args:
        extreme: the queries.
        labels: of the earlier and the later run.
    """
    return [
        _example(extreme, example, labels, gains)
        for found, gains in ((extreme.winners, True), (extreme.losers, False))
        for example in found
    ]


def _example(extreme: Extremes, example: Example, labels: Sequence[str], gains: bool) -> Table:
    caption = (
        f"{'Gains' if gains else 'Loses'}: {extreme.column.measure} {figure(example.before)} → {figure(example.after)} "
        f"({signed(example.after - example.before)}), query {example.query.id} in {example.language or UNDETERMINED}:"
    )
    heads = [Head("rank"), *(Head(head, label) for label in labels for head in ("content", "language", "relevant"))]
    sides = (example.hits_before, example.hits_after)
    rows = [
        [Cell(str(rank + 1)), *(cell for hits in sides for cell in _hit(hits[rank] if rank < len(hits) else None))]
        for rank in range(max(map(len, sides)))
    ]
    return Table(caption, heads, rows, words=True, quoted=quoted(example.query.text, example.language))


def _hit(found: Found | None) -> list[Cell]:
    if found is None:
        return [Cell("-"), Cell("-"), Cell("-")]
    return [
        quoted(found.text or found.id, found.language),
        Cell(found.language or UNDETERMINED),
        Cell("✓ yes", tone=GAIN) if found.relevant else Cell("✗ no", tone=MARK),
    ]


def quoted(text: str, language: str | None) -> Cell:
    """A text's beginning, with the language that it is in."""
    words = " ".join(text.split())
    if len(words) > _CHARACTERS:
        # At a space where one is near: not every script has them.
        start, space, end = words[:_CHARACTERS].rpartition(" ")
        words = (start if space and len(end) <= _LONGEST_WORD else words[:_CHARACTERS]) + "…"
    return Cell(words, language=language or UNDETERMINED)
