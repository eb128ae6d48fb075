"""How near the documents of each language lie to queries, before and after a shift."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias import similarity
from langshift.debias.similarity import Floats, LanguageRows, NormalisedVectors
from langshift.languages import UNDETERMINED

#: How many nearest documents are looked at, of a sample that has several times as many.
NEAREST, _TIMES = 20, 5


class Nearness(NamedTuple):
    """Cosines between queries, which stay as the encoder made them, and documents before and after a shift.

    Attributes:
        rows: which queries and documents are of which language.
        sides: queries and documents before the shift, and after it.
        draws: mean cosines before and after it, by the languages of query and document: of the sample itself, then of
            each draw of a bootstrap; shape (1 + RESAMPLES, query languages, languages), NaN where there is no pair.
    """

    rows: LanguageRows
    sides: tuple[NormalisedVectors, NormalisedVectors]
    draws: tuple[Floats, Floats]

    @property
    def before(self) -> Floats:
        """Mean cosine before the shift, shape (query languages, languages); NaN where there is no pair."""
        sample: Floats = self.draws[0][0]
        return sample

    @property
    def after(self) -> Floats:
        """The same after the shift."""
        sample: Floats = self.draws[1][0]
        return sample


class NearestShare(NamedTuple):
    """The documents nearest to queries of one language.

    Attributes:
        language: of the queries.
        queries: how many.
        even: share of the sample's documents in this language, which chance would give.
        before: share of the nearest documents in this language, before the shift.
        after: the same after the shift.
    """

    language: str
    queries: int
    even: float
    before: float
    after: float


def language_rows(
    queries: Sequence[str], documents: Sequence[str], languages: Sequence[str], *, own: bool
) -> LanguageRows:
    """Return which queries and documents are of which language; those in an unknown one are left out.

    Args:
        queries: the language of each query.
        documents: the language of each document.
        languages: of the documents, in the order of a matrix's columns; its rows have the same order.
        own: whether the queries are the documents.
    """
    place = {tag: number for number, tag in enumerate(languages)}
    most = (tag for tag, _ in Counter(queries).most_common() if tag != UNDETERMINED)
    rows, columns = np.array(queries), np.array(documents)
    return LanguageRows(
        {tag: np.flatnonzero(rows == tag) for tag in sorted(most, key=lambda tag: place.get(tag, len(place)))},
        {tag: np.flatnonzero(columns == tag) for tag in languages},
        own=own,
    )


def measure_nearness(
    queries: NDArray[np.floating], before: NDArray[np.floating], after: NDArray[np.floating], rows: LanguageRows
) -> Nearness:
    """Measure how near queries are to documents.

    Args:
        queries: vectors as the encoder makes them, shape (n, d).
        before: vectors of the documents as the encoder makes them, shape (m, d).
        after: the same after the shift.
        rows: the languages of queries and documents.
    """
    asked = similarity.with_norm_1(queries)
    first, then = (NormalisedVectors(asked, similarity.with_norm_1(documents)) for documents in (before, after))
    draws = similarity.Draws(rows)
    return Nearness(rows, (first, then), (draws.cosines(first), draws.cosines(then)))


def nearest_shares(nearness: Nearness) -> list[NearestShare]:
    """Return the share of each language in the documents nearest to its queries; empty where there are too few."""
    rows = nearness.rows
    counts = {tag: len(of) for tag, of in rows.documents.items()}
    total = sum(counts.values()) - rows.own
    if total < NEAREST * _TIMES or len(counts) < 2:
        return []
    shares = zip(*(similarity.same_language_nearest(side, rows, NEAREST) for side in nearness.sides), strict=True)
    return [
        NearestShare(tag, len(of), (counts[tag] - rows.own) / total, *share)
        for (tag, of), share in zip(rows.queries.items(), shares, strict=True)
        if tag in counts
    ]
