"""The linear maps of affine and LIR, fitted from sums over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.directions import signed


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
        return signed(vectors[:, ::-1][:, :rank].T)


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

    def with_(self, other: Moments, sign: int = 1) -> Moments:
        """The sums over these pairs and others; with the sign -1 over these without the others."""
        sums = zip(vars(self).values(), vars(other).values(), strict=True)
        return Moments(*(mine + sign * more for mine, more in sums))

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


class Ridge:
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

    def __init__(self, pairs: Moments) -> None:
        """Solve it for some pairs, at least one."""
        self.mean, self.pivot_mean = pairs.mean, pairs.pivot_mean
        gram = pairs.gram - np.outer(pairs.total, self.mean)
        values, self.basis = np.linalg.eigh(gram)
        self.eigenvalues = np.maximum(values, 0.0)
        self.pull = self.basis.T @ (pairs.cross - np.outer(pairs.total, self.pivot_mean) - gram)

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


# Tried strengths: λ in mean squared norms of the language's embeddings, so that embeddings of norm 1 and 50 get the
# same map; half powers of ten, since what is held out tells no finer ones apart. Below 10, maps lost in retrieval
# however many pairs there were. Without end, the map is the identity: the shift.
STRENGTHS = np.append(10.0 ** np.arange(1, 8.5, 0.5), np.inf)
# Neighbouring pairs are alike, so that folds are made of runs of them. Runs begin with one pair, that few pairs fill
# all folds, and double up to this length.
_LONGEST_RUN = 512


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
        Shape (n, d), float32, a new array.
    """
    made: NDArray[np.float32] = vectors.copy()
    if alpha:
        rows = vectors.astype(np.float64)
        mapped = (rows - mean.astype(np.float64)) @ map_.astype(np.float64) + pivot_mean.astype(np.float64)
        made = (rows + alpha * (mapped - rows)).astype(np.float32)
    return made


class PairMoments:
    """What ``affine`` needs of a language's pairs, fold by fold: 16 · folds · d² bytes, whatever their number.

    That is 84 MB for each language at 1,024 dimensions and five folds.
    """

    def __init__(self, dimension: int, folds: int = 5) -> None:
        self._folds = [Moments.nothing(dimension) for _ in range(folds)]
        self._run, self._room = 0, 1

    def add(self, rows: NDArray[np.float32], pivot_rows: NDArray[np.float32]) -> None:
        """Add pairs in the order of the text.

        Args:
            rows: the language's embeddings, shape (n, d), float32.
            pivot_rows: the pivot's embeddings of the same pairs, shape (n, d), float32.
        """
        done = 0
        while done < len(rows):
            fold, part = self._run % len(self._folds), slice(done, done + self._room)
            self._folds[fold].add(rows[part], pivot_rows[part])
            taken = len(rows[part])
            done, self._room = done + taken, self._room - taken
            if not self._room:
                self._run += 1
                self._room = min(2 ** (self._run // len(self._folds)), _LONGEST_RUN)

    def fit(self) -> NDArray[np.float32]:
        """The map by ridge regression toward the identity, its strength by cross-validation.

        At a given strength, the map does not depend on the order of the pairs; the strength does as far as neighbours
        go, which are held out together.

        Returns:
            W_ℓ, shape (d, d); exactly the identity where no map does surely better than the shift.
        """
        pairs = reduce(Moments.with_, self._folds)
        strength, _ = self.choose_strength()
        return Ridge(pairs).map_(strength * (pairs.square or 1.0)).astype(np.float32)

    def choose_strength(self) -> tuple[float, float]:
        """The strength with the greatest margin on held-out pairs (``Ridge.margins``), and what it gains.

        Where the shift's margin is within one standard error of it, no map surely helps: the strength is without end,
        the map is the identity, and ``affine`` is the shift.

        Returns:
            λ in mean squared norms of the language's embeddings, one of ``STRENGTHS``; and how much further than after
            the shift a translation stands above strangers, in cosine, on pairs held out.
        """
        if min(fold.count for fold in self._folds) < 2:
            return np.inf, 0.0
        pairs = reduce(Moments.with_, self._folds)
        penalties = STRENGTHS * (pairs.square or 1.0)
        found = np.array([Ridge(pairs.with_(fold, -1)).margins(fold, penalties) for fold in self._folds])
        best = int(found.mean(axis=0).argmax())
        lost = found[:, best] - found[:, -1]
        sure = lost.mean() > lost.std(ddof=1) / np.sqrt(len(lost))
        chosen = best if sure else -1
        return float(STRENGTHS[chosen]), float((found[:, chosen] - found[:, -1]).mean())
