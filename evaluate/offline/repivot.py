"""Language vectors towards another pivot, from those that were fitted towards one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from langshift.debias.vectors import LanguageVectors, Vectors
from langshift.errors import UsageError
from langshift.languages import primary


def repivoted(vectors: LanguageVectors, pivot: str) -> LanguageVectors:
    """The same language vectors towards another pivot: ``V_ℓ^p = V_ℓ − V_p``.

    The mean of differences is linear, so where all languages were fitted on the same pairs this is what a fit
    towards that pivot gives, up to rounding. Means and principal directions belong to one language each and
    stay. Maps lead to the old pivot and cannot be turned; what was recommended or judged was measured with the
    old pivot: both are left out.

    Raises:
        UsageError: there is no vector for the new pivot.
    """
    pivot = primary(pivot)
    if pivot == vectors.pivot:
        return vectors
    if pivot not in vectors.vectors:
        known = ", ".join(sorted({vectors.pivot, *vectors.vectors}))
        raise UsageError(f"The language vectors know nothing of the pivot {pivot!r}: they have {known}.")
    pairs = {tag: count for tag, count in vectors.pairs.items() if tag != pivot}
    return replace(
        vectors,
        pivot=pivot,
        vectors=_turned(vectors.vectors, vectors.pivot, pivot),
        pairs=pairs | {vectors.pivot: vectors.pairs[pivot]},
        query_vectors=_turned(vectors.query_vectors, vectors.pivot, pivot) if pivot in vectors.query_vectors else {},
        alpha=None,
        alphas={},
        shift_queries=None,
        maps={},
        evidence={},
        tuning={},
    )


def _turned(of: Vectors, old: str, new: str) -> Vectors:
    origin = of[new].astype(np.float64)
    moved = {tag: (vector.astype(np.float64) - origin).astype(np.float32) for tag, vector in of.items() if tag != new}
    return moved | {old: (-origin).astype(np.float32)}
