"""Given vectors: found sound before anybody computes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError


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
        UsageError: a vector that is neither finite throughout nor NaN throughout.
    """
    # The sum, which one pass gives without another array, is finite only where all is; it may overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(block, np.float32)
        if np.isfinite(vectors.sum()):
            return vectors
    unsound = ~np.isfinite(vectors).all(axis=1) & ~np.isnan(vectors).all(axis=1)
    if unsound.any():
        place = places[int(unsound.argmax())]
        raise UsageError(f"{shown}, {place}: the vector in {tag} holds a value that is not a finite number.")
    return vectors


def spread(vectors: NDArray[np.float32], there: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The m vectors in the m of n rows that are ``there``, and NaN in the others: (n, d)."""
    if there.all():
        return vectors
    rows = np.full((len(there), vectors.shape[1]), np.nan, np.float32)
    rows[there] = vectors
    return rows
