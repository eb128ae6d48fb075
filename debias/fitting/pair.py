"""What is added up of a language's pairs with a pivot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fitting.affine import PairMoments
from langshift.debias.fitting.alignment import AlignmentCheck
from langshift.debias.fitting.blocks import Blocks
from langshift.debias.fitting.embedding import Embedding, Matrix, Side
from langshift.debias.parallel.rows import Rows

# So many pairs are encoded as queries too: enough for any vector, where encoding takes most of the time.
QUERY_PAIRS = 20_000


class PairSums:
    """Sums over the pairs of a language and a pivot."""

    def __init__(self, language: str, pivot: str, dimension: int, *, maps: bool) -> None:
        """Begin with nothing.

        Args:
            language: the language's tag.
            pivot: the pivot's tag.
            dimension: length of an embedding.
            maps: whether the moments of ``affine`` are wanted, which take memory O(d²).
        """
        self.language, self.pivot = language, pivot
        self.blocks = Blocks(dimension)
        self.alignment = AlignmentCheck()
        self.moments = PairMoments(dimension) if maps else None
        self._queries = np.zeros(dimension, np.float64)
        self._query_pairs = 0

    def add(self, side: Side, pivot: Side, units: Matrix, pivot_units: Matrix, places: Sequence[str]) -> None:
        """Add the pairs of a batch.

        Args:
            side: the language's embeddings.
            pivot: the pivot's.
            units: what ``LanguageSums.add`` gave of the language's rows that are looked at closely.
            pivot_units: the same of the pivot's.
            places: names the rows for a person.
        """
        rows = complete(side, pivot)
        vectors, pivot_vectors, totals = side.vectors, pivot.vectors, (side.total, pivot.total)
        looked = rows[: np.searchsorted(rows, len(units))]
        if len(rows) == len(vectors):
            self.blocks.add(vectors, pivot_vectors, totals)
            self.alignment.add(units, pivot_units, places, looked)
        else:
            vectors, pivot_vectors = vectors[rows], pivot_vectors[rows]
            self.blocks.add(vectors, pivot_vectors)
            self.alignment.add(units[looked], pivot_units[looked], places, looked)
        if self.moments is not None:
            self.moments.add(vectors, pivot_vectors)

    def wants_queries(self, side: Side, pivot: Side) -> NDArray[np.intp]:
        """The rows of a batch that are to be encoded as queries too: none after the first 20,000 pairs."""
        return complete(side, pivot)[: QUERY_PAIRS - self._query_pairs]

    def add_queries(self, queries: Matrix, pivot_queries: Matrix) -> None:
        """Add pairs encoded as queries, shape (n, d) each."""
        self._queries += queries.sum(axis=0, dtype=np.float64) - pivot_queries.sum(axis=0, dtype=np.float64)
        self._query_pairs += len(queries)

    def query_vector(self) -> NDArray[np.float32] | None:
        """The language vector of queries, shape (d,), float32; None where no text was encoded as one."""
        return (self._queries / self._query_pairs).astype(np.float32) if self._query_pairs else None


def complete(side: Side, pivot: Side) -> NDArray[np.intp]:
    """The rows in which both languages have an embedding."""
    rows = np.ones(len(side.vectors), np.bool_)
    for present in (side.present, pivot.present):
        if present is not None:
            rows &= present
    return np.flatnonzero(rows)


def add_queries(pairs: Sequence[PairSums], sides: Mapping[str, Side], rows: Rows, embedding: Embedding) -> None:
    """Encode as queries what the pairs still want of a batch, each text once, and add it."""
    wants = [pair.wants_queries(sides[pair.language], sides[pair.pivot]) for pair in pairs]
    wanted = {language: np.zeros(len(side.vectors), np.bool_) for language, side in sides.items()}
    for pair, places in zip(pairs, wants, strict=True):
        wanted[pair.language][places] = wanted[pair.pivot][places] = True
    encoded = {language: embedding.queries(rows, language, np.flatnonzero(some)) for language, some in wanted.items()}
    # Where among the encoded ones a row is.
    at = {language: np.cumsum(some) - 1 for language, some in wanted.items()}
    for pair, places in zip(pairs, wants, strict=True):
        pair.add_queries(encoded[pair.language][at[pair.language][places]], encoded[pair.pivot][at[pair.pivot][places]])
