"""What takes language out of embeddings: one method with its scales, over documents and over queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.ingest.methods import METHODS
from langshift.ingest.methods.affine import map_affine
from langshift.ingest.methods.centering import centre
from langshift.ingest.methods.lir import remove_directions
from langshift.ingest.methods.shift import expected_offsets, shift
from langshift.ingest.vectors import LanguageVectors
from langshift.languages import UNDETERMINED, macrolanguage, primary

Matrix = NDArray[np.float32]
# Language tag -> posterior p(ℓ) of one document.
Posterior = Mapping[str, float]


@dataclass(frozen=True)
class Debias:
    """A method and its scales.

    Attributes:
        vectors: the language vectors and what else was fitted; None where nothing is known, which moves nothing.
        method: one of ``METHODS``.
        alpha: scale, 0 to 1; of centering and LIR too, where only 0 and 1 make sense.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
        shift_queries: whether queries of other languages than the pivot are moved as documents are.
    """

    vectors: LanguageVectors | None
    method: str = "shift"
    alpha: float = 1.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    shift_queries: bool = False

    def __post_init__(self) -> None:
        """Refuse a method for which the file of language vectors holds nothing.

        Raises:
            UsageError: saying how to fit it.
        """
        if self.method not in METHODS:
            raise UsageError(f"There is no method {self.method!r}; there are: {', '.join(METHODS)}.")
        needed = {"centering": "means", "lir": "directions", "affine": "maps"}.get(self.method)
        if needed and self.vectors is not None and not getattr(self.vectors, needed):
            raise UsageError(
                f"The language vectors hold nothing for the method {self.method}: fit them with "
                f"`langshift vectors fit --methods {self.method}`."
            )

    def key(self, language: str) -> str | None:
        """The tag under which documents of a language are moved; None where they stay as they are."""
        if self.vectors is None or language == UNDETERMINED or self.method == "none":
            return None
        key = self._query_side_key(language) if METHODS[self.method].query_side else self.vectors.key(language)
        return key if key is not None and self.scale(key) else None

    def scale(self, key: str) -> float:
        """The scale of one language, by the tag of its vector."""
        return self.alphas.get(key, self.alpha)

    def documents(self, vectors: Matrix, languages: Sequence[str]) -> Matrix:
        """Documents moved by their language.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, ``und`` where unknown.

        Returns:
            Shape (n, d), float32, not normalised; rows that stay come back bit for bit.
        """
        return self._moved(vectors, [self.key(tag) for tag in languages], query=False)

    def queries(self, vectors: Matrix, languages: Sequence[str | None]) -> Matrix:
        """Queries moved by their language, where the method or ``shift_queries`` asks for it.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            languages: each one's tag, None or ``und`` where unknown.

        Returns:
            Shape (n, d), float32; queries in the pivot language come back bit for bit.
        """
        if not self.shift_queries and not METHODS[self.method].query_side:
            return vectors
        return self._moved(vectors, [self.key(tag or UNDETERMINED) for tag in languages], query=True)

    def soft(self, vectors: Matrix, posteriors: Sequence[Posterior]) -> Matrix:
        """Documents moved by what they probably are: ``z̃ = z − Σ_ℓ p(ℓ) α_ℓ V_ℓ``.

        Args:
            vectors: embeddings as the encoder makes them, shape (n, d), float32.
            posteriors: each document's languages and how probable they are.

        Returns:
            Shape (n, d), float32; a posterior of 1 moves as ``documents`` does, to rounding.

        Raises:
            UsageError: another method than ``shift``.
        """
        if self.method != "shift":
            raise UsageError(f"Only the method shift can be soft, not {self.method}.")
        known = self.vectors
        if known is None:
            return _copy(vectors)
        tags = sorted(known.vectors)
        place = {tag: column for column, tag in enumerate(tags)}
        weights = np.zeros((len(vectors), len(tags)))
        for row, posterior in enumerate(posteriors):
            for language, probability in posterior.items():
                key = self.key(language)
                if key is not None:
                    weights[row, place[key]] += probability * self.scale(key)
        offsets = expected_offsets(weights, np.stack([known.vectors[tag] for tag in tags]))
        return shift(vectors, offsets, np.where(weights.any(axis=1), 1.0, 0.0))

    def _query_side_key(self, language: str) -> str | None:
        """Centering and LIR change the pivot language too."""
        known = self.vectors
        table = {} if known is None else known.means if self.method == "centering" else known.directions
        return next((tag for tag in (language, primary(language), macrolanguage(language)) if tag in table), None)

    def _moved(self, vectors: Matrix, keys: Sequence[str | None], *, query: bool) -> Matrix:
        known = self.vectors
        made = _copy(vectors)
        if known is None or not any(keys):
            return made
        named = np.array([key or "" for key in keys])
        for key in sorted({key for key in keys if key}):
            rows = named == key
            made[rows] = self._of_language(vectors[rows], key, known, query=query)
        return made

    def _of_language(self, vectors: Matrix, key: str, known: LanguageVectors, *, query: bool) -> Matrix:
        if self.method == "centering":
            return centre(vectors, np.broadcast_to(known.means[key], vectors.shape))
        if self.method == "lir":
            return remove_directions(vectors, known.directions[key])
        if self.method == "affine":
            mean = known.means[key]
            return map_affine(vectors, mean, known.maps[key], mean - known.vectors[key], self.scale(key))
        offset = known.query_vectors.get(key, known.vectors[key]) if query else known.vectors[key]
        return shift(vectors, np.broadcast_to(offset, vectors.shape), np.full(len(vectors), self.scale(key)))


def _copy(vectors: Matrix) -> Matrix:
    made: Matrix = vectors.copy()
    return made
