"""Pairs that look misaligned: a neighbour's translation is clearly nearer than their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

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


Units = NDArray[np.float32]
# What ``msgspec`` checks where evidence is read.
Count = Annotated[int, Meta(ge=0)]
# Pairs are compared within windows of so many neighbours: misalignment is mostly a matter of a line or two.
WINDOW = 64
# In a smaller window, the nearest of so few says little.
_FEWEST_LANGUAGES = 8
# How far above the spread of chance the best match stands out from the second best: measured 1.6 to 2.9 with use-m
# in its own languages, .4 to .85 in those that it never learnt. Below, being nearest is mostly luck.
SHARP = 1.2
# A pair is told misaligned where a neighbour is nearer by this share of the usual distance to the second best.
_CLEARLY = 0.2
_WORST = 50
_OUT = np.float32(-4)


@dataclass(frozen=True)
class Suspect:
    """A pair that looks misaligned.

    Attributes:
        place: where it is, for a person.
        fits: the place whose pivot text fits this language's text better.
        margin: its own cosine less the best neighbour's, below 0.
    """

    place: str
    fits: str
    margin: float


@dataclass(frozen=True)
class Alignment:
    """What was found about the pairs of a language.

    Attributes:
        checked: pairs that had enough neighbours to be compared with.
        sharpness: the usual distance between the best and the second best match, in standard deviations of
            the cosines of pairs that do not belong together.
        told: whether the encoder is sharp enough in this language to tell.
        count: pairs that look misaligned; 0 where it cannot be told.
        worst: at most 50 of them, in the order of the text.
    """

    checked: Count
    sharpness: float
    told: bool
    count: Count
    worst: tuple[Suspect, ...]


class AlignmentCheck:
    """Compares every pair with its neighbours while they go by; bounded memory.

    The cosine of a pair, and of its texts with the other texts of its window, is taken after each language's
    mean is removed (without it, all texts of a language would be near each other). The margin is its own
    cosine less the best other, of the two directions the better: both texts must fit another place better.
    A neighbour that is as near to the pair's own text as a translation usually is, such as a sentence of the same
    template, is no evidence.
    """

    def __init__(self) -> None:
        self._margins, self._gaps, self._best = Histogram(), Histogram(), Histogram()
        # Number, sum and sum of squares of the cosines of texts that do not belong together.
        self._others = np.zeros(3, np.float64)
        # Margin, number of the pair, and what is told of it: the worst first.
        self._suspects: list[tuple[float, int, Suspect]] = []

    def add(self, units: Units, pivot_units: Units, places: Sequence[str], rows: NDArray[np.intp]) -> None:
        """Add neighbouring pairs in the order of the text.

        Args:
            units: the language's embeddings without their mean, of norm 1, shape (n, d), float32.
            pivot_units: the pivot's of the same pairs, shape (n, d), float32.
            places: names rows for a person.
            rows: which of them each pair is, shape (n,).
        """
        # All windows are full, but for the last, which takes the rest too.
        full = max(len(units) // WINDOW - (len(units) % WINDOW > 0), 0)
        for start, windows, size in ((0, full, WINDOW), (full * WINDOW, 1, len(units) - full * WINDOW)):
            if size >= _FEWEST_LANGUAGES and windows:
                part = slice(start, start + windows * size)
                shape = (windows, size, units.shape[1])
                self._compare(units[part].reshape(shape), pivot_units[part].reshape(shape), places, rows[part])

    def _compare(self, units: Units, pivot_units: Units, places: Sequence[str], numbers: NDArray[np.intp]) -> None:
        """Compare windows of one size, shape (windows, size, d)."""
        windows, size = units.shape[:2]
        cosines = units @ pivot_units.transpose(0, 2, 1)
        diagonal = cosines.reshape(windows, -1)[:, :: size + 1]
        own = diagonal.copy()
        diagonal[:] = 0
        self._others += (windows * size * (size - 1), cosines.sum(dtype=np.float64), np.vdot(cosines, cosines))
        diagonal[:] = _OUT
        other, other_back = cosines.max(axis=2), cosines.max(axis=1)
        self._best.add(np.maximum(own, other))
        self._gaps.add(_gap(cosines, own, other))
        margins = own - np.minimum(other, other_back)
        for window in np.flatnonzero((margins < 0).any(axis=1)):
            rows = np.flatnonzero(margins[window] < 0)
            sides = (units[window], pivot_units[window])
            # As near to the pair's own text as a translation usually is.
            alike = np.any([side[rows] @ side.T > self._best.median for side in sides], axis=0)
            there = np.where(alike, _OUT, cosines[window, rows])
            back = np.where(alike, _OUT, cosines[window, :, rows])
            margins[window, rows] = own[window, rows] - np.minimum(there.max(axis=1), back.max(axis=1))
            first = int(window) * size
            for row, fit in zip(rows, there.argmax(axis=1), strict=True):
                margin = float(margins[window, row])
                if margin < 0:
                    suspect = Suspect(places[numbers[first + row]], places[numbers[first + fit]], margin)
                    self._suspects.append((margin, self._margins.total + first + int(row), suspect))
            self._suspects = sorted(self._suspects)[:_WORST]
        self._margins.add(margins)

    def result(self) -> Alignment:
        """What was found so far."""
        number, total, squares = self._others
        spread = float(np.sqrt(max(squares / number - (total / number) ** 2, 0.0))) if number else 0.0
        sharpness = self._gaps.median / spread if spread else 0.0
        if sharpness < SHARP:
            return Alignment(self._margins.total, sharpness, False, 0, ())
        count, limit = self._margins.below(-_CLEARLY * self._gaps.median)
        found = sorted((number, suspect) for _, number, suspect in self._suspects if suspect.margin < limit)
        return Alignment(self._margins.total, sharpness, True, count, tuple(suspect for _, suspect in found))


def _gap(cosines: Units, own: Units, other: Units) -> Units:
    """The distance between the best and the second best match of each row.

    Args:
        cosines: shape (windows, size, size), the pairs' own taken out.
        own: the pairs' own cosines, shape (windows, size).
        other: the best of the others, shape (windows, size).
    """
    gaps: Units = own - other
    # Where the pair is not the nearest, another of the window may be the second.
    beaten = gaps < 0
    if beaten.any():
        second = np.partition(cosines[beaten], -2, axis=1)[:, -2]
        gaps[beaten] = other[beaten] - np.maximum(own[beaten], second)
    return gaps
