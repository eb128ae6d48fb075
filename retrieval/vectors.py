"""What it takes to tell the similarity of documents to a query at any alpha."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Documents by the few numbers that their similarity to the query at any alpha is made of.

    With ``z`` the vector as the encoder made it, ``V = Σ p(ℓ) V_ℓ`` what an alpha of 1 subtracts from it (that of its
    language, or of a soft shift all of them by their probabilities), ``q̂`` the query's at length 1 and ``z̃`` the stored
    one. Arrays have the shape (documents,) and are float64.

    Attributes:
        ids: the documents with a vector: of the shortlist, and the nearest in each language.
        languages: of each.
        sources: document -> its fields but the vector, of those that are not in the shortlist.
        indexed: ``cos(q, z̃)``.
        norms: ``|z̃|``.
        made: ``q̂·z``.
        made_squared: ``|z|²``.
        vectors: ``q̂·V``.
        vectors_squared: ``|V|²``.
        crossed: ``z·V``.
        by: document -> tag -> what that language's vector was multiplied with in the index, ``p(ℓ) α_ℓ``.
        proportions: document -> tag -> ``p(ℓ)``.
        unmovable: documents of which it is not known what they were shifted by: they stay as indexed.
        took: milliseconds that the server says it took.
    """

    ids: tuple[str, ...]
    languages: tuple[str, ...]
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    indexed: Array
    norms: Array
    made: Array
    made_squared: Array
    vectors: Array
    vectors_squared: Array
    crossed: Array
    by: Mapping[str, Mapping[str, float]] = field(repr=False)
    proportions: Mapping[str, Mapping[str, float]] = field(repr=False)
    unmovable: frozenset[str]
    took: float

    @cached_property
    def places(self) -> dict[str, int]:
        """Document -> where it is in the arrays."""
        return {name: place for place, name in enumerate(self.ids)}

    @cached_property
    def movable(self) -> NDArray[np.bool_]:
        """Whether each can be moved, shape (documents,)."""
        return np.array([name not in self.unmovable for name in self.ids], dtype=bool)

    def lengths(self, alpha: float) -> Array:
        """``|z - α V|`` of each; not known of what is unmovable."""
        squared = self.made_squared - 2 * alpha * self.crossed + alpha**2 * self.vectors_squared
        return np.sqrt(np.maximum(squared, 0.0))

    def similarities(self, alpha: float | None) -> Array:
        """``cos(q, z - α V)`` of each; None and what is unmovable: as indexed."""
        if alpha is None:
            return self.indexed
        lengths = self.lengths(alpha)
        along = self.made - alpha * self.vectors
        cosines = np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)
        return np.where(self.movable, cosines, self.indexed)
