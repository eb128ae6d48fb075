"""A batch's embeddings, language by language: encoded here, or given with the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import Encoder, is_given
from langshift.debias.fitting.sums import column_sums
from langshift.debias.parallel.rows import ParallelText, Rows
from langshift.errors import LangshiftError, UsageError

Matrix = NDArray[np.float32]
# Texts at once: enough for an encoder to sort them by length.
_TEXTS = 256
# Given vectors of one language at once, in bytes: what a processor keeps at hand while it goes over them again.
_BYTES = 2 << 20
# Looking closely at vectors takes longer than reading them: so many rows are looked at closely, and after them
# the first eighth of every batch. Encoding takes so much longer that all texts are.
_CLOSELY, _SHARE = 100_000, 8


@dataclass(frozen=True)
class Side:
    """A language's embeddings in a batch of n rows.

    Attributes:
        vectors: shape (n, d), float32; zeros in rows without one.
        present: which rows have one, shape (n,); None where all do.
        total: the sum of the rows, shape (d,), float64.
    """

    vectors: Matrix
    present: NDArray[np.bool_] | None
    total: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many rows have a vector."""
        return len(self.vectors) if self.present is None else int(self.present.sum())


class Embedding:
    """Makes the numbers of one source's batches, each text encoded once, and refuses what is no number."""

    def __init__(self, source: ParallelText, encoder: Encoder) -> None:
        """Keep what goes together.

        Raises:
            UsageError: texts without an encoder for them, or vectors with one.
        """
        self.given = source.dimension is not None
        if not self.given and is_given(encoder.id):
            raise UsageError(
                f"{source.shown}: holds texts, but the encoder {encoder.id} takes vectors that come with the data; "
                "name an encoder of texts, such as use-m."
            )
        if self.given and not is_given(encoder.id):
            raise UsageError(
                f"{source.shown}: holds vectors, which {encoder.id} cannot encode; fit them with --encoder given."
            )
        self._shown, self._encoder = source.shown, encoder
        self.dimension = source.dimension or encoder.dimension
        self.batch = max(_BYTES // (4 * self.dimension) // 64, 1) * 64 if self.given else _TEXTS
        # A language vector of queries is another one only where queries are encoded in another way.
        self.has_queries = not self.given and encoder.query_prefix != encoder.document_prefix

    def sides(self, rows: Rows, pivots: Sequence[str]) -> Mapping[str, Side]:
        """Each language's embeddings; texts of rows without any pivot text make no pair, and are not encoded.

        Raises:
            LangshiftError: a vector holds something that is not a number, named by its place.
        """
        if self.given:
            return {language: self._given_side(rows, language) for language in rows.vectors}
        has = {language: np.array([bool(text) for text in texts]) for language, texts in rows.texts.items()}
        paired = np.any([has[pivot] for pivot in pivots], axis=0)
        return {
            language: self._encoded_side(rows, language, written if language in pivots else written & paired)
            for language, written in has.items()
        }

    def closely(self, done: int, rows: Rows) -> int:
        """How many of a batch's rows, from its first on, are to be looked at closely, after so many rows done."""
        all_rows = len(rows.places)
        return all_rows if not self.given or done < _CLOSELY else -(-all_rows // _SHARE)

    def queries(self, rows: Rows, language: str, wanted: NDArray[np.intp]) -> Matrix:
        """Some rows' texts encoded as queries, shape (len(wanted), d), float32.

        Raises:
            LangshiftError: a vector holds something that is not a number, named by its place.
        """
        return self._encoded(self._encoder.encode_queries, rows, language, wanted)

    def _encoded_side(self, rows: Rows, language: str, wanted: NDArray[np.bool_]) -> Side:
        vectors = self._encoded(self._encoder.encode_documents, rows, language, np.flatnonzero(wanted))
        total = column_sums(vectors)
        if wanted.all():
            return Side(vectors, None, total)
        spread = np.zeros((len(wanted), self.dimension), np.float32)
        spread[wanted] = vectors
        return Side(spread, wanted, total)

    def _encoded(
        self, encode: Callable[[Sequence[str]], Matrix], rows: Rows, language: str, wanted: NDArray[np.intp]
    ) -> Matrix:
        if not len(wanted):
            return np.zeros((0, self.dimension), np.float32)
        texts = rows.texts[language]
        vectors = encode([texts[row] for row in wanted]).reshape(len(wanted), self.dimension)
        good = np.isfinite(vectors).all(axis=1)
        if not good.all():
            raise LangshiftError(
                f"{self._shown}, {rows.places[int(wanted[good.argmin()])]}: the encoder {self._encoder.id} gives a "
                f"vector that is not a number for the text in {language}; leave the text out, or use another encoder."
            )
        return vectors

    def _given_side(self, rows: Rows, language: str) -> Side:
        vectors = rows.vectors[language]
        total = column_sums(vectors)
        if np.isfinite(total).all():
            return Side(vectors, None, total)
        # Reading refuses any other vector that is not finite.
        present: NDArray[np.bool_] = np.logical_not(np.isnan(vectors).all(axis=1))
        vectors = np.where(present[:, np.newaxis], vectors, np.float32(0))
        return Side(vectors, present, column_sums(vectors))
