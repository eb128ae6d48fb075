"""How much an index takes: memory, disk, shards and hours, by formulas whose sources docs/scale.md names."""

import math
from typing import NamedTuple

from langshift.plugin.index_body import ENGINES, LUCENE, Engine

# Of a component of a vector, in memory.
_BYTES: dict[Engine, float] = {"lucene": 4, "faiss": 4, "faiss-fp16": 2, "faiss-on-disk": 1 / 8}
_NEIGHBOURS = 16  # of a node of the graph, as all engines have it where nothing else is said
_BESIDE = 200  # bytes on disk of a document beside its vector and its texts: the graph, the stamp, its id
# Of a component of a vector that `_source` holds as a decimal number, compressed.
_DECIMALS = 8.5
#: Bytes on disk that a shard has at most.
SHARD = 30e9
# What the server lets an index have.
_MOST_SHARDS = 1024
#: Documents a second that two processor cores have written, client and server together.
WRITTEN = 930.0


class IndexSize(NamedTuple):
    """What one copy of an index takes.

    Attributes:
        engine: what indexes the vectors.
        memory: bytes that searches want in memory.
        disk: bytes on disk.
        shards: how many it should have.
    """

    engine: Engine
    memory: float
    disk: float
    shards: int


def index_size(documents: int, dimension: int, engine: Engine = LUCENE, text: float = 0.0) -> IndexSize:
    """What one copy of an index takes.

    Args:
        documents: entries of the index: documents, or chunks of them.
        dimension: of their vectors.
        engine: what indexes the vectors.
        text: bytes of a document's texts and other fields, on average; 0 where nobody knows.
    """
    disk = disk_bytes(documents, dimension, engine, text)
    return IndexSize(engine, memory_bytes(documents, dimension, engine), disk, max(1, math.ceil(disk / SHARD)))


def index_sizes(documents: int, dimension: int, text: float = 0.0) -> list[IndexSize]:
    """The same for each engine; see ``index_size``."""
    return [index_size(documents, dimension, engine, text) for engine in ENGINES]


def shards_of_corpus(lines: int | None, dimension: int, engine: Engine, text: float | None) -> int:
    """How many shards an index is made with for a corpus; one where its size is not known.

    Args:
        lines: how many it has; None where nobody knows.
        dimension: of the vectors.
        engine: what indexes them.
        text: bytes of a document's texts and other fields, on average; None where nobody knows.
    """
    if lines is None or text is None:
        return 1
    return min(index_size(lines, dimension, engine, text).shards, _MOST_SHARDS)


def memory_bytes(documents: int, dimension: int, engine: Engine) -> float:
    """Bytes of the vectors and the graph of HNSW: ``1.1 · (b · d + 8 · m) · N``.

    ``b`` is bytes of a component, ``d`` the dimension, ``m`` 16, ``N`` the number of entries.
    """
    return 1.1 * (_BYTES[engine] * dimension + 8 * _NEIGHBOURS) * documents


def disk_bytes(documents: int, dimension: int, engine: Engine, text: float) -> float:
    """Bytes on disk: ``N · (4 · d + 200 + t)``, ``t`` being bytes of texts and other fields.

    Where faiss indexes the vectors, it has a file of its own, as large as what it holds in memory, and ``_source`` has
    the vectors as decimals: ``8.5 · d`` more for each entry.
    """
    whole = documents * (4 * dimension + _BESIDE + text)
    if engine == LUCENE:
        return whole
    return whole + memory_bytes(documents, dimension, engine) + documents * _DECIMALS * dimension


def hours(documents: int, rate: float) -> float:
    """Hours that so many documents take at a rate in documents a second: ``N / (3,600 · r)``."""
    return documents / (3600 * rate)
