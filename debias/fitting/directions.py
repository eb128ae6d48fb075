"""The directions that means of queries span: what a gamma takes out of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError

# Directions matter whose singular value is above this share of the first; below the second it is rounding.
_MATTERS, _ROUNDING = 1 / 40, 1e-6


def spanned_directions(means: NDArray[np.float64]) -> int:
    """How many directions means span, shape (languages, d): their rank, but for rounding."""
    return _spanned(np.linalg.svd(means, compute_uv=False))


def _spanned(sizes: NDArray[np.floating[Any]]) -> int:
    return int((sizes > _ROUNDING * sizes[0]).sum())


def principal_directions(means: NDArray[np.float64], rank: int | None = None) -> NDArray[np.float32]:
    """The first right singular vectors of means, which are not centred: B of ``CommonStep``.

    Args:
        means: of queries in each language, shape (languages, d), float64.
        rank: how many, k; None for those whose singular value is above a fortieth of the first.

    Returns:
        Orthonormal rows, the most dominant first, shape (k, d), float32.

    Raises:
        UsageError: the means span fewer directions than were asked for.
    """
    _, sizes, rows = np.linalg.svd(means, full_matrices=False)
    spanned = _spanned(sizes)
    if rank is not None and rank > spanned:
        languages, dimension = means.shape
        raise UsageError(
            f"{rank} directions were asked for, but the means of queries in {languages} languages and {dimension} "
            f"dimensions span only {spanned}: ask for no more, or fit more languages, with texts that differ."
        )
    return signed(rows[: int((sizes > _MATTERS * sizes[0]).sum()) if rank is None else rank])


def signed(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """Singular vectors, whose sign is arbitrary: each one's largest component is made positive."""
    signs: NDArray[np.float64] = np.sign(np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1))
    return (rows * signs).astype(np.float32)
