"""A set of line numbers that stays small where lines follow each other."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right


class Lines:
    """A set of line numbers, held as sorted, disjoint ranges: 16 bytes for each, however long it is."""

    def __init__(self) -> None:
        self._firsts = array("q")
        self._lasts = array("q")
        self._count = 0

    def __contains__(self, line: int) -> bool:
        place = bisect_right(self._firsts, line) - 1
        return place >= 0 and line <= self._lasts[place]

    def __len__(self) -> int:
        return self._count

    def add(self, first: int, last: int) -> None:
        """Add the lines from ``first`` to ``last``, both included; some may be there already.

        Raises:
            ValueError: ``last`` is before ``first``.
        """
        if last < first:
            raise ValueError(f"{first} to {last} is no range.")
        # The ranges that overlap the new one or touch it, which all become one.
        begin, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        self._replace(begin, end, [(first, last)])

    def remove(self, line: int) -> None:
        """Take one line out, if it is there."""
        place = bisect_right(self._firsts, line) - 1
        if place < 0 or line > self._lasts[place]:
            return
        first, last = self._firsts[place], self._lasts[place]
        left = [(a, b) for a, b in ((first, line - 1), (line + 1, last)) if a <= b]
        self._replace(place, place + 1, left)

    def ranges(self) -> list[tuple[int, int]]:
        """First and last line of each range, in order; no two of them touch."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def _replace(self, begin: int, end: int, ranges: list[tuple[int, int]]) -> None:
        """Put ``ranges`` where the ranges from ``begin`` up to ``end`` were."""
        for place in range(begin, end):
            self._count -= self._lasts[place] - self._firsts[place] + 1
        self._count += sum(last - first + 1 for first, last in ranges)
        self._firsts[begin:end] = array("q", [first for first, _ in ranges])
        self._lasts[begin:end] = array("q", [last for _, last in ranges])
