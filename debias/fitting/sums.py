"""Sums over rows, as fast as memory and as exact as float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# So many rows are added up in float32 before float64 takes over: an error of 1e-7, at BLAS's speed.
_RUN = 64
_ONES = np.ones((1, _RUN), np.float32)


def column_sums(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """The sum of all rows; not finite where one of them is not.

    Args:
        rows: shape (n, d), float32.

    Returns:
        Shape (d,), float64.
    """
    runs = len(rows) // _RUN
    with np.errstate(invalid="ignore", over="ignore"):
        rest: NDArray[np.float64] = rows[runs * _RUN :].sum(axis=0, dtype=np.float64)
        if runs:
            blocks = rows[: runs * _RUN].reshape(runs, _RUN, rows.shape[1])
            rest += np.matmul(_ONES, blocks)[:, 0].sum(axis=0, dtype=np.float64)
    return rest


def row_norms(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The Euclidean norm of each row: shape (n,), float32."""
    norms: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def unit_rows(rows: NDArray[np.float32], centre: NDArray[np.float64]) -> NDArray[np.float32]:
    """Rows without their centre, of norm 1; a row that is the centre becomes zero.

    Args:
        rows: shape (n, d), float32.
        centre: shape (d,), float64.

    Returns:
        Shape (n, d), float32, a new array.
    """
    centred: NDArray[np.float32] = rows - centre.astype(np.float32)
    centred /= np.maximum(row_norms(centred), np.finfo(np.float32).tiny)[:, np.newaxis]
    return centred
