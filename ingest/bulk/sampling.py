"""Which lines the final check compares, vector by vector: the ``SIZE`` lines with the lowest ranks.

A line's rank is a hash of its number. So every line has the same chance wherever it stands and however many
there are, and a load that goes on chooses as one that was never stopped.
"""

from __future__ import annotations

SIZE = 200
"""How many lines the sample keeps."""

HIGHEST = (1 << 63) - 1
"""The highest rank; SQLite's integers go no further."""

_MASK = (1 << 64) - 1


def rank(line: int) -> int:
    """A pseudo-random number from 0 to ``HIGHEST`` that depends on the line alone (SplitMix64)."""
    mixed = (line * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) >> 1


def likely(total: int | None) -> int:
    """A rank above which no line of so many can be expected to stay in the sample; the highest where nobody knows.

    Without it the first lines would all be kept, until enough are there to tell which ranks are low.
    """
    return HIGHEST if total is None else min(HIGHEST, HIGHEST * 2 * SIZE // max(total, 1))
