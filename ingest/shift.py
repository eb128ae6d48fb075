"""The shift itself: pure functions, arrays in and arrays out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shift(
    vectors: NDArray[np.float32], offsets: NDArray[np.float32], alphas: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Move documents into the pivot language's space: ``z̃ = z − α V_ℓ`` (Shift, Algorithm 1, line 8).

    Args:
        vectors: document embeddings z, shape (n, d), float32.
        offsets: each document's language vector V_ℓ, shape (n, d), float32.
        alphas: each document's scale α, shape (n,), float64; rows with 0 come back bit for bit.

    Returns:
        The shifted vectors, shape (n, d), float32, not normalised again: adding α V_ℓ gives z back.
    """
    shifted: NDArray[np.float32] = vectors.copy()
    moved = alphas != 0
    step = alphas[moved, np.newaxis] * offsets[moved].astype(np.float64)
    shifted[moved] = (vectors[moved].astype(np.float64) - step).astype(np.float32)
    return shifted


def mean_difference(total: NDArray[np.float64], pairs: int) -> NDArray[np.float32]:
    """A language vector from a running sum: ``V_ℓ = 1/N Σ (z_i^ℓ − z_i^pivot)`` (Shift, Eq. 1).

    Args:
        total: sum of the differences over all pairs, shape (d,), float64.
        pairs: N, at least 1.

    Returns:
        V_ℓ, shape (d,), float32.
    """
    vector: NDArray[np.float32] = (total / pairs).astype(np.float32)
    return vector
