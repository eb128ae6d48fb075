"""Language-wise centering (Libovický et al., 2020), as Shift's Appendix C.1 compares it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def centre(vectors: NDArray[np.float32], means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the language's mean embedding: ``x̃ = x − μ_ℓ`` (Shift, Appendix C.1).

    Args:
        vectors: embeddings of queries or documents, shape (n, d), float32.
        means: each one's language mean μ_ℓ, shape (n, d), float32; zeros leave a row as it is.

    Returns:
        Shape (n, d), float32.
    """
    centred: NDArray[np.float32] = (vectors.astype(np.float64) - means.astype(np.float64)).astype(np.float32)
    return centred
