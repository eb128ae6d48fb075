"""Indices of made-up documents in three languages, to be searched in every mode, and what must be found in them."""

from collections import Counter
from types import MappingProxyType

import msgspec
import numpy as np
from plain_index import PLAIN
from search_request import index_filter

from langshift.plugin.metadata import USUAL, ChunkPlace, FieldNames, chunk_id
from langshift.plugin.representations import SPARSE_FIELD, SparseWeights
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.entries import scores
from langshift.retrieval.plans import execute, execute_many
from langshift.retrieval.question import AnchorModel, SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import MODES, SearchSettings
from langshift.retrieval.rerank import stage
from langshift.retrieval.search import search

DIMENSION = 12
LANGUAGES = ("en", "de", "th")
TRUST = AnchorModel(0.1, 0.75)
#: Modes in which an index is searched that has no weights of tokens.
WITHOUT_WEIGHTS = tuple(mode for mode in MODES if mode != "sparse")
TOKENS = ["a.b.c", *map(str, range(40))]
SPARSE = SparseWeights(encoder="given", revision="")
WORDS = ["sun", "moon", "tide", "sea", "bread", "oven", "yeast", "star", "ship", "port", "wind", "sand"]


class Corpus:
    """Documents ``d0``, ``d1``, ...; every fifth has no language, and every fourth no group; ``d7`` alone has a comet.

    Attributes:
        vectors: id -> vector.
        languages: id -> language, None where it has none.
        groups: id -> group, None where it has none.
        years: id -> 2000 to 2002.
        weights: id -> token -> weight, of some; no token of ``d7`` is one of another's.
    """

    fields = msgspec.structs.replace(USUAL, sparse=SPARSE_FIELD)
    #: How the index keeps the vectors.
    kept = MappingProxyType({"method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}})

    def __init__(self, count=360):
        numbers = np.random.default_rng(3)
        names = [f"d{i}" for i in range(count)]
        self.vectors = dict(zip(names, numbers.standard_normal((count, DIMENSION)).astype(np.float32), strict=True))
        self.languages = {name: None if i % 5 == 4 else LANGUAGES[i % 3] for i, name in enumerate(names)}
        self.groups = {name: None if i % 4 == 3 else f"g{i // 12}" for i, name in enumerate(names)}
        self.years = {name: 2000 + i % 7 % 3 for i, name in enumerate(names)}
        self.texts = {name: " ".join(numbers.choice(WORDS, numbers.integers(2, 9))) for name in names}
        self.weights = {name: weights_of(numbers) for name in names if name != "d5"} | {"d7": {"comet": 3.0}}
        # Of legs: one hit alone, and equals.
        self.texts |= {"d7": "comet", "d8": "twin twin", "d20": "twin twin", "d21": "twin twin", "d22": "twin twin"}

    def write(self, client, index, shards):
        """Make the index, and write them to it."""
        vector = {"type": "knn_vector", "dimension": DIMENSION, **self.kept}
        keyword = {"type": "keyword"}
        properties = {"embedding": vector, "year": {"type": "integer"}, SPARSE_FIELD: {"type": SPARSE.field_type}}
        properties |= dict.fromkeys(("language", "group", "parent"), keyword)
        settings = {"knn": True, "number_of_shards": shards, "number_of_replicas": 0}
        client.indices.create(
            index=index, body={"settings": {"index": settings}, "mappings": {"properties": properties}}
        )
        lines = []
        for name, given in self.vectors.items():
            document = {"embedding": given.tolist(), "language": self.languages[name], "group": self.groups[name]}
            document |= {"text": {self.languages[name] or "und": self.texts[name]}, "year": self.years[name]}
            document |= {SPARSE_FIELD: self.weights.get(name)} | self.place(name)
            lines += [{"index": {"_id": name}}, {k: v for k, v in document.items() if v is not None}]
        assert not client.bulk(index=index, body=lines, refresh=True)["errors"]
        counts = Counter(language for language in self.languages.values() if language)
        fields, texts = self.fields, frozenset(LANGUAGES)
        live = IndexInfo(
            index, index, PLAIN, fields, LANGUAGES, len(self.vectors), shards, counts, texts, sparse=SPARSE
        )
        return SearchContext(live, fuses=True, trust=TRUST)

    def place(self, _name):
        """What fields a chunk has more than a whole document."""
        return {}

    def cosines(self, vector):
        """Id -> cosine with a vector, in double precision."""
        query = np.asarray(vector, np.float64)
        query /= np.linalg.norm(query)
        return {name: float(query @ v.astype(np.float64) / np.linalg.norm(v)) for name, v in self.vectors.items()}


class ChunkCorpus(Corpus):
    """Chunks of documents ``o0``, ``o1``, ...; those of ``o0`` lie side by side, and the last three name no document.

    Attributes:
        sizes: document -> how many chunks it has.
        hot: what the chunks of ``o0`` are nearest to.
    """

    fields = FieldNames(parent="parent", chunking="paragraphs", sparse=SPARSE_FIELD)

    def __init__(self, documents=90, most=9, long=130):
        numbers = np.random.default_rng(5)
        self.sizes = {f"o{i}": int(numbers.integers(1, most + 1)) for i in range(documents)} | {"o0": long}
        names = [chunk_id(document, ordinal) for document, size in self.sizes.items() for ordinal in range(size)]
        self.nameless = ("lone1", "lone2", "lone3")
        names += self.nameless
        vectors = numbers.standard_normal((len(names), DIMENSION)).astype(np.float32)
        self.hot = vectors[0].copy()
        vectors[:long] = self.hot + 0.2 * vectors[:long]
        self.vectors = dict(zip(names, vectors, strict=True))
        place = {name: int(self.document(name).strip("olne")) for name in names}
        # A third of the documents is in one language, the others change it with each chunk.
        self.languages = {n: LANGUAGES[(place[n] + (place[n] % 3 > 0) * i) % 3] for i, n in enumerate(names)}
        self.groups = {n: None if place[n] % 4 == 3 else f"g{place[n] // 6}" for n in names}
        self.years = {name: 2000 + place[name] % 3 for name in names}
        self.texts = {name: " ".join(numbers.choice(WORDS, numbers.integers(2, 9))) for name in names}
        self.weights = {name: weights_of(numbers) for name in names}

    def document(self, name):
        """The document that an entry is of, or itself."""
        return name.partition("#")[0]

    def place(self, name):
        """The document of a chunk, and which it is."""
        document, _, ordinal = name.partition("#")
        if not ordinal:
            return {}
        place = ChunkPlace(int(ordinal), 100 * int(ordinal), 100 * int(ordinal) + 99, self.sizes[document])
        return {"parent": document, "chunk": place.to_dict()}


def weights_of(numbers):
    """Weights of some ten tokens, of which one has dots in its name."""
    tokens = numbers.choice(TOKENS, numbers.integers(4, 16), replace=False)
    return {str(token): float(weight) for token, weight in zip(tokens, numbers.gamma(2, size=len(tokens)), strict=True)}


def asked(seed=1, language="de", words="sun moon tide"):
    """A question; that of the word ``comet`` has its token alone."""
    numbers = np.random.default_rng(seed)
    vector = numbers.standard_normal(DIMENSION).astype(np.float32)
    return SearchQuery(words, language, vector, {"comet": 1.0} if words == "comet" else weights_of(numbers))


def found(client, target, question, setting=None, *, size=20, reranker=None, filters=None, **more):
    """What a search finds."""
    request = SearchRequest(
        question, setting or SearchSettings("dense"), target, size, filters=index_filter(filters), **more
    )
    plan = search(request) if reranker is None else stage.search(request, reranker)
    return execute(client, target.index.index, plan)


def found_by_each(client, target, question, settings, *, size=20, filters=None):
    """What searches in several settings find, asked together as a replay asks."""
    clauses = index_filter(filters)
    plans = [search(SearchRequest(question, setting, target, size, filters=clauses)) for setting in settings]
    return list(execute_many(client, target.index.index, plans))


def scored(client, target, question, setting, how, ids):
    """What a search would have given documents."""
    given = scores if setting.rerank is None else stage.scores
    return execute(client, target.index.index, given(SearchRequest(question, setting, target), how, ids))
