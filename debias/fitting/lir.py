"""Language information removal (Yang et al., 2021), as Shift's Appendix C.1 compares it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def remove_directions(
    vectors: NDArray[np.float32], directions: NDArray[np.float32], alpha: float = 1.0
) -> NDArray[np.float32]:
    """Remove a language's principal directions: ``x̃ = x − α V_r V_rᵀ x`` (Shift, Appendix C.1, with α 1).

    Args:
        vectors: embeddings of one language, shape (n, d), float32.
        directions: orthonormal rows V_rᵀ, shape (r, d), float32.
        alpha: scale, 0 (nothing changes, bit for bit) to 1 (what is left is orthogonal to every direction).

    Returns:
        Shape (n, d), float32, a new array.
    """
    made: NDArray[np.float32] = vectors.copy()
    if alpha:
        rows, basis = vectors.astype(np.float64), directions.astype(np.float64)
        made = (rows - alpha * ((rows @ basis.T) @ basis)).astype(np.float32)
    return made


class SecondMoment:
    """The sum ``XᵀX`` over all embeddings of a language, in memory O(d²) whatever their number.

    Its eigenvectors are the right-singular vectors of X, the embeddings stacked, which need not be kept for it. As in
    Yang et al., X is not centred: the first direction is near the mean embedding's.
    """

    def __init__(self, dimension: int) -> None:
        self._sum = np.zeros((dimension, dimension), np.float64)

    def add(self, rows: NDArray[np.float32]) -> None:
        """Add embeddings, shape (n, d), float32; n is what is raised to 64 bits at once."""
        raised = rows.astype(np.float64)
        self._sum += raised.T @ raised

    def directions(self, rank: int = 1) -> NDArray[np.float32]:
        """The principal directions ``V_rᵀ`` of what was added: top right-singular vectors (Shift, Appendix C.1).

        Args:
            rank: how many, r; at most as many as embeddings were added.

        Returns:
            Orthonormal rows, the most dominant first, shape (r, d), float32. A singular vector's sign is arbitrary:
            its largest component is made positive.
        """
        _, vectors = np.linalg.eigh(self._sum)
        top = vectors[:, ::-1][:, :rank].T
        largest = np.take_along_axis(top, np.abs(top).argmax(axis=1, keepdims=True), axis=1)
        directions: NDArray[np.float32] = (top * np.sign(largest)).astype(np.float32)
        return directions
