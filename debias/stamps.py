"""What a stamp says was done to a vector, in NumPy: taken back, and done again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Vectors = Mapping[str, Vector]


def applied_scales(stamp: Mapping[str, Any]) -> dict[str, float]:
    """Tag of a language vector -> what it was multiplied with before it was subtracted, ``p(ℓ) α_ℓ``."""
    alpha, alphas = float(stamp.get("alpha") or 0), stamp.get("alphas") or {}
    language = stamp.get("language")
    probable = stamp.get("languages") or ({language: 1.0} if language else {})
    return {tag: p * alphas.get(tag, alpha) for tag, p in probable.items()}


def nonzero_scales(stamp: Mapping[str, Any]) -> dict[str, float]:
    """As ``factors``, without the language vectors that moved nothing."""
    return {tag: factor for tag, factor in applied_scales(stamp).items() if factor}


def offset(stamp: Mapping[str, Any], vectors: Vectors) -> NDArray[np.float64]:
    """What a stamp says was subtracted from a vector: ``Σ_ℓ p(ℓ) α_ℓ V_ℓ``, or ``α V_ℓ`` of one language.

    Args:
        stamp: of a document that was shifted with these vectors.
        vectors: the index's language vectors, tag -> V_ℓ of shape (dimension,).

    Returns:
        Shape (dimension,), float64; a single 0 where nothing was.
    """
    steps = [factor * vectors[tag].astype(np.float64) for tag, factor in applied_scales(stamp).items()]
    return np.sum(steps, axis=0) if steps else np.zeros(1)


def undo(stored: Vector, stamp: Mapping[str, Any], vectors: Vectors) -> Vector:
    """The vector as the encoder made it, up to rounding: ``z = z̃ + Σ_ℓ p(ℓ) α_ℓ V_ℓ``.

    Args:
        stored: z̃, shape (dimension,), float32.
        stamp: of the document.
        vectors: the index's language vectors, tag -> V_ℓ of shape (dimension,).

    Returns:
        Shape (dimension,), float32.
    """
    made: Vector = (stored.astype(np.float64) + offset(stamp, vectors)).astype(np.float32)
    return made


def shifted(raw: Vector, stamp: Mapping[str, Any], vectors: Vectors) -> Vector:
    """The vector as it is stored with this stamp: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ``.

    Args:
        raw: z, shape (dimension,), float32.
        stamp: of the document.
        vectors: the index's language vectors, tag -> V_ℓ of shape (dimension,).

    Returns:
        Shape (dimension,), float32.
    """
    made: Vector = (raw.astype(np.float64) - offset(stamp, vectors)).astype(np.float32)
    return made


def difference(one: Vector, other: Vector, raw: Vector) -> float:
    """The largest difference of two vectors' components, relative to the norm of the vector that both come from."""
    norm = float(np.linalg.norm(raw.astype(np.float64)))
    largest = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max())
    return largest / norm if norm else largest


def is_shifted(stamp: Mapping[str, Any]) -> bool:
    """Whether a vector with this stamp is another than the encoder's."""
    return bool(stamp["alpha"] or any((stamp.get("alphas") or {}).values()))
