"""Who is trusted how far to answer a query, and where that leads it: the rule of the mode ``anchored``.

Step 1 gathers the documents that may answer. Step 2 is one search by the moved query::

    score = (1 + cos(q', z̃) + bonus · [own language] + w · BM25 / best BM25 · [gathered, other language]) / 2

with ``q'``, ``ρ`` and the probabilities ``p`` below, and ``w = s · .7 · spread · ρ(q')``: names and numbers are written
alike in many languages. Only documents that step 1 gathered are given something for their words: that measures as well
as all of them, and spares step 2 the words. What documents in the searcher's language are given is, where there are
any::

    bonus = s · spread · ρ(q') · (.7 · Σ own p^1.5 + 2 · t · Σ other p^1.5) - s · b · Σ p^1.5 + beta

An anchor in another language is the nearest to where it leads the query, and would stand before its own translation in
the searcher's language. ``t`` is how likely that translation is there, by the index's known translations (its
``counterpart``); where none are known, it is 0. ``b`` is how far documents in the searcher's language were moved
towards queries in it (the index's ``own``), and 0 where that has no preference vector: as far as the query is led, this
is taken back, so that nothing is given twice. Where the bonus is negative, its amount is added to all other documents
instead, which is the same order: a score cannot be below 0.

Words and vectors are evidence of different kinds. A document of the searcher's own language that holds rare words of
the query is likely to answer it, wherever its vector lies; one in another language can be found by its vector, and by
names and numbers. Exactly one content is thought to answer, so the candidates compete::

    u(d) = [own]   · (32 · (BM25(d) / rare)^2 / n - .5)
         + [other] · 1.43 · ln(1 + BM25(d))
         - 1.95 · (max cos - cos(q̂, z̃_d)) / (ρ(q̂) · spread)
    p(d) = exp u(d) / Σ exp u

``rare`` is what one word that no document of the language holds would be worth, ``ln(1 + (N + .5) / .5)`` for ``N``
documents, so that ``BM25 / rare`` counts how many rare words were found, in any corpus; ``n`` is how many words the
query has. With the square, a document that holds half of the question has a quarter of what all of it would be worth.
``spread`` is the standard deviation of the cosine of documents that have nothing to do with each other: models differ
in it by a factor of ten. The query is moved towards what is trusted, all vectors at length 1::

    q' = q̂ + ρ(q̂) · s · Σ p(d)^1.5 · ẑ_d

Documents hold next to nothing along the rows of B, which all queries have in common (the index's ``gamma``), and the
query, which nobody moves, has half of its length there. Only the rest tells documents apart, and what mixes queries
with documents is scaled by it::

    ρ(v) = ‖v̂ - BᵀB v̂‖        1 where gamma is 0

Where documents were moved towards queries in their own language (the index's ``own``), all of this is reckoned with
them as they were before: an anchor would lead the query to its language. Only the search by the moved query prefers.

The weights of ``m`` candidates add up to ``s`` where one alone is trusted, and to ``s / √m`` where all are trusted
alike, each times ``ρ(q̂)``: the less is known, the less the query is moved. Where the candidates are at right angles to
the query or nearer, it is moved by 45° at most.

The strength ``s``, from 0 to 1, and ``spread`` are the index's own (``langshift anchors calibrate``): words tell more
in some indices than in others. At 0 nothing is moved and nothing is added. The constants were fitted on questions cut
out of documents and on XQuAD's even articles, and hold on its odd ones, on captions asked for in other words, and on
vectors of other scale; what ``t`` and ``b`` are multiplied by, 2 and 1, was chosen on XQuAD, the demo and captions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.similarity import with_norm_1
from langshift.languages import UNDETERMINED
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.dsl import vector_of
from langshift.retrieval.hits import Anchor, ScoringContext
from langshift.retrieval.question import SearchRequest

Array = NDArray[np.float64]

_CLOSENESS: Final = 1.95
_OTHER_WORDS: Final = 1.43
_SHARPNESS: Final = 1.5

# In units of the spread, times the strength: what the searcher's language is given where all trust is in one of its
# documents, or in one of another language whose translation is sure to be there, and the words of other languages where
# they match best.
OWN_BONUS: Final = 0.7
COUNTERPART_BONUS: Final = 2.0
WORDS_BONUS: Final = 0.7

_OWN_WORDS: Final = 32.0
_OWN_PRIOR: Final = -0.5


class AnchorEvidence(NamedTuple):
    """A document that may answer the query.

    Attributes:
        own: whether it is in the searcher's language.
        words: its BM25 score; 0 where no words match, or where others were found by them instead.
        cosine: of the query's vector and its own.
    """

    own: bool
    words: float
    cosine: float


def rarest(documents: float) -> float:
    """The weight ``idf`` of a word that none of the documents holds: ``ln(1 + (N + .5) / .5)``."""
    return math.log(1 + (documents + 0.5) / 0.5)


class QueryVector(NamedTuple):
    """What is searched with.

    Attributes:
        unit: at length 1, shape (dimension,), float64.
        rho: the part of its length that documents have, too: ``ρ``, above 0 and 1 at most.
    """

    unit: Array
    rho: float


def query_vector(request: SearchRequest) -> QueryVector:
    """The question's vector.

    Raises:
        UsageError: it has none, or one of zeros.
    """
    query = with_norm_1(vector_of(request.question))
    return QueryVector(query, rho(query, request.target.shift))


def rho(vector: NDArray[np.floating[Any]], shift: StoredShift | None) -> float:
    """``ρ(v) = ‖v̂ - BᵀB v̂‖``.

    Args:
        vector: v, shape (dimension,), not of zeros.
        shift: of the index, with B where it has a gamma.
    """
    if shift is None or shift.step is None or not shift.gamma:
        return 1.0
    row, rows = with_norm_1(vector), shift.step.directions.astype(np.float64)
    return max(_LEAST_LENGTH, float(np.linalg.norm(row - row @ rows.T @ rows)))


def anchor_probabilities(gathered: Candidates, spread: float) -> Array:
    """The probability of each candidate that it answers the query, shape (candidates,), summing to 1.

    Args:
        gathered: at least one.
        spread: the index's, times ``ρ`` of the query.
    """
    own, scores, cosines = (np.array(figures) for figures in zip(*gathered.candidates, strict=True))
    found = _OWN_WORDS * (scores / rarest(gathered.documents)) ** 2 / gathered.words + _OWN_PRIOR
    utility = np.where(own, found, _OTHER_WORDS * np.log1p(scores)) - _CLOSENESS * (cosines.max() - cosines) / spread
    odds = np.exp(utility - utility.max())
    probabilities: Array = odds / odds.sum()
    return probabilities


def weights(probabilities: Array, strength: float) -> Array:
    """How far each candidate leads: ``s · p^1.5``."""
    weighted: Array = strength * probabilities**_SHARPNESS
    return weighted


def own_bonus(leads: Array, own: NDArray[np.bool_], spread: float, counterpart: float, preferred: float) -> float:
    """What the mode gives documents in the searcher's language of its own accord, in units of cosine; may be below 0.

    Args:
        leads: of the candidates, ``s · p^1.5``, shape (candidates,).
        own: whether each is in the searcher's language, shape (candidates,).
        spread: the index's, times ``ρ`` of the moved query.
        counterpart: how likely an answer in another language is there in the searcher's, see ``AnchorModel``.
        preferred: ``b``, how far documents in the searcher's language prefer it already, in units of cosine.
    """
    mine, others = float(leads[own].sum()), float(leads[~own].sum())
    return spread * (OWN_BONUS * mine + COUNTERPART_BONUS * counterpart * others) - preferred * (mine + others)


class Candidates(NamedTuple):
    """What may answer a query.

    Attributes:
        ids: of the candidates; a document without a vector is none.
        candidates: what is known of each.
        vectors: of unit length, shape (candidates, dimension), float64.
        query: the query's vector.
        words: how many different words the query has, as the analyzer of its language parts it; at least 1.
        best_words: the highest BM25 score in any language; 0 where nothing matches.
        documents: how many documents of the searcher's language a shard holds on average, each of which counts its
            words for itself; of any language where the index has text fields of its own, which all languages share.
        nearest: the cosine of the query's vector and the nearest document, as the server gave it; None where there is
            none, and where it was not asked.
    """

    ids: Sequence[str]
    candidates: Sequence[AnchorEvidence]
    vectors: Array
    query: QueryVector
    words: int
    best_words: float
    documents: float
    nearest: float | None = None


def candidates_of(
    request: SearchRequest,
    known: Mapping[str, Array],
    languages: Mapping[str, str],
    scores: Mapping[str, float],
    words: int,
) -> Candidates:
    """Put together what may answer a query.

    Args:
        request: what is searched for.
        known: candidate -> its vector of unit length, shape (dimension,).
        languages: candidate -> its language.
        scores: document -> its BM25 score, of those that words matched.
        words: see ``Candidates``.
    """
    query, own = query_vector(request), request.question.language
    vectors = np.array(list(known.values())).reshape(len(known), len(query.unit))
    found = [
        AnchorEvidence(languages[name] == own != UNDETERMINED, scores.get(name, 0.0), float(cosine))
        for name, cosine in zip(known, vectors @ query.unit, strict=True)
    ]
    best = max(scores.values(), default=0.0)
    return Candidates(list(known), found, vectors, query, words, best, own_documents(request))


def preferred_by_documents(request: SearchRequest) -> float:
    """How far documents prefer the searcher's language already, in units of cosine: the index's ``own``, or 0."""
    shift = request.target.shift
    return shift.own if shift is not None and request.question.language in shift.own_vectors else 0.0


def own_documents(request: SearchRequest) -> float:
    """How many documents of the searcher's language a shard holds on average, see ``Candidates.documents``."""
    index = request.target.index
    counted = index.counts.get(request.question.language, 0) if index.fields.split else index.documents
    return counted / index.shards


def hit_vectors(
    stored: Mapping[str, NDArray[np.float32]], languages: Mapping[str, str], shift: StoredShift | None
) -> dict[str, Array]:
    """The vectors of documents, without what moves them towards queries in their own language.

    Args:
        stored: document -> its vector as it is searched, shape (dimension,).
        languages: document -> its language.
        shift: of the index; None where it does nothing.

    Returns:
        Document -> its vector at length 1, shape (dimension,), float64.
    """
    if not stored:
        return {}
    rows = without_preference(np.array(list(stored.values())), [languages[name] for name in stored], shift)
    return dict(zip(stored, rows, strict=True))


# What an engine stores at length 1, to rounding.
_NORMALISED: Final = 1e-4


def without_preference(vectors: NDArray[np.float32], languages: Sequence[str], shift: StoredShift | None) -> Array:
    """Vectors without what moves them towards queries in their own language, at length 1, shape (documents, dimension).

    Args:
        vectors: as they are searched, of the same shape, float32.
        languages: primary tags of the documents.
        shift: of the index; None where it does nothing.
    """
    rows: NDArray[np.floating[Any]] = vectors
    if shift is not None and shift.own:
        own = np.array([shift.own_vectors.get(tag, np.zeros(vectors.shape[1])) for tag in languages])
        # Faiss keeps them at length 1, so that their preference is β and not β s.
        unit = np.abs(np.linalg.norm(vectors, axis=1, keepdims=True) - 1) < _NORMALISED
        rows = vectors.astype(np.float64) - np.where(unit, shift.own, shift.weight) * own
    return with_norm_1(rows)


# A candidate with less weight moves the query by less than a rounding of what is told of it.
_LEAST_WEIGHT: Final = 0.001
_LEAST_LENGTH: Final = 1e-6


def scoring(gathered: Candidates, request: SearchRequest) -> ScoringContext:
    """What the query is moved towards, and what is added to the cosine.

    Args:
        gathered: at least one candidate.
        request: with the index's ``SearchContext.trust``.
    """
    trust = request.target.trust
    if trust is None:
        raise ValueError("an anchored search needs the index's SearchContext.trust")
    probable = anchor_probabilities(gathered, trust.spread * gathered.query.rho)
    leads = weights(probable, trust.strength)
    added = np.where(leads >= _LEAST_WEIGHT, leads, 0.0) * gathered.query.rho
    anchors = [
        Anchor(name, float(p), float(weight), _evidence(one))
        for name, p, weight, one in zip(gathered.ids, probable, added, gathered.candidates, strict=True)
        if weight
    ]
    anchors.sort(key=lambda anchor: -anchor.weight)
    moved = moved_vector(gathered.query.unit, added, gathered.vectors)
    spread = trust.spread * rho(moved, request.target.shift)
    bonus = 0.0
    if request.has_own:
        own = np.array([one.own for one in gathered.candidates])
        bonus = own_bonus(leads, own, spread, trust.counterpart, preferred_by_documents(request)) + request.preference
    given = {
        name: trust.strength * WORDS_BONUS * spread * one.words / gathered.best_words / 2
        for name, one in zip(gathered.ids, gathered.candidates, strict=True)
        if one.words and not one.own
    }
    return ScoringContext(bonus=bonus / 2, anchors=tuple(anchors), given=given, moved=moved)


def _evidence(candidate: AnchorEvidence) -> dict[str, float]:
    return {"words": candidate.words, "cosine": candidate.cosine, "own_language": float(candidate.own)}


def moved_vector(query: Array, added: Array, vectors: Array) -> NDArray[np.float32]:
    """What the second step searches with: ``q' = q̂ + Σ w_d ẑ_d``, at length 1, shape (dimension,), float32.

    Args:
        query: q̂, of unit length, shape (dimension,).
        added: how much of each candidate is added, ``w_d = ρ(q̂) · s · p(d)^1.5``, shape (candidates,).
        vectors: of the candidates, of unit length, shape (candidates, dimension).
    """
    moved = query + added @ vectors
    # The one candidate may lie opposite the query; what is left of that has no direction.
    moved = with_norm_1(moved) if np.linalg.norm(moved) > _LEAST_LENGTH else query
    return moved.astype(np.float32)
