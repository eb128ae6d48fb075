"""What fitting adds up while parallel text goes by: bounded memory, as fast as memory and as exact as float64."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder, Matrix, is_given
from langshift.debias.fitting.alignment import AlignmentCheck
from langshift.debias.parallel.columns import ParallelRows, ParallelText
from langshift.errors import LangshiftError, UsageError

# So many rows are added up in float32 before float64 takes over: an error of 1e-7, at BLAS's speed.
_RUN = 64
_ONES = np.ones((1, _RUN), np.float32)


def column_sums(rows: Matrix) -> NDArray[np.float64]:
    """The sum of all rows; not finite where one of them is not.

    Args:
        rows: shape (n, d), float32.

    Returns:
        Shape (d,), float64.
    """
    runs = len(rows) // _RUN
    with np.errstate(invalid="ignore", over="ignore"):
        rest: NDArray[np.float64] = rows[runs * _RUN :].sum(axis=0, dtype=np.float64)
        if runs:
            blocks = rows[: runs * _RUN].reshape(runs, _RUN, rows.shape[1])
            rest += np.matmul(_ONES, blocks)[:, 0].sum(axis=0, dtype=np.float64)
    return rest


def row_norms(rows: Matrix) -> NDArray[np.float32]:
    """The Euclidean norm of each row: shape (n,), float32."""
    norms: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


Totals = tuple[NDArray[np.float64], NDArray[np.float64]]
# An even number, so that all blocks find a neighbour to merge with.
MOST = 64


class Blocks:
    """Sums of the differences ``z^ℓ − z^pivot`` in at most 64 blocks of equally many neighbouring pairs.

    Neighbouring sentences are alike, so that pairs drawn one by one would make the mean look surer than it is;
    contiguous blocks carry that likeness. When all are full, neighbours merge and blocks double in size.
    """

    def __init__(self, dimension: int) -> None:
        self._sums = np.zeros((MOST, dimension), np.float64)
        self._counts = np.zeros(MOST, np.int64)
        self._size = 1
        self._at = 0

    def add(self, rows: Matrix, pivot_rows: Matrix, totals: Totals | None = None) -> None:
        """Add pairs in the order of the text.

        Args:
            rows: the language's embeddings, shape (n, d), float32.
            pivot_rows: the pivot's embeddings of the same pairs, shape (n, d), float32.
            totals: the sums of both, where they are known: most often all rows go into one block.
        """
        done = 0
        while done < len(rows):
            if self._at == MOST:
                self._merge()
            room = self._size - int(self._counts[self._at])
            part = slice(done, done + room)
            if totals and not done and len(rows) <= room:
                language, pivot = totals
            else:
                language, pivot = column_sums(rows[part]), column_sums(pivot_rows[part])
            self._sums[self._at] += language - pivot
            self._counts[self._at] += len(rows[part])
            done += len(rows[part])
            self._at += int(self._counts[self._at] == self._size)

    def _merge(self) -> None:
        half = MOST // 2
        self._sums[:half] = self._sums.reshape(half, 2, -1).sum(axis=1)
        self._counts[:half] = self._counts.reshape(half, 2).sum(axis=1)
        self._sums[half:], self._counts[half:] = 0, 0
        self._size, self._at = 2 * self._size, half

    @property
    def pairs(self) -> int:
        """How many pairs were added."""
        return int(self._counts.sum())

    @property
    def difference(self) -> NDArray[np.float64]:
        """The sum of all differences, shape (d,), float64."""
        total: NDArray[np.float64] = self._sums.sum(axis=0)
        return total

    @property
    def sums(self) -> NDArray[np.float64]:
        """Each block's sum of differences, in order, shape (blocks, d), float64."""
        return self._sums[self._counts > 0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many pairs each block holds, shape (blocks,)."""
        return self._counts[self._counts > 0]


# Texts at once: enough for an encoder to sort them by length.
_TEXTS = 256
# Given vectors of one language at once, in bytes: what a processor keeps at hand while it goes over them again.
_BYTES = 2 << 20
# Looking closely at vectors takes longer than reading them: so many rows are looked at closely, and after them
# the first eighth of every batch. Encoding takes so much longer that all texts are.
_CLOSELY, _SHARE = 100_000, 8


class BatchEmbeddings(NamedTuple):
    """A language's embeddings in a batch of n rows.

    Attributes:
        vectors: shape (n, d), float32; zeros in rows without one.
        present: which rows have one, shape (n,).
        total: the sum of the rows, shape (d,), float64.
    """

    vectors: Matrix
    present: NDArray[np.bool_]
    total: NDArray[np.float64]


class BatchEncoder:
    """Makes the numbers of one source's batches, each text encoded once, and refuses what is no number."""

    def __init__(self, source: ParallelText, encoder: Encoder) -> None:
        """Keep what goes together.

        Raises:
            UsageError: texts without an encoder for them, or vectors with one.
        """
        self.given = source.dimension is not None
        if not self.given and is_given(encoder.id):
            raise UsageError(
                f"{source.shown} contains text, but the encoder {encoder.id} uses vectors that come with the data; "
                "choose an encoder of text, such as e5-small."
            )
        if self.given and not is_given(encoder.id):
            raise UsageError(
                f"{source.shown} contains vectors, which {encoder.id} cannot encode; fit them with --encoder given."
            )
        self._shown, self._encoder = source.shown, encoder
        self.dimension = source.dimension or encoder.dimension
        self.batch = max(_BYTES // (4 * self.dimension) // 64, 1) * 64 if self.given else _TEXTS
        # A language vector of queries is another one only where queries are encoded in another way.
        self.has_queries = not self.given and encoder.query_prefix != encoder.document_prefix

    def sides(self, rows: ParallelRows, pivots: Sequence[str]) -> Mapping[str, BatchEmbeddings]:
        """Each language's embeddings; texts of rows without any pivot text make no pair, and are not encoded.

        Raises:
            LangshiftError: a vector holds something that is not a number, named by its place.
        """
        if self.given:
            return {language: self._given_side(rows, language) for language in rows.vectors}
        has = {language: np.array([bool(text) for text in texts]) for language, texts in rows.texts.items()}
        paired = np.any([has[pivot] for pivot in pivots], axis=0)
        sides = {}
        for language, written in has.items():
            wanted = written if language in pivots else written & paired
            encoded = self.encoded(rows, language, np.flatnonzero(wanted), queries=False)
            vectors = np.zeros((len(wanted), self.dimension), np.float32)
            vectors[wanted] = encoded
            sides[language] = BatchEmbeddings(vectors, wanted, column_sums(encoded))
        return sides

    def closely(self, done: int, rows: ParallelRows) -> int:
        """How many of a batch's rows, from its first on, are to be looked at closely, after so many rows done."""
        all_rows = len(rows.places)
        return all_rows if not self.given or done < _CLOSELY else -(-all_rows // _SHARE)

    def encoded(self, rows: ParallelRows, language: str, wanted: NDArray[np.intp], *, queries: bool) -> Matrix:
        """Some rows' texts encoded as queries or as documents, shape (len(wanted), d), float32.

        Queries are short: of joined rows only the first is encoded as one. On XQuAD's questions that serves better than
        whole passages (e5-small, both sides, gamma .7: nDCG@20 .817 and .811).

        Raises:
            LangshiftError: a vector holds something that is not a number, named by its place.
        """
        encode = self._encoder.encode_queries if queries else self._encoder.encode_documents
        if not len(wanted):
            return np.zeros((0, self.dimension), np.float32)
        texts = (rows.openings if queries and rows.openings else rows.texts)[language]
        vectors = encode([texts[row] for row in wanted]).reshape(len(wanted), self.dimension)
        good = np.isfinite(vectors).all(axis=1)
        if not good.all():
            raise LangshiftError(
                f"{self._shown}, {rows.places[int(wanted[good.argmin()])]}: the encoder {self._encoder.id} returned a "
                f"vector with invalid numbers for the text in {language}; leave the text out, or use another encoder."
            )
        return vectors

    def _given_side(self, rows: ParallelRows, language: str) -> BatchEmbeddings:
        vectors = rows.vectors[language]
        total = column_sums(vectors)
        if np.isfinite(total).all():
            return BatchEmbeddings(vectors, np.ones(len(vectors), np.bool_), total)
        # Reading refuses any other vector that is not finite.
        present: NDArray[np.bool_] = np.logical_not(np.isnan(vectors).all(axis=1))
        vectors = np.where(present[:, np.newaxis], vectors, np.float32(0))
        return BatchEmbeddings(vectors, present, column_sums(vectors))


class LanguageSums:
    """Sums over all embeddings of a language."""

    def __init__(self, dimension: int) -> None:
        """Begin with nothing; ``dimension`` is the length of an embedding."""
        self._total = np.zeros(dimension, np.float64)
        self._norms = 0.0
        self._count = self._sampled_count = 0

    def add(self, side: BatchEmbeddings, closely: int) -> Matrix:
        """Add a batch.

        Args:
            side: its embeddings.
            closely: how many of its rows are looked at closely.

        Returns:
            These rows without the language's mean so far, of norm 1, shape (closely, d), float32; a row that is the
            mean becomes zero.
        """
        self._total += side.total
        self._count += int(side.present.sum())
        sampled = side.vectors[:closely]
        self._norms += float(row_norms(sampled).sum(dtype=np.float64))
        self._sampled_count += int(side.present[:closely].sum())
        centred: Matrix = sampled - self.mean.astype(np.float32)
        centred /= np.maximum(row_norms(centred), np.finfo(np.float32).tiny)[:, np.newaxis]
        return centred

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean embedding, shape (d,), float64; zeros before the first."""
        return self._total / max(self._count, 1)

    @property
    def norm(self) -> float:
        """The mean norm of the embeddings that were looked at closely."""
        return self._norms / max(self._sampled_count, 1)


# So many pairs are encoded as queries too: enough for any vector, where encoding takes most of the time.
QUERY_PAIRS = 20_000


class PairSums:
    """Sums over the pairs of a language and a pivot."""

    def __init__(self, language: str, pivot: str, dimension: int) -> None:
        """Begin with nothing.

        Args:
            language: the language's tag.
            pivot: the pivot's tag.
            dimension: length of an embedding.
        """
        self.language, self.pivot = language, pivot
        self.blocks = Blocks(dimension)
        self.alignment = AlignmentCheck()
        self._queries, self._pivot_queries = np.zeros(dimension, np.float64), np.zeros(dimension, np.float64)
        self._query_pairs = 0

    def add(
        self, side: BatchEmbeddings, pivot: BatchEmbeddings, units: Matrix, pivot_units: Matrix, places: Sequence[str]
    ) -> None:
        """Add the pairs of a batch.

        Args:
            side: the language's embeddings.
            pivot: the pivot's.
            units: what ``LanguageSums.add`` gave of the language's rows that are looked at closely.
            pivot_units: the same of the pivot's.
            places: names the rows for a person.
        """
        rows = np.flatnonzero(side.present & pivot.present)
        vectors, pivot_vectors, totals = side.vectors, pivot.vectors, (side.total, pivot.total)
        sampled = rows[: np.searchsorted(rows, len(units))]
        if len(rows) == len(vectors):
            self.blocks.add(vectors, pivot_vectors, totals)
            self.alignment.add(units, pivot_units, places, sampled)
        else:
            vectors, pivot_vectors = vectors[rows], pivot_vectors[rows]
            self.blocks.add(vectors, pivot_vectors)
            self.alignment.add(units[sampled], pivot_units[sampled], places, sampled)

    def wants_queries(self, side: BatchEmbeddings, pivot: BatchEmbeddings) -> NDArray[np.intp]:
        """The rows of a batch that are to be encoded as queries too: none after the first 20,000 pairs."""
        return np.flatnonzero(side.present & pivot.present)[: QUERY_PAIRS - self._query_pairs]

    def add_queries(self, queries: Matrix, pivot_queries: Matrix) -> None:
        """Add pairs encoded as queries, shape (n, d) each."""
        of_pivot = pivot_queries.sum(axis=0, dtype=np.float64)
        self._queries += queries.sum(axis=0, dtype=np.float64) - of_pivot
        self._pivot_queries += of_pivot
        self._query_pairs += len(queries)

    def query_vector(self) -> NDArray[np.float32] | None:
        """The language vector of queries, shape (d,), float32; None where no text was encoded as one."""
        return (self._queries / self._query_pairs).astype(np.float32) if self._query_pairs else None

    def add_pivot_queries(self, total: NDArray[np.float64]) -> int:
        """Add the pivot's texts encoded as queries to a running sum, shape (d,); returns how many they are."""
        total += self._pivot_queries
        return self._query_pairs


def add_queries(
    pairs: Sequence[PairSums], sides: Mapping[str, BatchEmbeddings], rows: ParallelRows, embedding: BatchEncoder
) -> Mapping[str, Matrix]:
    """Encode as queries what the pairs still want of a batch, each text once, and add it.

    Returns:
        Language -> the embeddings, shape (n, d), float32.
    """
    wants = [pair.wants_queries(sides[pair.language], sides[pair.pivot]) for pair in pairs]
    wanted = {language: np.zeros(len(side.vectors), np.bool_) for language, side in sides.items()}
    for pair, places in zip(pairs, wants, strict=True):
        wanted[pair.language][places] = wanted[pair.pivot][places] = True
    encoded = {tag: embedding.encoded(rows, tag, np.flatnonzero(some), queries=True) for tag, some in wanted.items()}
    # Where among the encoded ones a row is.
    at = {language: np.cumsum(some) - 1 for language, some in wanted.items()}
    for pair, places in zip(pairs, wants, strict=True):
        pair.add_queries(encoded[pair.language][at[pair.language][places]], encoded[pair.pivot][at[pair.pivot][places]])
    return encoded
