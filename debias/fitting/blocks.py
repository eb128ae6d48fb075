"""Running sums of a language's pairs, kept apart by contiguous blocks: what a mean and its trust need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.sums import column_sums

Matrix = NDArray[np.float32]
Totals = tuple[NDArray[np.float64], NDArray[np.float64]]
# An even number, so that all blocks find a neighbour to merge with.
MOST = 64


class Blocks:
    """Sums of the differences ``z^ℓ − z^pivot`` in at most 64 blocks of equally many neighbouring pairs.

    Neighbouring sentences are alike, so that pairs drawn one by one would make the mean look surer than it is;
    contiguous blocks carry that likeness. When all are full, neighbours merge and blocks double in size.
    """

    def __init__(self, dimension: int) -> None:
        self._sums = np.zeros((MOST, dimension), np.float64)
        self._counts = np.zeros(MOST, np.int64)
        self._size = 1
        self._at = 0
        self._language = np.zeros(dimension, np.float64)

    def add(self, rows: Matrix, pivot_rows: Matrix, totals: Totals | None = None) -> None:
        """Add pairs in the order of the text.

        Args:
            rows: the language's embeddings, shape (n, d), float32.
            pivot_rows: the pivot's embeddings of the same pairs, shape (n, d), float32.
            totals: the sums of both, where they are known: most often all rows go into one block.
        """
        done = 0
        while done < len(rows):
            if self._at == MOST:
                self._merge()
            room = self._size - int(self._counts[self._at])
            part = slice(done, done + room)
            if totals and not done and len(rows) <= room:
                language, pivot = totals
            else:
                language, pivot = column_sums(rows[part]), column_sums(pivot_rows[part])
            self._language += language
            self._sums[self._at] += language - pivot
            self._counts[self._at] += len(rows[part])
            done += len(rows[part])
            self._at += int(self._counts[self._at] == self._size)

    def _merge(self) -> None:
        half = MOST // 2
        self._sums[:half] = self._sums.reshape(half, 2, -1).sum(axis=1)
        self._counts[:half] = self._counts.reshape(half, 2).sum(axis=1)
        self._sums[half:], self._counts[half:] = 0, 0
        self._size, self._at = 2 * self._size, half

    @property
    def pairs(self) -> int:
        """How many pairs were added."""
        return int(self._counts.sum())

    @property
    def difference(self) -> NDArray[np.float64]:
        """The sum of all differences, shape (d,), float64."""
        total: NDArray[np.float64] = self._sums.sum(axis=0)
        return total

    @property
    def language(self) -> NDArray[np.float64]:
        """The sum of the language's embeddings over the pairs, shape (d,), float64."""
        return self._language

    @property
    def sums(self) -> NDArray[np.float64]:
        """Each block's sum of differences, in order, shape (blocks, d), float64."""
        return self._sums[self._counts > 0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many pairs each block holds, shape (blocks,)."""
        return self._counts[self._counts > 0]
