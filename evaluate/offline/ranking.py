"""Exact rankings by cosine: pure functions, arrays in, rankings out; memory bounded by blocks of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.dataset import Dataset
from langshift.evaluate.offline.encoding import Encoded
from langshift.ingest.methods.shift import shift
from langshift.ingest.vectors import LanguageVectors
from langshift.languages import UNDETERMINED, primary

Matrix = NDArray[np.float32]
TOP_K = 100
# Scores held at once, 4 bytes each, and documents that are raised to 64 bits at once.
_SCORES_AT_ONCE = 1 << 25
_QUERIES_AT_ONCE = 512
_DOCUMENTS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Ranked:
    """What exact search found.

    Attributes:
        rankings: query id -> document ids and scores, best first.
        group_scores: query id -> document id -> score, for every passage of the query's target group.
    """

    rankings: Mapping[str, list[tuple[str, float]]]
    group_scores: Mapping[str, dict[str, float]]


def shifted_documents(
    encoded: Encoded, vectors: LanguageVectors | None, alpha: float, alphas: Mapping[str, float] | None = None
) -> Matrix:
    """The documents' vectors in the pivot language's space, of norm 1.

    Args:
        encoded: the documents' own vectors.
        vectors: the language vectors; None shifts nothing.
        alpha: scale of the shift.
        alphas: scales of single languages, by the language vector's tag, that differ from ``alpha``.

    Returns:
        Shape (documents, dimension), float32.
    """
    keys = [
        vectors.key(tag) if vectors and tag != UNDETERMINED else None
        for tag in (encoded.languages.tags[name] for name in encoded.ids)
    ]
    scales = {key: (alphas or {}).get(key, alpha) for key in keys if key}
    made = np.empty(encoded.documents.shape, np.float32)
    for start in range(0, len(made), _DOCUMENTS_AT_ONCE):
        rows = slice(start, start + _DOCUMENTS_AT_ONCE)
        block = np.asarray(encoded.documents[rows])
        offsets = np.zeros_like(block)
        for row, key in enumerate(keys[rows]):
            if vectors and key:
                offsets[row] = vectors.vectors[key]
        factors = np.array([scales[key] if key else 0.0 for key in keys[rows]])
        made[rows] = _unit(shift(block, offsets, factors))
    return made


def _unit(vectors: Matrix) -> Matrix:
    long = vectors.astype(np.float64)
    unit: Matrix = (long / np.linalg.norm(long, axis=1, keepdims=True)).astype(np.float32)
    return unit


def rank(
    encoded: Encoded,
    documents: Matrix,
    *,
    beta: float = 0.0,
    depth: int = TOP_K,
    on_queries: Callable[[int], None] = lambda _: None,
) -> Ranked:
    """The best documents of each query by exact cosine.

    The score is ``cos(q, d)``, plus ``beta`` where the document is in the query's language. Ties break as
    trec_eval breaks them: by document id, descending, after the score as a 32-bit float.

    Args:
        encoded: the queries, the documents' ids, and the languages.
        documents: the documents' vectors, shape (documents, dimension), norm 1, in the order of ``encoded.ids``.
        beta: what a document in the query's language gets on top of its cosine.
        depth: how many documents to keep for each query.
        on_queries: called with the number of queries after each block.
    """
    # In this order, a stable sort by score alone leaves ties by document id, descending.
    order = np.array(sorted(range(len(encoded.ids)), key=encoded.ids.__getitem__, reverse=True))
    names = [encoded.ids[place] for place in order]
    languages = np.array([encoded.languages.documents[name] or UNDETERMINED for name in names])
    place = {name: position for position, name in enumerate(names)}
    targets = target_groups(encoded.dataset)
    rankings: dict[str, list[tuple[str, float]]] = {}
    groups: dict[str, dict[str, float]] = {}
    for first, scores in _blocks(encoded.queries, documents, order):
        for row, query in zip(scores, encoded.dataset.queries[first : first + len(scores)], strict=True):
            language = encoded.languages.queries[query.id]
            if beta and language:
                row[languages == language] += np.float32(beta)
            best = top(row, depth)
            rankings[query.id] = [(names[i], float(row[i])) for i in best]
            if targets[query.id]:
                groups[query.id] = {name: float(row[place[name]]) for name in targets[query.id]}
        on_queries(len(scores))
    return Ranked(rankings, groups)


def _blocks(queries: Matrix, documents: Matrix, order: NDArray[np.int64]) -> Iterator[tuple[int, Matrix]]:
    """Yield the first query of each block and its scores, shape (queries, documents), float32, in ``order``.

    Products are summed up in 64 bits, so that equal vectors get equal scores wherever they stand.
    """
    count = len(order)
    size = max(1, min(_QUERIES_AT_ONCE, _SCORES_AT_ONCE // count))
    for first in range(0, len(queries), size):
        block = _unit(np.asarray(queries[first : first + size])).astype(np.float64)
        scores = np.empty((len(block), count), np.float32)
        for start in range(0, count, _DOCUMENTS_AT_ONCE):
            rows = order[start : start + _DOCUMENTS_AT_ONCE]
            scores[:, start : start + len(rows)] = block @ documents[rows].astype(np.float64).T
        yield first, scores


def top(scores: Matrix, depth: int) -> NDArray[np.intp]:
    """The places of the highest scores, best first; among equal ones the first place comes first.

    Args:
        scores: shape (n,).
        depth: how many; all where there are fewer.
    """
    if depth >= len(scores):
        every: NDArray[np.intp] = np.argsort(-scores, kind="stable")
        return every
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    candidates = np.flatnonzero(scores >= least)
    best: NDArray[np.intp] = candidates[np.argsort(-scores[candidates], kind="stable")[:depth]]
    return best


def target_groups(dataset: Dataset) -> dict[str, Sequence[str]]:
    """Query id -> its target group: the relevant documents, and all documents of their translation groups."""
    members: dict[str, list[str]] = {}
    for name, document in dataset.documents.items():
        if document.group is not None:
            members.setdefault(document.group, []).append(name)
    targets: dict[str, Sequence[str]] = {}
    for query in dataset.queries:
        relevant = [name for name, grade in dataset.qrels.get(query.id, {}).items() if grade > 0]
        groups = (dataset.documents[name].group for name in relevant)
        together = (name for group in groups if group is not None for name in members[group])
        targets[query.id] = list(dict.fromkeys([*relevant, *together]))
    return targets


def repivoted(vectors: LanguageVectors, pivot: str) -> LanguageVectors:
    """The same language vectors towards another pivot: ``V_ℓ^p = V_ℓ − V_p``.

    The mean of differences is linear, so where all languages were fitted on the same pairs this is what a fit
    towards that pivot gives, up to rounding.

    Raises:
        UsageError: there is no vector for the new pivot.
    """
    pivot = primary(pivot)
    if pivot == vectors.pivot:
        return vectors
    if pivot not in vectors.vectors:
        known = ", ".join(sorted({vectors.pivot, *vectors.vectors}))
        raise UsageError(f"The language vectors know nothing of the pivot {pivot!r}: they have {known}.")
    origin = vectors.vectors[pivot].astype(np.float64)
    moved = {tag: (vector.astype(np.float64) - origin).astype(np.float32) for tag, vector in vectors.vectors.items()}
    del moved[pivot]
    pairs = {tag: count for tag, count in vectors.pairs.items() if tag in moved}
    return replace(
        vectors,
        pivot=pivot,
        vectors=moved | {vectors.pivot: (-origin).astype(np.float32)},
        pairs=pairs | {vectors.pivot: vectors.pairs[pivot]},
    )
