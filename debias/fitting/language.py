"""What is added up of a language alone, whatever the pivot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.embedding import Matrix, Side
from langshift.debias.fitting.lir import SecondMoment
from langshift.debias.fitting.sums import row_norms, unit_rows


class LanguageSums:
    """Sums over all embeddings of a language."""

    def __init__(self, dimension: int, *, directions: bool) -> None:
        """Begin with nothing.

        Args:
            dimension: length of an embedding.
            directions: whether the second moments are wanted, which take memory O(d²).
        """
        self._total = np.zeros(dimension, np.float64)
        self._norms = 0.0
        self._count = self._looked = 0
        self._moment = SecondMoment(dimension) if directions else None

    def add(self, side: Side, closely: int) -> Matrix:
        """Add a batch.

        Args:
            side: its embeddings.
            closely: how many of its rows are looked at closely.

        Returns:
            These rows without the language's mean so far, of norm 1, shape (closely, d), float32.
        """
        self._total += side.total
        self._count += side.count
        if self._moment is not None:
            self._moment.add(side.vectors if side.present is None else side.vectors[side.present])
        looked = side.vectors[:closely]
        self._norms += float(row_norms(looked).sum(dtype=np.float64))
        self._looked += len(looked) if side.present is None else int(side.present[:closely].sum())
        return unit_rows(looked, self.mean)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean embedding, shape (d,), float64; zeros before the first."""
        return self._total / max(self._count, 1)

    @property
    def norm(self) -> float:
        """The mean norm of the embeddings that were looked at closely."""
        return self._norms / max(self._looked, 1)

    def directions(self) -> Matrix | None:
        """The first principal direction, shape (1, d), where it was asked for."""
        return None if self._moment is None else self._moment.directions()
