"""A small deterministic encoder for tests of what surrounds an encoder."""

import hashlib

import numpy as np


class ToyEncoder:
    """Vectors of 8 dimensions and any norm, from a hash of the text."""

    id = "toy"
    revision = "1"
    dimension = 8
    normalised = False
    query_prefix = "query: "
    document_prefix = "passage: "
    longest = 40
    window = None
    batch = 256

    def __init__(self, norm=7.0):
        self.norm = norm
        self.seen = []

    def encode_documents(self, texts):
        self.seen.extend(texts)
        return np.array([self._vector(self.document_prefix + text) for text in texts], np.float32).reshape(-1, 8)

    def encode_queries(self, texts):
        return np.array([self._vector(self.query_prefix + text) for text in texts], np.float32).reshape(-1, 8)

    def _vector(self, text):
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(8)
        return self.norm * vector / np.linalg.norm(vector)
