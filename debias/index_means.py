"""Language vectors and common means brought closer to an index's own kind of text, by its own documents.

Of n_ℓ documents in language ℓ, with the mean embedding z̄_ℓ as the encoder makes them, count
``c_ℓ = n_ℓ / (n_ℓ + 10)``. Less its language vector every mean should be the common one:

    r_ℓ = z̄_ℓ − V_ℓ                    (V of the pivot is 0)
    m   = (Σ_ℓ c_ℓ r_ℓ + m_D) / (Σ_ℓ c_ℓ + 1)
    w_ℓ = c_ℓ / 3
    V'_ℓ = V_ℓ + w_ℓ (r_ℓ − m) − w_pivot (r_pivot − m)
    m_D' = (Σ_ℓ c_ℓ (z̄_ℓ − V'_ℓ) + m_D) / (Σ_ℓ c_ℓ + 1)

An average over languages hardly holds what the documents are about, so that the common mean is the index's own. A
language's mean does hold that, so most of V' stays what parallel text says. Queries follow: ``V^Q'_ℓ = V^Q_ℓ + V'_ℓ −
V_ℓ`` and ``m_Q' = m_Q + m_D' − m_D``; where some are known, m_Q' is measured on them as m_D' is on documents.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.vectors import DOCUMENTS, QUERIES, LanguageVectors, Vectors, vector_tag
from langshift.output import pluralize

#: Documents that tell enough: with more, figures hardly change.
SAMPLE = 1000
# Documents of which a language's mean counts half, what the fitted common mean counts beside languages that count 1
# each, and how much of the differences between languages is the index's own at most.
_HALF, _FITTED, _MOST = 10, 1.0, 1 / 3

Floats = NDArray[np.float64]


class EmbeddingSums:
    """Sums of embeddings by the language vector that each would take, the pivot's under its own tag.

    Attributes:
        counts: tag -> embeddings in its sum; ``und`` and languages without a vector are left out.
        seen: usable embeddings in any language.
    """

    def __init__(self, known: LanguageVectors) -> None:
        self._tags = {*known.vectors, known.pivot}
        self._totals: dict[str, Floats] = {}
        self.counts: Counter[str] = Counter()
        self.seen = 0

    def add(self, vectors: NDArray[np.float32], languages: Sequence[str | None]) -> None:
        """Add embeddings; those of length 0, or with values that are not numbers, do not count.

        Args:
            vectors: as the encoder makes them, shape (n, d), float32.
            languages: each one's tag; ``und`` or None where unknown.
        """
        for vector, language in zip(vectors.astype(np.float64), languages, strict=True):
            if not np.isfinite(vector).all() or not vector.any():
                continue
            self.seen += 1
            tag = vector_tag(language, None, self._tags) if language else None
            if tag is not None:
                self.counts[tag] += 1
                self._totals[tag] = self._totals.get(tag, 0.0) + vector

    def mean(self, tag: str) -> Floats:
        """Return the mean embedding of a language that has any, shape (d,), float64."""
        mean: Floats = self._totals[tag] / self.counts[tag]
        return mean

    def common(self, vectors: Vectors, fitted: Floats | None) -> Floats:
        """Return the mean over languages of what their vectors leave of them, shape (d,), float64.

        Args:
            vectors: tag -> V_ℓ; one that is not there, as the pivot's, is 0.
            fitted: the common mean of parallel text, shape (d,), float64; None where nobody measured.
        """
        weights = {tag: _weight(count) for tag, count in self.counts.items()}
        total = sum(weight * (self.mean(tag) - vectors.get(tag, 0.0)) for tag, weight in weights.items())
        if fitted is None:
            return np.asarray(total) / sum(weights.values())
        return (total + _FITTED * fitted) / (sum(weights.values()) + _FITTED)


def _weight(count: int) -> float:
    return count / (count + _HALF)


def adapted(known: LanguageVectors, documents: EmbeddingSums, queries: EmbeddingSums | None = None) -> LanguageVectors:
    """Bring language vectors and common means closer to an index's own text; see the module for the equations.

    Args:
        known: fitted on parallel text.
        documents: of the index.
        queries: that are searched for there, of the same encoder; None or without any moves their mean as documents'.

    Returns:
        The vectors of documents and queries and the common means, where ``known`` has any; the rest as in ``known``
        but for what was fitted for other methods, which is left out. ``measured`` tells how much is the index's own.
        Without a document in any of its languages the vectors and means of ``known``, bit for bit.
    """
    shares = {tag: _MOST * _weight(count) for tag, count in sorted(documents.counts.items())}
    moved = _moved(known, documents, shares) if shares else {}
    vectors = _added(known.vectors, moved)
    query_vectors = _added(known.query_vectors, moved)
    common = dict(known.common)
    if common and (shares or (queries and queries.counts)):
        m_d, m_q = (common[side].astype(np.float64) for side in (DOCUMENTS, QUERIES))
        now = documents.common(vectors, m_d) if shares else m_d
        asked = m_q + now - m_d
        if queries is not None and queries.counts:
            asked = queries.common({**vectors, **query_vectors}, asked)
        common = {DOCUMENTS: now.astype(np.float32), QUERIES: asked.astype(np.float32)}
    measured = {
        "vectors": known.hash,
        "documents": documents.counts.total(),
        "queries": queries.counts.total() if queries else 0,
        "shares": {tag: round(share, 3) for tag, share in shares.items()},
    }
    kept = {field.name: getattr(known, field.name) for field in fields(LanguageVectors)}
    found = {"vectors": vectors, "query_vectors": query_vectors, "common": common, "measured": measured}
    return LanguageVectors(**{**kept, **found, "means": {}, "directions": {}, "maps": {}})


def _moved(known: LanguageVectors, documents: EmbeddingSums, shares: Mapping[str, float]) -> dict[str, Floats]:
    """Tag -> ``V'_ℓ − V_ℓ``, of all languages that have a vector."""
    fitted = known.common[DOCUMENTS].astype(np.float64) if known.common else None
    mean = documents.common(known.vectors, fitted)
    own = {tag: share * (documents.mean(tag) - known.vectors.get(tag, 0.0) - mean) for tag, share in shares.items()}
    pivot = own.get(known.pivot, np.zeros(known.dimension))
    return {tag: own.get(tag, 0.0) - pivot for tag in known.vectors}


def _added(vectors: Vectors, steps: Mapping[str, Floats]) -> dict[str, NDArray[np.float32]]:
    return {
        tag: (vector.astype(np.float64) + steps[tag]).astype(np.float32) if tag in steps else vector
        for tag, vector in vectors.items()
    }


def measured_in_words(measured: Mapping[str, Any]) -> str:
    """How much was taken from an index's own text, in a sentence.

    Args:
        measured: of language vectors, or ``Fingerprint.means``; not empty.
    """
    if not measured["documents"]:
        return "The common mean is that of the language vectors: no document was in a language that they know."
    by_share: dict[str, list[str]] = {}
    for tag, share in sorted(measured["shares"].items(), key=lambda one: -one[1]):
        by_share.setdefault(f"{share:.0%}", []).append(tag)
    shares = ", ".join(f"{share} ({', '.join(tags)})" for share, tags in by_share.items())
    asked = measured["queries"]
    queries = f" and {asked:,} {'query' if asked == 1 else 'queries'}" if asked else ""
    return (
        f"The common mean was measured on {pluralize(measured['documents'], 'document')}{queries}; of the differences "
        f"between languages {shares} are the index's own."
    )
