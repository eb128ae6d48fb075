"""Encoders of weights and of vectors of tokens that need no model: what they make can be read off the text."""

from __future__ import annotations

import hashlib
import re
from functools import partial

import numpy as np
import pytest

from langshift.debias.encoders import token_vectors
from langshift.ingest import representations

#: The one model lies in two places; the other is another.
PLACES = {"st:one": "1", "st:moved": "1", "st:two": "2"}
DIMENSION = 4


def weights(text: str, revision: str = "1") -> dict[str, float]:
    """Each word longer than three letters, with a weight that no half of a float holds exactly."""
    words = [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3]
    return {word: words.count(word) + len(word) / 10 * float(revision) for word in words}


class PlantedSparse:
    """Weights of ``weights``, and what was asked for."""

    def __init__(self, name: str) -> None:
        self.id, self.revision = name, PLACES[name]
        self.asked: list[str] = []

    def encode_documents(self, texts):
        self.asked += texts
        return [weights(text, self.revision) for text in texts]

    encode_queries = encode_documents


class PlantedTokens(PlantedSparse):
    """A vector for each of these words."""

    dimension = DIMENSION

    def encode_documents(self, texts):
        self.asked += texts
        return [
            np.array([_vector(word) for word in weights(text)], np.float32).reshape(-1, DIMENSION) for text in texts
        ]


def _vector(word: str):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    row = np.random.default_rng(seed).standard_normal(DIMENSION)
    return row / np.linalg.norm(row)


class Planted:
    """Opens them by their names, and others as ever.

    Attributes:
        opened: all that were opened.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.opened: list[PlantedSparse] = []
        # `pack` without the pooling, which needs an extra.
        patch.setattr(token_vectors, "pool", lambda matrix: matrix)
        for module, name, kind in (
            (representations, "open_sparse", PlantedSparse),
            (token_vectors, "open_token_encoder", PlantedTokens),
        ):
            patch.setattr(module, name, partial(self._open, kind, getattr(module, name)))

    def _open(self, kind, usual, name, **more):
        if name not in PLACES:
            return usual(name, **more)
        self.opened.append(kind(name))
        return self.opened[-1]

    @property
    def asked(self) -> list[str]:
        """The texts that any of them has encoded."""
        return [text for one in self.opened for text in one.asked]
