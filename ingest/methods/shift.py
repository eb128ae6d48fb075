"""Shift: subtract the language vector, scaled by alpha, from a document."""

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
        The shifted vectors, shape (n, d), float32, not normalised again: ``unshift`` gives z back.
    """
    return _moved(vectors, offsets, -alphas)


def unshift(
    vectors: NDArray[np.float32], offsets: NDArray[np.float32], alphas: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Take a shift back: ``z = z̃ + α V_ℓ``, the inverse of ``shift`` with the same arguments.

    Returns:
        The vectors before the shift, shape (n, d), float32, exact up to rounding.
    """
    return _moved(vectors, offsets, alphas)


def _moved(
    vectors: NDArray[np.float32], offsets: NDArray[np.float32], factors: NDArray[np.float64]
) -> NDArray[np.float32]:
    made: NDArray[np.float32] = vectors.copy()
    moved = factors != 0
    step = factors[moved, np.newaxis] * offsets[moved].astype(np.float64)
    made[moved] = (vectors[moved].astype(np.float64) + step).astype(np.float32)
    return made


def expected_offsets(posteriors: NDArray[np.float64], offsets: NDArray[np.float32]) -> NDArray[np.float32]:
    """Language vectors under an uncertain detector: ``V = Σ_ℓ p(ℓ) V_ℓ``, what a soft shift subtracts.

    Args:
        posteriors: p(ℓ) of each document, shape (n, languages), float64; what is missing to 1 in a row (the
            pivot language, languages without a vector) moves nothing.
        offsets: V_ℓ, shape (languages, d), float32.

    Returns:
        Shape (n, d), float32; a row with one posterior of 1 is that language's vector, bit for bit.
    """
    expected: NDArray[np.float32] = (posteriors @ offsets.astype(np.float64)).astype(np.float32)
    return expected


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
