"""Ridge regression toward the identity from sums over pairs, and how well its map does on pairs held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_TINY = np.finfo(np.float64).tiny
# Below this share of the squares, what is left after the means is rounding.
_ALIKE = 1e-9


@dataclass
class Moments:
    """Sums over pairs (x, y) of a language's and the pivot's embedding.

    Attributes:
        count: how many pairs.
        total: Σ x, shape (d,).
        pivot_total: Σ y, shape (d,).
        gram: Σ x xᵀ, shape (d, d).
        cross: Σ x yᵀ, shape (d, d).
        pivot_squares: Σ ‖y‖².
    """

    count: int
    total: Array
    pivot_total: Array
    gram: Array
    cross: Array
    pivot_squares: float

    @classmethod
    def nothing(cls, dimension: int) -> Moments:
        """Sums over no pair."""
        square = (dimension, dimension)
        return cls(0, np.zeros(dimension), np.zeros(dimension), np.zeros(square), np.zeros(square), 0.0)

    def add(self, rows: NDArray[np.float32], pivot_rows: NDArray[np.float32]) -> None:
        """Add pairs, shape (n, d) each."""
        x, y = rows.astype(np.float64), pivot_rows.astype(np.float64)
        self.count += len(x)
        self.total += x.sum(axis=0)
        self.pivot_total += y.sum(axis=0)
        self.gram += x.T @ x
        self.cross += x.T @ y
        self.pivot_squares += float(np.vdot(y, y))

    def with_(self, other: Moments) -> Moments:
        """The sums over these pairs and others."""
        return self._and(other, 1)

    def without(self, part: Moments) -> Moments:
        """The sums over the rest of these pairs, where ``part`` are the sums over some of them."""
        return self._and(part, -1)

    def _and(self, other: Moments, sign: int) -> Moments:
        return Moments(
            self.count + sign * other.count,
            self.total + sign * other.total,
            self.pivot_total + sign * other.pivot_total,
            self.gram + sign * other.gram,
            self.cross + sign * other.cross,
            self.pivot_squares + sign * other.pivot_squares,
        )

    @property
    def mean(self) -> Array:
        """μ_ℓ, shape (d,)."""
        return self.total / self.count

    @property
    def pivot_mean(self) -> Array:
        """μ_pivot, shape (d,)."""
        return self.pivot_total / self.count

    @property
    def square(self) -> float:
        """The mean squared norm of the language's embeddings: 1 where they are normalised."""
        return float(np.trace(self.gram)) / self.count


class Ridge(NamedTuple):
    """All solutions ``W(λ) = I + Q (Λ + λ)⁻¹ B`` of a ridge regression toward the identity, from one eigenproblem.

    ``‖(X − μ_ℓ) W − (Y − μ_pivot)‖² + λ ‖W − I‖²`` is least at ``W = I + (G + λI)⁻¹ (C − G)``, with G and C the centred
    second moments ``XᵀX`` and ``XᵀY``; ``G = Q Λ Qᵀ`` and ``B = Qᵀ (C − G)``.

    Attributes:
        mean: μ_ℓ, shape (d,).
        pivot_mean: μ_pivot, shape (d,).
        eigenvalues: Λ, shape (d,).
        basis: Q, shape (d, d).
        pull: B, shape (d, d).
    """

    mean: Array
    pivot_mean: Array
    eigenvalues: Array
    basis: Array
    pull: Array

    @classmethod
    def of(cls, pairs: Moments) -> Ridge:
        """Solve it for some pairs, at least one."""
        mean, pivot_mean = pairs.mean, pairs.pivot_mean
        gram = pairs.gram - np.outer(pairs.total, mean)
        values, basis = np.linalg.eigh(gram)
        pull = basis.T @ (pairs.cross - np.outer(pairs.total, pivot_mean) - gram)
        return cls(mean, pivot_mean, np.maximum(values, 0.0), basis, pull)

    def weights(self, penalties: Array) -> Array:
        """The diagonal of ``(Λ + λ)⁻¹`` for each λ, shape (penalties, d); zeros, W = I, for an infinite one."""
        weights: Array = 1 / np.maximum(self.eigenvalues + penalties[:, np.newaxis], _TINY)
        return weights

    def map_(self, penalty: float) -> Array:
        """W(λ), shape (d, d)."""
        (weights,) = self.weights(np.array([penalty]))
        made: Array = np.eye(len(weights)) + self.basis @ (weights[:, np.newaxis] * self.pull)
        return made

    def margins(self, held: Moments, penalties: Array) -> Array:
        """How far a translation stands above strangers in cosine, for pairs that were held out.

        ``c·Cov / √((c²·V + ‖m‖²) · E‖y‖²)``, with ``z̃ = (x − μ_ℓ) W(λ) + μ_pivot``, Cov the covariance of z̃ and y
        summed over the axes, V the variance of z̃, m its mean, and ``c = min(1, √(V_y / V))``. A map that shrinks z̃
        toward μ_pivot, as the least squared error does more and more the more pairs there are, brings every text near
        every other, and loses; one that only makes distances longer than the pivot's gains nothing by it.

        Args:
            held: sums over the pairs held out, two at least.
            penalties: each λ.

        Returns:
            Shape (penalties,).
        """
        weights, count = self.weights(penalties), held.count
        # With D = W − I = Q diag(w) B, all that is asked for is a polynomial in the weights w.
        spread = held.gram - np.outer(held.total, held.mean)
        turned = self.basis.T @ spread
        quadratic = (turned @ self.basis) * (self.pull @ self.pull.T)
        variance = np.trace(spread) + 2 * weights @ _row_dots(self.pull, turned)
        variance = np.maximum(variance + _row_dots(weights @ quadratic, weights), 0.0) / count
        cross = held.cross - np.outer(held.total, held.pivot_mean)
        covariance = (np.trace(cross) + weights @ _row_dots(self.pull, self.basis.T @ cross)) / count
        apart = held.mean - self.mean
        means = self.pivot_mean + apart + (weights * (apart @ self.basis)) @ self.pull
        pivot_square = held.pivot_squares / count
        pivot_variance = max(pivot_square - float(held.pivot_mean @ held.pivot_mean), 0.0)
        longer = np.sqrt(np.maximum(variance, pivot_variance))
        shrunk = np.divide(np.sqrt(pivot_variance), longer, out=np.ones(len(longer)), where=longer > 0)
        norms = np.sqrt((shrunk**2 * variance + _row_dots(means, means)) * pivot_square)
        # Texts that are all alike stand above nothing.
        differ = variance > _ALIKE * np.maximum(pivot_square, norms)
        found: Array = np.divide(shrunk * covariance, norms, out=np.zeros(len(norms)), where=differ)
        return found


def _row_dots(left: Array, right: Array) -> Array:
    dots: Array = np.einsum("ij,ij->i", left, right)
    return dots
