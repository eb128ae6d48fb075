"""Indices of made-up documents in three languages, to be searched in every mode, and what must be found in them."""

from collections import Counter

import numpy as np
from plain_index import PLAIN

from langshift.plugin.metadata import USUAL
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.anchored import AnchorModel
from langshift.retrieval.modes import scores, search
from langshift.retrieval.settings import SearchContext, SearchQuery, SearchRequest, SearchSettings
from langshift.retrieval.steps import execute

DIMENSION = 12
LANGUAGES = ("en", "de", "th")
TRUST = AnchorModel(0.1, 0.75)
WORDS = ["sun", "moon", "tide", "sea", "bread", "oven", "yeast", "star", "ship", "port", "wind", "sand"]


class Corpus:
    """Documents ``d0``, ``d1``, ...; every fifth has no language, and every fourth no group; ``d7`` alone has a comet.

    Attributes:
        vectors: id -> vector.
        languages: id -> language, None where it has none.
        groups: id -> group, None where it has none.
        years: id -> 2000 to 2002.
    """

    def __init__(self, count=360):
        numbers = np.random.default_rng(3)
        names = [f"d{i}" for i in range(count)]
        self.vectors = dict(zip(names, numbers.standard_normal((count, DIMENSION)).astype(np.float32), strict=True))
        self.languages = {name: None if i % 5 == 4 else LANGUAGES[i % 3] for i, name in enumerate(names)}
        self.groups = {name: None if i % 4 == 3 else f"g{i // 12}" for i, name in enumerate(names)}
        self.years = {name: 2000 + i % 7 % 3 for i, name in enumerate(names)}
        self.texts = {name: " ".join(numbers.choice(WORDS, numbers.integers(2, 9))) for name in names}
        # Of legs: one hit alone, and equals.
        self.texts |= {"d7": "comet", "d8": "twin twin", "d20": "twin twin", "d21": "twin twin", "d22": "twin twin"}

    def write(self, client, index, shards):
        """Make the index, and write them to it."""
        vector = {"type": "knn_vector", "dimension": DIMENSION}
        vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        keyword = {"type": "keyword"}
        properties = {"embedding": vector, "language": keyword, "group": keyword, "year": {"type": "integer"}}
        settings = {"knn": True, "number_of_shards": shards, "number_of_replicas": 0}
        client.indices.create(
            index=index, body={"settings": {"index": settings}, "mappings": {"properties": properties}}
        )
        lines = []
        for name, given in self.vectors.items():
            document = {"embedding": given.tolist(), "language": self.languages[name], "group": self.groups[name]}
            document |= {"text": {self.languages[name] or "und": self.texts[name]}, "year": self.years[name]}
            lines += [{"index": {"_id": name}}, {k: v for k, v in document.items() if v is not None}]
        assert not client.bulk(index=index, body=lines, refresh=True)["errors"]
        counts = Counter(language for language in self.languages.values() if language)
        live = IndexInfo(index, index, PLAIN, USUAL, LANGUAGES, len(self.vectors), shards, counts, frozenset(LANGUAGES))
        return SearchContext(live, fuses=True, trust=TRUST)

    def cosines(self, vector):
        """Id -> cosine with a vector, in double precision."""
        query = np.asarray(vector, np.float64)
        query /= np.linalg.norm(query)
        return {name: float(query @ v.astype(np.float64) / np.linalg.norm(v)) for name, v in self.vectors.items()}


def asked(seed=1, language="de", words="sun moon tide"):
    """A question."""
    return SearchQuery(words, language, np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32))


def found(client, target, question, setting=None, *, size=20, **more):
    """What a search finds."""
    return execute(
        client, target.index.index, search(SearchRequest(question, setting or SearchSettings(), target, size, **more))
    )


def scored(client, target, question, setting, how, ids):
    """What a search would have given documents."""
    return execute(client, target.index.index, scores(SearchRequest(question, setting, target), how, ids))
