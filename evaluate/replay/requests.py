"""Requests made before the clock runs: vectors, first steps, the order and the times of sending; and their answers."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from random import Random
from sys import intern
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import OpenSearchException

from langshift.debias.encoders.base import is_given
from langshift.debias.encoders.sparse import TokenWeights
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import DatasetQuery, query_vectors, query_weights
from langshift.files import batched
from langshift.retrieval import plans
from langshift.retrieval.filters import NO_FILTER, IndexFilter
from langshift.retrieval.hits import RankedHits, ScoringContext
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher, require_weights
from langshift.server_errors import failure


class PreparedQuery(NamedTuple):
    """One search, ready to be sent.

    Attributes:
        place: in which of the ways the query is asked, counted from 0.
        target: the index.
        query: the query's id.
        first: what the first step sends.
        begin: begins the exchange anew; its first step is ``first``.
        due: seconds after the start at which it is to be sent; None: as soon as somebody is free.
        scored: the documents whose scores will be asked for: of scores that only the run can tell, theirs are kept.
    """

    place: int
    target: str
    query: str
    first: bytes
    begin: Callable[[], SearchPlan[RankedHits]]
    due: float | None = None
    scored: Collection[str] = ()


class QueryResult(NamedTuple):
    """What came back for one query.

    Attributes:
        query: the query's id.
        hits: document ids and scores, best first; empty where the query failed.
        took: milliseconds that the server says it took, all steps together; None where the query failed.
        wall: milliseconds until the client had put the answer together, from when the query was due, or
            from sending it where it was not due at any time; None where the query failed.
        waited: milliseconds between when the query was due and when it was sent.
        error: why the query failed, in a sentence, or None.
        reached: whether there was a cluster to answer, be it with an error.
        how: how the scores were put together, so that more documents can be scored alike.
        sent: whether the query was sent at all; one that cannot be asked is not.
        places: document id -> first character of the passage that was shown of it, and the one after its last; of an
            index of whole documents, and of chunks whose places it does not have, empty.
    """

    query: str
    hits: tuple[tuple[str, float], ...] = ()
    took: float | None = None
    wall: float | None = None
    waited: float = 0.0
    error: str | None = None
    reached: bool = True
    how: ScoringContext = ScoringContext()
    sent: bool = True
    places: Mapping[str, tuple[int, int]] = {}


def send_query(client: OpenSearch, request: PreparedQuery, due: float | None = None) -> QueryResult:
    """Carry out one search: send its first step, and those that follow from the answers.

    Args:
        client: the cluster.
        request: what to send.
        due: the clock's time (``perf_counter``) at which it should have been sent; None: now.
    """
    carried = request.begin()
    try:
        # The first step is on its way as bytes already.
        bodies = next(carried)
    except UsageError as error:
        return QueryResult(request.query, error=str(error), sent=False)
    sent = perf_counter()
    waited = 0.0 if due is None else max(0.0, sent - due) * 1000
    try:
        found, took = _execute(client, request, carried, bodies)
    except OpenSearchException as error:
        reached = not isinstance(error, UnreachableError)
        return QueryResult(request.query, error=str(failure(error)), waited=waited, reached=reached)
    except LangshiftError as error:
        return QueryResult(request.query, error=str(error), waited=waited)
    wall = waited + (perf_counter() - sent) * 1000
    return _read(request, found)._replace(took=took, wall=wall, waited=waited)


def _execute(
    client: OpenSearch, request: PreparedQuery, carried: SearchPlan[RankedHits], bodies: Sequence[plans.Body]
) -> tuple[RankedHits, float]:
    """What the exchange makes of the cluster's answers, and the milliseconds that these took, as the server says.

    Raises:
        LangshiftError: an answer is an error, not of all shards, or cannot be read.
        OpenSearchException: the cluster did not answer as it should.
    """
    content, took = request.first, 0.0
    try:
        while True:
            send = client.search if plans.is_single(bodies) else client.msearch
            answers = plans.step_responses(send(index=request.target, body=content), bodies)
            bodies = plans.advance(carried, answers)
            took += plans.slowest(answers)
            content = plans.step_content(bodies)
    except StopIteration as end:
        # The step whose answers ended it counts, too.
        return end.value, took + plans.slowest(answers)


def _read(request: PreparedQuery, found: RankedHits) -> QueryResult:
    """The answer, less what nobody will ask for."""
    # One document is found by many queries: its id is kept once.
    hits = tuple([(intern(hit.document), hit.score) for hit in found.hits if hit.score is not None])
    places = {intern(hit.document): (hit.place.start, hit.place.end) for hit in found.hits if hit.place is not None}
    how = found.how
    if how.run_scores or how.reranked:
        kept = ({name: one[name] for name in request.scored if name in one} for one in (how.run_scores, how.reranked))
        run_scores, reranked = kept
        how = replace(how, run_scores=run_scores, reranked=reranked)
    return QueryResult(request.query, hits, how=how, places=places)


MOST_AT_ONCE = 256
AT_ONCE_IN_OPEN_LOOP = 64
WARM_UP = 5
_SEED = 20


# Closed loop: a number of users, each of whom asks the next query as soon as the last one is answered.
# Open loop: queries come when they come, whether or not the last ones are answered, as from users who know
# nothing of each other. Such arrivals are a Poisson process; given how many there are, their times are
# independent and uniform. So ``arrivals`` draws exactly that: bursts and gaps as in production, and still
# exactly the rate asked for. The draw is the same every time, so that two replays meet the same bursts.
@dataclass(frozen=True)
class LoadProfile:
    """How queries are sent.

    Attributes:
        concurrency: how many queries are under way at once: exactly in closed loop, at most in open loop.
        rate: queries a second, in open loop; None in closed loop, or where a log says when each came.
        speed: how much faster than it came a log is sent; None without the times of a log.
        warm_up: how many queries each index gets first in each setting, uncounted.
    """

    concurrency: int = 1
    rate: float | None = None
    speed: float | None = None
    warm_up: int = WARM_UP

    @property
    def open_loop(self) -> bool:
        """Whether queries are sent when they are due, answered or not."""
        return self.rate is not None or self.speed is not None

    def due(self, count: int, logged: Sequence[float] | None = None) -> list[float | None]:
        """Seconds after the start at which each query is sent; None in closed loop.

        Args:
            count: how many queries.
            logged: when each query came, in seconds, ascending; needed with ``speed``.
        """
        if self.rate is not None:
            return [*arrivals(count, self.rate)]
        if self.speed is not None and logged is not None:
            return [(time - logged[0]) / self.speed for time in logged]
        return [None] * count

    def to_dict(self) -> dict[str, float | str | None]:
        """As it stands in ``result.json`` under ``load``."""
        return {"loop": "open" if self.open_loop else "closed", **asdict(self)}


def arrivals(count: int, rate: float) -> list[float]:
    """The times of ``count`` random arrivals within ``count / rate`` seconds, ascending."""
    draw = Random(_SEED)  # noqa: S311 - no secret
    return sorted(draw.uniform(0, count / rate) for _ in range(count))


#: How many hits of each query, where nobody says.
TOP_K = 100
MOST_BYTES = 2_000_000_000
_ENCODE_AT_ONCE = 256


class PreparedSearch(NamedTuple):
    """A search as it is sent.

    Attributes:
        first: what its first step sends; nothing where the question cannot be asked.
        begin: begins the exchange anew; of a question that cannot be asked its first step raises why.
    """

    first: bytes
    begin: Callable[[], SearchPlan[RankedHits]]


def encode(
    searcher: Searcher, queries: Sequence[DatasetQuery], on_batch: Callable[[int], None] = lambda _: None
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
    batches = []
    for batch in batched(rows, _ENCODE_AT_ONCE):
        batches.append(searcher.encode(batch))
        on_batch(len(batch))
    return np.concatenate(batches)[[rows[query.text] for query in queries]]


def encode_weights(
    searcher: Searcher, queries: Sequence[DatasetQuery], on_batch: Callable[[int], None] = lambda _: None
) -> list[TokenWeights]:
    """The weights of queries' tokens; all else is as in ``encode``.

    Raises:
        UsageError: the index has no weights; or a query has none, where they come with the data.
    """
    if is_given(require_weights(searcher.index).encoder):
        return query_weights(queries)
    known: dict[str, TokenWeights] = {}
    for batch in batched(dict.fromkeys(query.text for query in queries), _ENCODE_AT_ONCE):
        known |= zip(batch, searcher.encode_weights(batch), strict=True)
        on_batch(len(batch))
    return [known[query.text] for query in queries]


def prepare(
    searcher: Searcher,
    setting: SearchSettings,
    questions: Sequence[SearchQuery],
    known: dict[bytes, bytes],
    sizes: Sequence[int] | None = None,
    filters: Sequence[IndexFilter | str] | None = None,
) -> list[PreparedSearch]:
    """Each question's search for the best hits, by id alone, begun so far that it can be sent.

    A search that comes again has the same bytes, not a copy. A question that cannot be asked, such as one of too many
    words, stops none of the others.

    Args:
        searcher: over the index.
        setting: how to search.
        questions: the questions, each with its vector where the setting needs one.
        known: bytes that other ways have already; new ones are added.
        sizes: how many hits of each question; ``TOP_K`` of all if None.
        filters: what the hits of each question must match, or why it cannot be asked; nothing if None.

    Raises:
        UsageError: they would take more memory than ``MOST_BYTES``, all ways together; or no question can be asked.
    """
    size, refusal = sum(map(len, known)), None
    made: dict[tuple[object, ...], PreparedSearch] = {}
    found = []
    for row, question in enumerate(questions):
        vector = None if question.vector is None else question.vector.tobytes()
        wanted = TOP_K if sizes is None else sizes[row]
        # Those of one text are one object.
        filtered = NO_FILTER if filters is None else filters[row]
        # Those of one value are one object.
        key = question.words, question.language, vector, id(question.weights), wanted, id(filtered)
        if key not in made:
            begin = (
                partial(_refused, filtered)
                if isinstance(filtered, str)
                else partial(searcher.plan, question, setting, size=wanted, source=False, filters=filtered)
            )
            opened = begin()
            try:
                first = plans.step_content(next(opened))
            except UsageError as error:
                first, refusal = b"", error
            if first not in known:
                known[first] = first
                size += len(first)
            made[key] = PreparedSearch(known[first], begin)
        found.append(made[key])
        if size > MOST_BYTES:
            raise UsageError(
                f"The requests for the first {row:,} of {len(questions):,} queries fill {MOST_BYTES // 10**9} GB of "
                "memory: split the queries and replay the parts in turn, or replay fewer settings at a time."
            )
    if refusal is not None and not any(one.first for one in found):
        raise refusal
    return found


def _refused(sentence: str) -> SearchPlan[RankedHits]:
    """The search for a question that cannot be asked: its first step raises why."""
    yield from ()
    raise UsageError(sentence)


def alternating(
    indices: Sequence[str],
    queries: Sequence[DatasetQuery],
    content: Sequence[Sequence[PreparedSearch]],
    due: Sequence[float | None],
    scored: Mapping[str, Collection[str]],
) -> Iterator[PreparedQuery]:
    """Each query in each way, one query after the other; which way comes first goes round: each as often.

    Args:
        indices: for each way, the index.
        queries: the queries.
        content: for each way, each query as it is sent.
        due: when each query is sent, seconds after the start.
        scored: query id -> the documents whose scores will be asked for.
    """
    for number, (query, time) in enumerate(zip(queries, due, strict=True)):
        for turn in range(len(indices)):
            place = (number + turn) % len(indices)
            first, begin = content[place][number]
            yield PreparedQuery(place, indices[place], query.id, first, begin, time, scored.get(query.id, ()))
