"""Given vectors: found sound before anybody computes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError

# Squares of longer ones, and sums of these, would soon be too large for float32.
LONGEST = 1e15


def sound(block: NDArray[Any], places: Sequence[str], tag: str, shown: str) -> NDArray[np.float32]:
    """The vectors of a batch as float32; without a copy where they are that already.

    Args:
        block: (n, d), of numbers; a row of NaN where there is none.
        places: names the n rows.
        tag: the language.
        shown: names the file.

    Returns:
        (n, d) float32.

    Raises:
        UsageError: a vector that is neither finite throughout nor NaN throughout, or too long.
    """
    # The sum of squares, which one pass gives without another array, is small only where all is finite.
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(block, np.float32)
        if np.vdot(vectors, vectors) < LONGEST**2:
            return vectors
    unsound = ~np.isfinite(vectors).all(axis=1) & ~np.isnan(vectors).all(axis=1)
    if unsound.any():
        place = places[int(unsound.argmax())]
        raise UsageError(f"{shown}, {place}: the vector in {tag} holds a value that is not a finite number.")
    long = np.linalg.norm(vectors.astype(np.float64), axis=1) > LONGEST
    if long.any():
        raise UsageError(
            f"{shown}, {places[int(long.argmax())]}: the vector in {tag} is longer than {LONGEST:.0e}; "
            "it is damaged, or scale all vectors down."
        )
    return vectors


def spread(vectors: NDArray[np.float32], there: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The m vectors in the m of n rows that are ``there``, and NaN in the others: (n, d)."""
    if there.all():
        return vectors
    rows = np.full((len(there), vectors.shape[1]), np.nan, np.float32)
    rows[there] = vectors
    return rows
