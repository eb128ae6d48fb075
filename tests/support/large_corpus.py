"""A larger corpus of made-up words and given vectors, in translation groups, and questions about its documents."""

import numpy as np
import orjson

from langshift.retrieval.question import SearchQuery

LANGUAGES = ("ar", "de", "en", "es", "ru", "th", "tr", "zh")
GROUPS, THEMES, DIMENSION = 2500, 150, 256
VOCABULARY, WORDS, ASKED_WORDS = 20_000, 60, 9
# The share of words that are written alike in every language: names and numbers.
SHARED = 0.05
# Lengths of the parts of a vector: its theme, what it says, its language, and the rest.
_THEME, _GROUP, _LANGUAGE, _NOISE = 0.8, 0.7, 0.6, 0.5
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


class LargeCorpus:
    """Every group is there in every language; documents of a theme lie near each other, and those of a language.

    Words are drawn by Zipf's law out of a vocabulary of each language and one that all share, in other orders for
    each theme's group, so that translations share names and nothing else.
    """

    def __init__(self, seed=0):
        self._numbers = np.random.default_rng(seed)
        themes = self._directions(THEMES)
        self._themes = self._numbers.integers(THEMES, size=GROUPS)
        self._groups = _THEME * themes[self._themes] + _GROUP * self._directions(GROUPS)
        self._languages = dict(zip(LANGUAGES, _LANGUAGE * self._directions(len(LANGUAGES)), strict=True))
        self._vocabularies = {tag: self._vocabulary() for tag in (*LANGUAGES, "shared")}
        weights = 1 / np.arange(1, VOCABULARY + 1)
        self._zipf = np.cumsum(weights / weights.sum())
        self._texts = {}

    def write(self, path):
        """Write the documents as JSON Lines."""
        with path.open("wb") as file:
            for group in range(GROUPS):
                names = self._drawn("shared", int(WORDS * SHARED))
                vectors = self._vectors([(group, tag) for tag in LANGUAGES])
                for tag, vector in zip(LANGUAGES, vectors, strict=True):
                    words = [*names, *self._drawn(tag, WORDS - len(names))]
                    self._texts[group, tag] = words
                    line = {"_id": f"{group}-{tag}", "text": " ".join(words), "language": tag, "group": str(group)}
                    line |= {"embedding": vector}
                    file.write(orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))

    def questions(self, count):
        """Questions about documents that were written, with words of theirs, as many in each language."""
        asked = [(int(self._numbers.integers(GROUPS)), LANGUAGES[i % len(LANGUAGES)]) for i in range(count)]
        words = [" ".join(self._numbers.choice(self._texts[one], ASKED_WORDS, replace=False)) for one in asked]
        told = zip(words, asked, self._vectors(asked), strict=True)
        return [SearchQuery(text, tag, vector) for text, (_, tag), vector in told]

    def _vectors(self, named):
        noise = _NOISE * self._directions(len(named))
        return (np.array([self._groups[group] + self._languages[tag] for group, tag in named]) + noise).astype("f4")

    def _directions(self, count):
        """Random vectors of length 1, shape (count, dimension)."""
        made = self._numbers.standard_normal((count, DIMENSION))
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def _vocabulary(self):
        lengths = self._numbers.integers(3, 11, size=VOCABULARY)
        letters = self._numbers.choice(_LETTERS, size=(VOCABULARY, 10))
        return ["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)]

    def _drawn(self, name, count):
        vocabulary = self._vocabularies[name]
        return [vocabulary[place] for place in np.searchsorted(self._zipf, self._numbers.random(count))]


_BLOCK = 10_000


def write_given(path, count, dimension):
    """Write short documents with random vectors, a block at a time."""
    made = np.random.default_rng(0)
    with path.open("wb") as file:
        for first in range(0, count, _BLOCK):
            vectors = made.standard_normal((min(_BLOCK, count - first), dimension), np.float32)
            for number, vector in enumerate(vectors, start=first):
                document = {"_id": f"d{number}", "text": f"Document {number}.", "language": "en", "embedding": vector}
                file.write(orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
