"""Parallel text made of numbered words, and an encoder of it whose bias by language is known."""

import re
from functools import cache

import numpy as np
from advice import advised
from parallel_source import Texts

from langshift.debias.vectors import LanguageVectors

DIMENSION = 48
_WORDS = 400


def parallel_text(languages, items=100, words=24, seed=0):
    """Tag -> texts: an item says the same in every language, ``de17 de203 ...`` beside ``en17 en203 ...``."""
    numbers = np.random.default_rng(seed).integers(0, _WORDS, (items, words))
    return {tag: [" ".join(f"{tag}{word}" for word in item) for item in numbers] for tag in languages}


def write_text(folder, texts):
    """A folder of files ``<tag>.txt``, aligned by line."""
    folder.mkdir()
    for tag, lines in texts.items():
        (folder / f"{tag}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


class InMemory(Texts):
    """Parallel text in memory."""

    shown = "made up"


def direction(seed):
    """A direction of norm 1."""
    vector = np.random.default_rng(seed).standard_normal(DIMENSION)
    return vector / np.linalg.norm(vector)


def known(vectors, pairs=100_000, **more):
    """Language vectors for the planted encoder, towards English, as though fitted on other text."""
    given = {tag: np.array(vector, np.float32) for tag, vector in vectors.items()}
    counts = dict.fromkeys(given, pairs)
    return LanguageVectors("en", given, counts, "planted", "1", "", DIMENSION, False, "made up", **advised(more))


class PlantedEncoder:
    """The sum of its words' meanings, each said a little otherwise in each language, and the language's offset."""

    id = "planted"
    revision = "1"
    dimension = DIMENSION
    normalised = False
    query_prefix = ""
    document_prefix = ""
    longest = None
    window = None
    batch = 256

    def __init__(self, documents, queries=None, noise=1.0):
        """Offsets by language, of documents and of queries (the same if not given)."""
        self.offsets = (documents, documents if queries is None else queries)
        self.noise = noise
        self.meanings = np.random.default_rng(1).standard_normal((_WORDS, DIMENSION)) / DIMENSION**0.5

    def encode_documents(self, texts):
        return np.array([self._vector(text, self.offsets[0]) for text in texts], np.float32).reshape(-1, DIMENSION)

    def encode_queries(self, texts):
        return np.array([self._vector(text, self.offsets[1]) for text in texts], np.float32).reshape(-1, DIMENSION)

    def _vector(self, text, offsets):
        found = re.findall(r"([a-z]{2})(\d+)", text)
        said = [self.meanings[int(number)] + self.noise * _accent(tag, int(number)) for tag, number in found]
        return np.sum(said, axis=0) / len(said) ** 0.5 + offsets.get(found[0][0], 0.0)


@cache
def _accent(tag, number):
    return np.random.default_rng([number, *tag.encode()]).standard_normal(DIMENSION) / DIMENSION**0.5
