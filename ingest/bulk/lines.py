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
        for place in range(begin, end):
            self._count -= self._lasts[place] - self._firsts[place] + 1
        self._count += last - first + 1
        self._firsts[begin:end] = array("q", [first])
        self._lasts[begin:end] = array("q", [last])

    def ranges(self) -> list[tuple[int, int]]:
        """First and last line of each range, in order; no two of them touch."""
        return list(zip(self._firsts, self._lasts, strict=True))
