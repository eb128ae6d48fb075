"""Language information removal (Yang et al., 2021), as Shift's Appendix C.1 compares it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def remove_directions(vectors: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Remove a language's principal directions: ``x̃ = x − V_r V_rᵀ x`` (Shift, Appendix C.1).

    Args:
        vectors: embeddings of one language, shape (n, d), float32.
        directions: orthonormal rows V_rᵀ, shape (r, d), float32.

    Returns:
        Shape (n, d), float32, orthogonal to every direction.
    """
    rows, basis = vectors.astype(np.float64), directions.astype(np.float64)
    removed: NDArray[np.float32] = (rows - (rows @ basis.T) @ basis).astype(np.float32)
    return removed
