"""Making requests before the clock runs: vectors, the first step of each search, and the order of sending."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.detect import open_detector
from langshift.debias.encoders import is_given
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Query
from langshift.evaluate.replay.answer import Request, Step
from langshift.evaluate.replay.schedule import rotated
from langshift.ingest.encoding import query_vectors
from langshift.ingest.making import LEAST_CONFIDENCE
from langshift.languages import text_language
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.found import Found
from langshift.retrieval.search import Searcher
from langshift.retrieval.wanted import Question, Setting

TOP_K = 100
MOST_BYTES = 2_000_000_000
NOTHING_SCORED: Mapping[str, Collection[str]] = {}
_ENCODE_AT_ONCE = 256


class Prepared(NamedTuple):
    """A search as it is sent.

    Attributes:
        first: what its first step sends.
        begin: begins the exchange anew.
    """

    first: Step
    begin: Callable[[], Exchange[Found]]


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
    the index lacks has no documents in its own language, and must not count as having some. Nor is a language taken
    that is less than likely, as searching does: one that is not clear is asked as of no language.
    """
    found = {query.id: query.language for query in queries}
    unnamed = [query for query in queries if query.language is None]
    detector = open_detector() if unnamed else None
    for query in unnamed:
        detected = detector.detect(query.text) if detector else None
        if detected and detected.confidence >= LEAST_CONFIDENCE:
            found[query.id] = text_language(detected.language)
    return found


def prepare(
    searcher: Searcher, setting: Setting, questions: Sequence[Question], known: dict[bytes, bytes]
) -> list[Prepared]:
    """Each question's search for the best ``TOP_K`` hits, by id alone, begun so far that it can be sent.

    A search that comes again has the same bytes, not a copy.

    Args:
        searcher: over the index.
        setting: how to search.
        questions: the questions, each with its vector where the setting needs one.
        known: bytes that other ways have already; new ones are added.

    Raises:
        UsageError: they would take more memory than ``MOST_BYTES``, all ways together.
    """
    size = sum(map(len, known))
    made: dict[tuple[object, ...], Prepared] = {}
    found = []
    for row, question in enumerate(questions):
        vector = None if question.vector is None else question.vector.tobytes()
        key = question.words, question.language, vector
        if key not in made:
            begin = partial(searcher.exchange, question, setting, size=TOP_K, source=False)
            first = Step.of(next(begin()))
            if first.content not in known:
                known[first.content] = first.content
                size += len(first.content)
            made[key] = Prepared(first._replace(content=known[first.content]), begin)
        found.append(made[key])
        if size > MOST_BYTES:
            raise UsageError(
                f"The first {row:,} of {len(questions):,} queries fill {MOST_BYTES // 10**9} GB of memory as requests: "
                "split them, and replay the parts in turn, or fewer settings at once."
            )
    return found


def alternating(
    indices: Sequence[str],
    queries: Sequence[Query],
    content: Sequence[Sequence[Prepared]],
    due: Sequence[float | None],
    scored: Mapping[str, Collection[str]] = NOTHING_SCORED,
) -> Iterator[Request]:
    """Each query in each way, one query after the other; which way comes first goes round.

    Args:
        indices: for each way, the index.
        queries: the queries.
        content: for each way, each query as it is sent.
        due: when each query is sent, seconds after the start.
        scored: query id -> the documents whose scores will be asked for.
    """
    for number, (query, time) in enumerate(zip(queries, due, strict=True)):
        for place in rotated(number, len(indices)):
            first, begin = content[place][number]
            yield Request(place, indices[place], query.id, first, begin, time, scored.get(query.id, ()))
