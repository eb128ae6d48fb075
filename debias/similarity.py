"""How near queries of one language lie to documents of another, and which documents lie nearest."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 200
_SEED = 20_260_213
# Queries that are compared with all documents at once.
_AT_ONCE = 256
# Cosines that differ less are the same but for rounding.
_TIED = 1e-9


def with_norm_1(vectors: NDArray[np.floating]) -> Floats:
    """Vectors of the same directions, shape (n, d) or (d,), float64; zeros stay zeros."""
    raised = vectors.astype(np.float64)
    # A shift could take a vector away whole; such a one is near to nothing.
    norms: Floats = np.maximum(np.linalg.norm(raised, axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    return raised / norms


class NormalisedVectors(NamedTuple):
    """Queries and documents, at one state of their vectors.

    Attributes:
        queries: shape (n, d), float64, norm 1.
        documents: shape (m, d), float64, norm 1.
    """

    queries: Floats
    documents: Floats


class LanguageRows(NamedTuple):
    """Which queries and documents are of which language.

    Attributes:
        queries: language -> rows of the queries: the languages in the order of ``documents``, then others.
        documents: language -> rows of the documents, the most frequent language first.
        own: whether the queries are the documents, which are then not compared with themselves.
    """

    queries: Mapping[str, NDArray[np.intp]]
    documents: Mapping[str, NDArray[np.intp]]
    own: bool

    @property
    def pairs(self) -> Floats:
        """How many pairs of a query and a document are compared, shape (query languages, languages)."""
        documents = [len(rows) for rows in self.documents.values()]
        counts = np.outer([len(rows) for rows in self.queries.values()], documents)
        if self.own:
            counts -= np.diag(documents)
        return counts.astype(np.float64)


class Draws:
    """How often each query and document is drawn: once each in the first draw, by chance in those of a bootstrap."""

    def __init__(self, rows: LanguageRows) -> None:
        rng = np.random.default_rng(_SEED)
        self.rows = rows
        self.documents = [_drawn(rng, len(of)) for of in rows.documents.values()]
        # A document that stands in for a query is drawn as both.
        self.queries = self.documents if rows.own else [_drawn(rng, len(of)) for of in rows.queries.values()]

    def cosines(self, sides: NormalisedVectors) -> Floats:
        """Mean cosine between queries and documents of two languages.

        Shape (1 + RESAMPLES, query languages, languages). The first is that of the sample itself.
        NaN where there is no pair.
        """
        queries, documents = self.rows.queries.values(), self.rows.documents.values()
        if not queries or not documents:
            return np.empty((1 + RESAMPLES, len(queries), len(documents)))
        query_sums = [drawn @ sides.queries[of] for drawn, of in zip(self.queries, queries, strict=True)]
        found = [drawn @ sides.documents[of] for drawn, of in zip(self.documents, documents, strict=True)]
        sums = np.einsum("qbd,lbd->bql", np.stack(query_sums), np.stack(found), optimize=True)
        totals = [np.stack([drawn.sum(axis=1) for drawn in side]) for side in (self.queries, self.documents)]
        pairs = np.einsum("qb,lb->bql", *totals)
        if self.rows.own:
            for place, (drawn, of) in enumerate(zip(self.documents, documents, strict=True)):
                squares = drawn**2
                own = np.einsum("ij,ij->i", sides.queries[of], sides.documents[of])
                sums[:, place, place] -= squares @ own
                pairs[:, place, place] -= squares.sum(axis=1)
        means: Floats = np.divide(sums, pairs, out=np.full_like(sums, np.nan), where=pairs > 0)
        return means


def spread(sides: NormalisedVectors, queries: NDArray[np.intp], documents: NDArray[np.intp], *, own: bool) -> float:
    """How much the cosines of one query with documents differ among themselves: mean standard deviation."""
    others = ((row, documents[documents != row] if own else documents) for row in queries)
    return float(np.mean([np.std(sides.documents[among] @ sides.queries[row]) for row, among in others]))


def same_language_nearest(sides: NormalisedVectors, rows: LanguageRows, size: int) -> list[float]:
    """Which share of the nearest documents is in the query's language, by language of the queries.

    Args:
        sides: queries and documents.
        rows: their languages; documents of no language are left aside.
        size: how many nearest documents count.
    """
    among = np.concatenate(list(rows.documents.values()))
    language = np.repeat(list(rows.documents), [len(of) for of in rows.documents.values()])
    shares = []
    for tag, of in rows.queries.items():
        same = 0.0
        for start in range(0, len(of), _AT_ONCE):
            some = of[start : start + _AT_ONCE]
            cosines = sides.queries[some] @ sides.documents[among].T
            if rows.own:
                cosines[some[:, np.newaxis] == among] = -np.inf
            same += _among_nearest(cosines, language == tag, size)
        shares.append(same / (size * len(of)))
    return shares


def _among_nearest(cosines: Floats, wanted: NDArray[np.bool_], size: int) -> float:
    """How many of the nearest are wanted; of those that are as near as the last, a part."""
    last = np.partition(cosines, -size, axis=1)[:, -size, np.newaxis]
    nearer = cosines > last + _TIED
    tied = ~nearer & (cosines >= last - _TIED)
    room = (size - nearer.sum(axis=1)) / tied.sum(axis=1)
    return float((nearer & wanted).sum() + ((tied & wanted).sum(axis=1) * room).sum())


def _drawn(rng: np.random.Generator, count: int) -> Floats:
    once = np.ones((1, count))
    return np.concatenate([once, rng.multinomial(count, np.full(count, 1 / count), RESAMPLES)])
