"""A linear map of each language onto the pivot's space, learnt on parallel text: one step past the shift."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def map_affine(
    vectors: NDArray[np.float32],
    mean: NDArray[np.float32],
    map_: NDArray[np.float32],
    pivot_mean: NDArray[np.float32],
    alpha: float = 1.0,
) -> NDArray[np.float32]:
    """Map documents of one language: ``z̃ = z + α ((z − μ_ℓ) W_ℓ + μ_pivot − z)``.

    With W_ℓ the identity this is the shift, since V_ℓ = μ_ℓ − μ_pivot over the same pairs.

    Args:
        vectors: document embeddings of one language, shape (n, d), float32.
        mean: the language's mean embedding μ_ℓ over the pairs, shape (d,), float32.
        map_: W_ℓ, shape (d, d), float32.
        pivot_mean: the pivot's mean embedding over the same pairs, shape (d,), float32.
        alpha: scale, 0 (nothing moves, bit for bit) to 1.

    Returns:
        Shape (n, d), float32.
    """
    made: NDArray[np.float32] = vectors.copy()
    if alpha:
        rows = vectors.astype(np.float64)
        mapped = (rows - mean.astype(np.float64)) @ map_.astype(np.float64) + pivot_mean.astype(np.float64)
        made = (rows + alpha * (mapped - rows)).astype(np.float32)
    return made
