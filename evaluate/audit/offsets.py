"""Whether what a shift takes from documents of a language is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

_SURE = 1.96
_ROUNDING = 1e-6


class Interval(NamedTuple):
    """A figure with its 95 % interval, as far as the choice of documents and queries leaves it open."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """How what a shift takes from documents of a language compares with how they lie.

    Attributes:
        cosine: between what is taken and the offset: the mean of the language's vectors less the mean of the
            reference's.
        there: how far the offset reaches in the direction of what is taken, as a share of its length: at 1, just
            what is taken is there; below .5 the means lie further apart after the shift than before.
    """

    cosine: float
    there: Interval


def taken_share(raw: Matrix, moved: Matrix) -> float:
    """How long what a shift takes is beside the vector that it is taken from: median over documents.

    Args:
        raw: vectors, shape (n, d), float32.
        moved: the same after the shift.
    """
    before = raw.astype(np.float64)
    return float(np.median(np.linalg.norm(before - moved, axis=1) / np.linalg.norm(before, axis=1)))


def fit(raw: Matrix, moved: Matrix, reference: Matrix, reference_moved: Matrix) -> Fit | None:
    """Compare what a shift takes from documents of a language with the offset that they have.

    Args:
        raw: their vectors, shape (n, d), float32.
        moved: the same after the shift.
        reference: vectors of the documents beside which they are seen, shape (m, d), float32.
        reference_moved: the same after the shift.

    Returns:
        The fit; None where nothing is taken.
    """
    before, other = raw.astype(np.float64), reference.astype(np.float64)
    step = (before - moved).mean(axis=0) - (other - reference_moved).mean(axis=0)
    length = float(np.linalg.norm(step))
    # What rounding leaves is no step.
    if length < _ROUNDING * float(np.linalg.norm(before, axis=1).mean()):
        return None
    offset = before.mean(axis=0) - other.mean(axis=0)
    along, other_along = before @ step / length**2, other @ step / length**2
    there = float(along.mean() - other_along.mean())
    error = _SURE * float(np.sqrt(along.var(ddof=1) / len(along) + other_along.var(ddof=1) / len(other_along)))
    cosine = float(offset @ step) / max(length * float(np.linalg.norm(offset)), np.finfo(np.float64).tiny)
    return Fit(cosine, Interval(there, there - error, there + error))
