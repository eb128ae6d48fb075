"""A linear map of each language onto the pivot's space, learnt on parallel text: one step past the shift."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.ridge import Moments, Ridge

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


class AffineFit(NamedTuple):
    """A fitted map.

    Attributes:
        map_: W_ℓ, shape (d, d), float32; exactly the identity where no map does surely better than the shift.
        strength: λ in mean squared norms of the language's embeddings, one of ``STRENGTHS``.
        gain: how much further than after the shift a translation stands above strangers, in cosine, on pairs held
            out.
        mean: μ_ℓ over the pairs, shape (d,), float32.
        pivot_mean: μ_pivot over the same pairs, shape (d,), float32.
    """

    map_: NDArray[np.float32]
    strength: float
    gain: float
    mean: NDArray[np.float32]
    pivot_mean: NDArray[np.float32]


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

    def fit(self) -> AffineFit:
        """The map by ridge regression toward the identity, its strength by cross-validation.

        The strength is the one with the greatest margin on held-out pairs (``Ridge.margins``), unless the shift's is
        within one standard error of it: where no map surely helps, it is the identity, and ``affine`` is the shift. At
        a given strength, the map does not depend on the order of the pairs; the strength does as far as neighbours go,
        which are held out together.
        """
        pairs = reduce(Moments.with_, self._folds)
        penalties = STRENGTHS * (pairs.square or 1.0)
        chosen, gain = self._choose(pairs, penalties)
        ridge = Ridge.of(pairs)
        return AffineFit(
            ridge.map_(penalties[chosen]).astype(np.float32),
            float(STRENGTHS[chosen]),
            gain,
            ridge.mean.astype(np.float32),
            ridge.pivot_mean.astype(np.float32),
        )

    def _choose(self, pairs: Moments, penalties: NDArray[np.float64]) -> tuple[int, float]:
        """Which strength, and what it gains over the shift."""
        if min(fold.count for fold in self._folds) < 2:
            return len(penalties) - 1, 0.0
        found = np.array([Ridge.of(pairs.without(fold)).margins(fold, penalties) for fold in self._folds])
        best = int(found.mean(axis=0).argmax())
        lost = found[:, best] - found[:, -1]
        sure = lost.mean() > lost.std(ddof=1) / np.sqrt(len(lost))
        chosen = best if sure else len(penalties) - 1
        return chosen, float((found[:, chosen] - found[:, -1]).mean())
