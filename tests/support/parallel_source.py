"""Parallel text and given vectors in memory, for tests of what fits on them."""

import numpy as np

from langshift.debias.encoders.base import VectorSpec
from langshift.debias.encoders.precomputed import PrecomputedEncoder
from langshift.debias.parallel.columns import ParallelRows, ParallelText


class Texts(ParallelText):
    """Texts by language, the same row the same in every one."""

    shown = "made"
    dimension = None

    def __init__(self, texts):
        self.texts, self.languages = texts, sorted(texts)
        self.total = len(next(iter(texts.values())))

    def batches(self, size):
        for start in range(0, self.total, size):
            part = slice(start, start + size)
            texts = {tag: lines[part] for tag, lines in self.texts.items()}
            yield ParallelRows([f"line {start + i + 1}" for i in range(len(texts[self.languages[0]]))], texts, {})


class Vectors(ParallelText):
    """Given vectors by language, NaN in rows without one."""

    shown = "made"

    def __init__(self, vectors):
        self.vectors = {tag: np.asarray(rows, np.float32) for tag, rows in vectors.items()}
        self.languages = sorted(vectors)
        self.total, self.dimension = self.vectors[self.languages[0]].shape

    def batches(self, size):
        for start in range(0, self.total, size):
            vectors = {tag: rows[start : start + size] for tag, rows in self.vectors.items()}
            yield ParallelRows([f"row {start + i + 1}" for i in range(len(vectors[self.languages[0]]))], {}, vectors)


def given_encoder():
    """The encoder of given vectors; how long they are is their source's business."""
    return PrecomputedEncoder("", VectorSpec(0, normalised=False))
