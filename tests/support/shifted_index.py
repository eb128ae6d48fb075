"""A small index of given vectors that are shifted by made-up language vectors, and what must be in it."""

import json
from dataclasses import replace

import numpy as np
from advice import advised
from given_data import run, write_lines

from langshift.debias.debiaser import shifted
from langshift.debias.fitting.directions import principal_directions
from langshift.debias.vectors import LanguageVectors

DIMENSION = 6
PIVOT = "en"
# Tag that a document names -> tag of the vector that it takes; None stays as it is.
LANGUAGES = {"en": None, "de": "de", "de-AT": "de", "th": "th", "zh-TW": "zh-TW", "zh": None, "vi": None, "und": None}


def language_vectors(seed=1, tags=("de", "th", "zh-TW"), pivot=PIVOT, dimension=DIMENSION, **fields):
    """Language vectors of norms of about 1 to 5 for embeddings that are given."""
    numbers = np.random.default_rng(seed)
    made = LanguageVectors(
        pivot=pivot,
        vectors={tag: (2 * numbers.standard_normal(dimension)).astype(np.float32) for tag in tags},
        pairs=dict.fromkeys(tags, 9),
        encoder="given",
        revision="",
        document_prefix="",
        dimension=dimension,
        normalised=False,
        source="made up",
    )
    return replace(made, **advised(fields))


def with_directions(vectors, rank=2):
    """The same with a common mean, and directions of queries for a gamma."""
    numbers = np.random.default_rng(5)
    mean, *rows = numbers.standard_normal((rank + 1, vectors.dimension))
    common = {"documents": mean.astype(np.float32), "queries": mean.astype(np.float32)}
    return replace(vectors, common=common, query_directions=principal_directions(np.array(rows), rank))


def preferring(known, norm=1.0):
    """Language vectors of the lengths that they have for embeddings of a norm, with all that a gamma and a β take."""
    means = np.random.default_rng(9).standard_normal((2, known.dimension))
    documents, queries = (np.float32(0.8 * norm * mean / np.linalg.norm(mean)) for mean in means)
    vectors = {tag: np.float32(0.4 * norm * one / np.linalg.norm(one)) for tag, one in known.vectors.items()}
    made = replace(known, vectors=vectors, common={"documents": documents, "queries": queries}).with_rank(2)
    spoken = ("de", "en", "th")
    own = np.random.default_rng(8).standard_normal((len(spoken), known.dimension)).astype(np.float32)
    return replace(made, own_vectors=dict(zip(spoken, own, strict=True)), scatter=[0.5 * norm**2, 0.0, 0.0])


def shortened(vectors):
    """The same language vectors and means with a norm of 1, as encoders have about; the directions stay."""
    parts = {name: getattr(vectors, name) for name in ("vectors", "common")}
    return replace(
        vectors,
        **{
            name: {tag: (one / np.linalg.norm(one)).astype(np.float32) for tag, one in part.items()}
            for name, part in parts.items()
        },
    )


def saved(folder, vectors, name="v.safetensors"):
    """The path of a file of these vectors."""
    path = folder / name
    vectors.save(path)
    return path


class Corpus:
    """Documents of all ``LANGUAGES``, with vectors of norms of 1 to 50; ``raw`` are those as they were given."""

    def __init__(self, folder, each=3):
        numbers = np.random.default_rng(7)
        self.languages = {f"{tag}-{n}": tag for tag in LANGUAGES for n in range(each)}
        vectors = numbers.standard_normal((len(self.languages), DIMENSION))
        vectors *= (np.geomspace(1, 50, len(vectors)) / np.linalg.norm(vectors, axis=1))[:, None]
        self.raw = dict(zip(self.languages, vectors.astype(np.float32).astype(np.float64), strict=True))
        self.path = write_lines(folder / "corpus.jsonl", [self.line(name) for name in self.languages])

    def line(self, name):
        """A document as its line says."""
        tag = self.languages[name]
        return {"_id": name, "text": f"Text {name}", "language": tag, "embedding": self.raw[name].tolist()}

    def ingest(self, name, *options):
        """Load it by the command line."""
        done = run("ingest", self.path, "--index", name, "--encoder", "given", *options)
        assert done.exit_code == 0, (done.output, done.exception)

    def expected(self, name, vectors, alpha, alphas=None, gamma=0.0):
        """What a document's vector must be."""
        key = vectors.key(self.languages[name]) if self.languages[name] != "und" else None
        stamp = {"alpha": (alphas or {}).get(key, alpha), "language": key, "gamma": gamma}
        return shifted(self.raw[name], stamp, vectors).astype(np.float64)


def sources(client, index):
    """Document id -> what is stored, after a refresh."""
    client.indices.refresh(index=index)
    found = client.search(index=index, body={"size": 1000})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in found}


def require_vectors(client, index, corpus, vectors, alpha, alphas=None, gamma=0.0, tolerance=1e-6):
    """Every vector as it must be, relative to the norm of what was given, and every stamp as ``ingest`` writes it."""
    stored = sources(client, index)
    assert set(stored) == set(corpus.languages)
    for name, source in stored.items():
        there = np.array(source["embedding"], np.float32).astype(np.float64)
        error = np.abs(there - corpus.expected(name, vectors, alpha, alphas, gamma)).max()
        assert error <= tolerance * np.linalg.norm(corpus.raw[name]), (name, error)
        key = vectors.key(corpus.languages[name]) if corpus.languages[name] != "und" else None
        assert source["shift"]["vectors"] == vectors.hash
        assert source["shift"]["alpha"] == (0.0 if key is None else (alphas or {}).get(key, alpha))
        assert source["shift"].get("language") == key, name
        assert source["shift"].get("gamma", 0.0) == gamma


def printed(done):
    """The JSON document that a command printed."""
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def refused(done):
    """The sentence and the exit code with which a command refused."""
    error = done.exception
    assert hasattr(error, "exit_code"), (done.output, error)
    return str(error), error.exit_code
