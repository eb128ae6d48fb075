"""Vectors as an index keeps them under ``_meta``: base64 of little-endian float32, the same bit for bit."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def encoded(vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, str]:
    """Tag -> text, of vectors of shape (dimension,), float32."""
    return {tag: base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii") for tag, vector in vectors.items()}


def decoded(kept: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
    """Read what ``encoded`` made; each of shape (dimension,), float32."""
    return {tag: np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32) for tag, text in kept.items()}
