"""Exact rankings by cosine: pure functions, arrays in, rankings out; memory bounded by blocks of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debias import Debias
from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.offline.encoding import Encoded
from langshift.evaluate.offline.sources import Told, given
from langshift.languages import UNDETERMINED

Matrix = NDArray[np.float32]
TOP_K = 100
# Scores held at once, 4 bytes each, and vectors that are raised to 64 bits at once.
_SCORES_AT_ONCE = 1 << 25
_QUERIES_AT_ONCE = 512
_ROWS_AT_ONCE = 1 << 14


class Placed(NamedTuple):
    """Both sides as they are compared: moved by their languages, every row of norm 1.

    Attributes:
        documents: shape (documents, dimension), float32.
        queries: shape (queries, dimension), float32.
    """

    documents: Matrix
    queries: Matrix


@dataclass(frozen=True)
class Ranked:
    """What exact search found.

    Attributes:
        rankings: query id -> document ids and scores, best first.
        group_scores: query id -> document id -> score, for every passage of the query's target group.
    """

    rankings: Mapping[str, list[tuple[str, float]]]
    group_scores: Mapping[str, dict[str, float]]


def place(encoded: Encoded, debias: Debias, told: Told | None = None) -> Placed:
    """Move both sides as a method asks, and bring every vector to norm 1.

    Args:
        encoded: the vectors as the encoder makes them.
        debias: what moves documents, and queries where the method or its setting asks for it.
        told: the languages by which documents move; those of ``encoded`` if not given. Queries move by
            those of ``encoded``.

    Raises:
        UsageError: probable languages with a method that cannot take them.
        LangshiftError: a vector of which the method leaves nothing.
    """
    told = told or given(encoded)
    asked = [query.id for query in encoded.dataset.queries]
    languages = [encoded.languages.queries[name] for name in asked]
    documents = _unit_rows(
        encoded.documents, encoded.ids, "Document", lambda block, rows: told.move(debias, block, rows)
    )
    queries = _unit_rows(encoded.queries, asked, "Query", lambda block, rows: debias.queries(block, languages[rows]))
    return Placed(documents, queries)


def _unit_rows(vectors: Matrix, names: Sequence[str], what: str, move: Callable[[Matrix, slice], Matrix]) -> Matrix:
    made = np.empty(vectors.shape, np.float32)
    for start in range(0, len(made), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        block = move(np.asarray(vectors[rows]), rows).astype(np.float64)
        norms = np.linalg.norm(block, axis=1, keepdims=True)
        if not norms.all():
            name = names[start + int(np.flatnonzero(norms == 0)[0])]
            raise LangshiftError(
                f"{what} {name!r}: taking the language out leaves nothing of its vector, so it cannot be compared: "
                "take it out of the dataset, or choose another --method."
            )
        made[rows] = block / norms
    return made


def rank(
    encoded: Encoded,
    placed: Placed,
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
        placed: the vectors of both sides, of norm 1, in the order of ``encoded``.
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
    for first, scores in _blocks(placed, order):
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


def _blocks(placed: Placed, order: NDArray[np.int64]) -> Iterator[tuple[int, Matrix]]:
    """Yield the first query of each block and its scores, shape (queries, documents), float32, in ``order``.

    Products are summed up in 64 bits, so that equal vectors get equal scores wherever they stand.
    """
    count = len(order)
    size = max(1, min(_QUERIES_AT_ONCE, _SCORES_AT_ONCE // count))
    for first in range(0, len(placed.queries), size):
        block = placed.queries[first : first + size].astype(np.float64)
        scores = np.empty((len(block), count), np.float32)
        for start in range(0, count, _ROWS_AT_ONCE):
            rows = order[start : start + _ROWS_AT_ONCE]
            scores[:, start : start + len(rows)] = block @ placed.documents[rows].astype(np.float64).T
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
