"""Language-wise centering (Libovický et al., 2020), as Shift's Appendix C.1 compares it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from langshift.debias.shift import shift


def centre(vectors: NDArray[np.float32], mean: NDArray[np.float32], alpha: float = 1.0) -> NDArray[np.float32]:
    """Subtract the language's mean embedding: ``x̃ = x − α μ_ℓ`` (Shift, Appendix C.1, with α 1).

    Args:
        vectors: embeddings of queries or documents of one language, shape (n, d), float32.
        mean: the language's mean embedding μ_ℓ, shape (d,), float32.
        alpha: scale, 0 (nothing changes, bit for bit) to 1.

    Returns:
        Shape (n, d), float32, a new array.
    """
    return shift(vectors, mean, alpha)
