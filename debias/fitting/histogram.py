"""Medians and tail counts of a stream of numbers in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_LEAST, _MOST, _WIDTH = -2.0, 2.0, 0.002
_BINS = round((_MOST - _LEAST) / _WIDTH)


class Histogram:
    """Counts of numbers between −2 and 2 (differences of cosines) in bins of .002."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)

    def add(self, values: ArrayLike) -> None:
        """Count values; those outside go to the first and the last bin."""
        bins = ((np.ravel(values) - _LEAST) / _WIDTH).astype(np.int64)
        self._counts += np.bincount(np.clip(bins, 0, _BINS - 1), minlength=_BINS)

    @property
    def total(self) -> int:
        """How many values there were."""
        return int(self._counts.sum())

    @property
    def median(self) -> float:
        """The middle of the bin in which the median lies; 0 where there is no value."""
        if not self.total:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self._counts), self.total / 2))
        return _LEAST + (place + 0.5) * _WIDTH

    def below(self, limit: float) -> tuple[int, float]:
        """How many values lie below a limit, and the limit itself, moved down to where a bin begins."""
        place = int(np.floor((limit - _LEAST) / _WIDTH))
        return int(self._counts[: max(place, 0)].sum()), _LEAST + place * _WIDTH
