"""Shift: subtract the language vector, scaled by alpha, from a document."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shift(vectors: NDArray[np.float32], offset: NDArray[np.float32], alpha: float = 1.0) -> NDArray[np.float32]:
    """Move documents of one language into the pivot's space: ``z̃ = z − α V_ℓ`` (Shift, Algorithm 1, line 8).

    The same with ``−alpha`` takes it back, up to rounding: nothing is normalised.

    Args:
        vectors: document embeddings z of one language, shape (n, d), float32.
        offset: the language vector V_ℓ, shape (d,), float32.
        alpha: scale α; with 0 nothing moves, bit for bit.

    Returns:
        Shape (n, d), float32, a new array.
    """
    made: NDArray[np.float32] = vectors.copy()
    if alpha:
        made = (vectors.astype(np.float64) - alpha * offset.astype(np.float64)).astype(np.float32)
    return made


def soft_shift(
    vectors: NDArray[np.float32], weights: NDArray[np.float64], offsets: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Move documents of uncertain language: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ``.

    Args:
        vectors: document embeddings z, shape (n, d), float32.
        weights: p(ℓ) α_ℓ of each document, shape (n, languages), float64; the posterior of the pivot language, and of
            languages without a vector, is left out: it moves nothing.
        offsets: V_ℓ, shape (languages, d), float32.

    Returns:
        Shape (n, d), float32, a new array. A row with one weight is what ``shift`` gives with that alpha, and a row
        without any what it was, both bit for bit.
    """
    made: NDArray[np.float32] = vectors.copy()
    moved = weights.any(axis=1)
    step = weights[moved] @ offsets.astype(np.float64)
    made[moved] = (vectors[moved].astype(np.float64) - step).astype(np.float32)
    return made


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
