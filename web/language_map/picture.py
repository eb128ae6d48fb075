"""Vectors as points of a plane: the two directions in which they differ most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class Axes(NamedTuple):
    """The plane of a picture.

    Attributes:
        centre: mean of the vectors it was fitted on, shape (dimension,).
        directions: of unit length and at right angles, shape (2, dimension); zeros where the vectors have less.
        share: of the vectors' variance that each direction holds, 0 to 1.
    """

    centre: Matrix
    directions: Matrix
    share: tuple[float, float]


def fit(vectors: Matrix) -> Axes:
    """The first two principal components, by a singular value decomposition.

    The sign of each is such that its largest component is above 0, so that the same vectors give the same picture.

    Args:
        vectors: shape (n, dimension), at least one.
    """
    centre = vectors.mean(axis=0)
    _, lengths, directions = np.linalg.svd(vectors - centre, full_matrices=False)
    found, held = np.zeros((2, vectors.shape[1])), [0.0, 0.0]
    total = float((lengths**2).sum())
    # What is left of rounding is no direction.
    real = lengths > np.finfo(np.float64).eps * max(vectors.shape) * max(1.0, float(lengths[0]))
    for place, (length, direction) in enumerate(zip(lengths[real][:2], directions[real][:2], strict=True)):
        found[place] = direction * np.sign(direction[np.abs(direction).argmax()])
        held[place] = float(length**2) / total
    return Axes(centre, found, (held[0], held[1]))


def placed(vectors: Matrix, axes: Axes) -> Matrix:
    """Where vectors lie in the plane, shape (n, 2)."""
    made: Matrix = (vectors - axes.centre) @ axes.directions.T
    return made
