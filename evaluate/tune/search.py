"""Exact search of a tuning task: the candidates of each query at one setting, and its figures at any preference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import Debiaser
from langshift.evaluate.compare.significance import Floats
from langshift.evaluate.offline.ranking import debias_vectors, score_blocks, top
from langshift.evaluate.tune.task import Mask, TuningTask

TARGET, COST = "TLR@20", "SLR@20"
MEASURES = (TARGET, COST, "nDCG@20", "R@20")
_DEPTH = 20


class TuningCandidates(NamedTuple):
    """Each query's first 20 documents in its own language, and its first 20 in all others.

    Whatever a document in the query's language gets on top of its cosine, the first 20 of all are among these.

    Attributes:
        scores: cosines, own language first, each half descending, shape (queries, 40), float32.
        right: whether a document is of the query's item, likewise, bool.
        answers: how many documents are of the query's item, its own among them, shape (queries,).
    """

    scores: NDArray[np.float32]
    right: NDArray[np.bool_]
    answers: NDArray[np.int64]

    def figures(self, preference: float) -> Mapping[str, Floats]:
        """Measure -> each query's figure, shape (queries,).

        Args:
            preference: what a document in the query's language gets on top of its cosine.
        """
        scores = self.scores.copy()
        scores[:, :_DEPTH] += np.float32(preference)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :_DEPTH]
        right, own = np.take_along_axis(self.right, order, axis=1), order < _DEPTH
        gains = 1 / np.log2(np.arange(2, _DEPTH + 2))
        ideal = np.cumsum(gains)[np.minimum(self.answers, _DEPTH) - 1]
        return {
            TARGET: (right & ~own).sum(axis=1) / (self.answers - 1),
            COST: (right & own).sum(axis=1, dtype=np.float64),
            "nDCG@20": right @ gains / ideal,
            "R@20": right.sum(axis=1) / self.answers,
        }

    def thresholds(self) -> Floats:
        """The preference from which on each query's answer in its own language is among the first 20.

        Shape (queries,), float64; infinite where 20 documents in that language are before it.
        """
        own = self.right[:, :_DEPTH]
        rank = own.argmax(axis=1)
        rows = np.arange(len(rank))
        # With so many of its own language before it, that many of the others may be, too.
        rival = self.scores[rows, 2 * _DEPTH - 1 - rank].astype(np.float64)
        return np.where(own.any(axis=1), rival - self.scores[rows, rank], np.inf)


def find_candidates(task: TuningTask, mask: Mask, debias: Debiaser) -> TuningCandidates:
    """Search a task's documents with some of its queries.

    Args:
        task: encoded questions and items.
        mask: which queries, shape (queries,).
        debias: what moves both sides.
    """
    encoded = task.with_queries(mask)
    order = np.array(sorted(range(len(encoded.ids)), key=encoded.ids.__getitem__, reverse=True))
    items, tags = task.document_items[order], task.document_languages[order]
    asked = task.items[mask]
    languages = task.languages[mask]
    scores = np.empty((len(asked), 2 * _DEPTH), np.float32)
    right = np.empty(scores.shape, bool)
    places = {tag: (np.flatnonzero(tags == tag), np.flatnonzero(tags != tag)) for tag in set(languages.tolist())}
    for first, block in score_blocks(debias_vectors(encoded, debias), order):
        for row, cosines in enumerate(block, first):
            best = [side[top(cosines[side], _DEPTH)] for side in places[languages[row]]]
            chosen = np.concatenate(best)
            scores[row], right[row] = cosines[chosen], items[chosen] == asked[row]
    answers = np.bincount(task.document_items)[asked]
    return TuningCandidates(scores, right, answers)
