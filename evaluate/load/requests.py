"""Making requests before the clock runs: vectors, bodies, and the order in which they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.dataset import Query
from langshift.evaluate.load.answer import Request
from langshift.evaluate.load.schedule import rotated
from langshift.ingest.detect import open_detector
from langshift.ingest.encoders import is_given
from langshift.ingest.encoding import query_vectors
from langshift.ingest.making import LEAST_CONFIDENCE
from langshift.ingest.search import Searcher
from langshift.plugin.template import text_language

Mode = Literal["dense", "lexical"]
TOP_K = 100
MOST_BYTES = 2_000_000_000
_ENCODE_AT_ONCE = 256


def encode(
    searcher: Searcher, queries: Sequence[Query], on_batch: Callable[[int], None] = lambda _: None
) -> NDArray[np.float32]:
    """The vectors of queries, shape (queries, dimension), float32.

    Args:
        searcher: the index's own way to encode queries.
        queries: whose texts are encoded; texts that come again are encoded once.
        on_batch: called with the number of texts after each batch.

    Raises:
        UsageError: a query without a vector of the index's dimension, where vectors come with the data.
    """
    if is_given(searcher.encoder.id):
        return query_vectors(searcher.encoder, queries)
    rows = {text: row for row, text in enumerate(dict.fromkeys(query.text for query in queries))}
    texts = list(rows)
    batches = []
    for start in range(0, len(texts), _ENCODE_AT_ONCE):
        batch = texts[start : start + _ENCODE_AT_ONCE]
        batches.append(searcher.encode(batch))
        on_batch(len(batch))
    return np.concatenate(batches)[[rows[query.text] for query in queries]]


def languages(queries: Sequence[Query]) -> dict[str, str | None]:
    """Query id -> the language that the query names, else the detected one; None where it is not clear.

    Detection is not restricted to an index's languages, as searching does: a question in a language that
    the index lacks has no documents in its own language, and must not count as having some.
    """
    found = {query.id: query.language for query in queries}
    unnamed = [query for query in queries if query.language is None]
    detector = open_detector() if unnamed else None
    for query in unnamed:
        detected = detector.detect(query.text) if detector else None
        if detected and detected.confidence >= LEAST_CONFIDENCE:
            found[query.id] = text_language(detected.language)
    return found


def bodies(
    searcher: Searcher,
    queries: Sequence[Query],
    mode: Mode,
    tags: Mapping[str, str | None],
    vectors: NDArray[np.float32] | None,
) -> list[bytes]:
    """The body of each query's search for the best ``TOP_K`` hits, by id alone, as JSON.

    A query that comes again in the same language, and with the same vector, has the same bytes, not a copy.

    Args:
        searcher: over the index.
        queries: the queries.
        mode: how to search.
        tags: query id -> language.
        vectors: the queries' vectors, shape (queries, dimension); only for dense.

    Raises:
        UsageError: they would take more memory than ``MOST_BYTES``.
    """
    made: dict[tuple[object, ...], bytes] = {}
    keys = [_same_body(query, tags) for query in queries]
    size = 0
    for row, (query, key) in enumerate(zip(queries, keys, strict=True)):
        if key not in made:
            vector = vectors[row] if vectors is not None and mode == "dense" else None
            body = searcher.body(query.text, mode=mode, language=tags[query.id], size=TOP_K, vector=vector)
            made[key] = orjson.dumps(body | {"_source": False})
            size += len(made[key])
        if size > MOST_BYTES:
            raise UsageError(
                f"The first {row:,} of {len(queries):,} queries fill {MOST_BYTES // 10**9} GB of memory as requests: "
                "split them, and replay the parts in turn."
            )
    return [made[key] for key in keys]


def _same_body(query: Query, tags: Mapping[str, str | None]) -> tuple[object, ...]:
    """Equal for two queries that are asked with the same body."""
    return query.text, tags[query.id], None if query.embedding is None else query.embedding.tobytes()


def alternating(
    indices: Sequence[str],
    queries: Sequence[Query],
    content: Sequence[Sequence[bytes]],
    due: Sequence[float | None],
) -> Iterator[Request]:
    """Each query to each index, one query after the other; which index comes first goes round.

    Args:
        indices: the indices.
        queries: the queries.
        content: for each index, each query's body.
        due: when each query is sent, seconds after the start.
    """
    for number, (query, time) in enumerate(zip(queries, due, strict=True)):
        for place in rotated(number, len(indices)):
            yield Request(place, indices[place], query.id, content[place][number], time)
