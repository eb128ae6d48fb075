"""How far a language vector can be trusted, from the sums of blocks of its pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HALVINGS = 200
_SEED = 20_260_213
# The expected cosine with the true vector from which on more pairs would change little.
ENOUGH = 0.95
_LONGEST_CURVE = 10_000_000


@dataclass(frozen=True)
class Reliability:
    """What the pairs say about the vector that is their mean.

    Attributes:
        split_half: mean cosine between the vectors of two halves of the pairs, over 200 random halvings.
        low: their 2.5th percentile.
        high: their 97.5th percentile.
        noise: expected length of the vector's error.
        cosine: expected cosine between the vector and the true one.
        enough: how many pairs would bring that cosine to .95; None where no number would.
        curve: pairs and the cosine expected from so many, in steps 1, 2, 5, 10, …
    """

    split_half: float
    low: float
    high: float
    noise: float
    cosine: float
    enough: int | None
    curve: tuple[tuple[int, float], ...]


def reliability(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> Reliability:
    """Judge a mean of differences by the spread of its blocks.

    The mean of N pairs is taken as V + e, with the true vector V and an error e whose squared length is
    σ²/N on average and which is nearly orthogonal to V, as random directions are in many dimensions.
    σ² comes from the blocks' means m_b of n_b pairs: ``σ² = Σ_b n_b |m_b − m|² / (blocks − 1)``, so that
    the likeness of neighbouring pairs counts; ``|V|² = |m|² − σ²/N``; and the cosine that n pairs would
    give is expected to be ``|V| / √(|V|² + σ²/n)``.

    Args:
        sums: each block's sum of differences, shape (blocks, d), float64; two blocks at least.
        counts: how many pairs each block holds, shape (blocks,).
    """
    pairs = int(counts.sum())
    mean = sums.sum(axis=0) / pairs
    spread = np.square(sums / counts[:, np.newaxis] - mean).sum(axis=1)
    variance = float((counts * spread).sum() / (len(counts) - 1))
    signal = max(float(mean @ mean) - variance / pairs, 0.0)
    halves = _split_half(sums, counts)
    low, high = np.percentile(halves, [2.5, 97.5])
    enough = None
    if signal:
        enough = max(2, int(np.ceil(variance / signal * ENOUGH**2 / (1 - ENOUGH**2))))
    return Reliability(
        float(halves.mean()), float(low), float(high),
        noise=float(np.sqrt(variance / pairs)),
        cosine=_expected(signal, variance, pairs),
        enough=enough,
        curve=_curve(signal, variance, max(pairs, enough or 0)),
    )  # fmt: skip


def _split_half(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cosines between the means of two random halves of the blocks, shape (halvings,), float64."""
    rng = np.random.default_rng(_SEED)
    half = np.tile(np.arange(len(counts)) < len(counts) // 2, (HALVINGS, 1))
    first = rng.permuted(half, axis=1).astype(np.float64)
    one, other = first @ sums, (1 - first) @ sums
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    products: NDArray[np.float64] = np.einsum("ij,ij->i", one, other)
    cosines: NDArray[np.float64] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return cosines


def _expected(signal: float, variance: float, pairs: int) -> float:
    return float(np.sqrt(signal / (signal + variance / pairs))) if signal else 0.0


def _curve(signal: float, variance: float, pairs: int) -> tuple[tuple[int, float], ...]:
    """The steps up to the first that reaches so many pairs."""
    points: list[tuple[int, float]] = []
    steps = (factor * 10**power for power in range(8) for factor in (1, 2, 5))
    for step in steps:
        points.append((step, _expected(signal, variance, step)))
        if step >= min(pairs, _LONGEST_CURVE):
            break
    return tuple(points)
