"""One query to the live cluster, in as many steps as its mode takes, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from sys import intern
from time import perf_counter
from typing import NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import OpenSearchException

from langshift.errors import LangshiftError
from langshift.failures import failure
from langshift.retrieval import exchange
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.found import Found, How

NO_DOCUMENTS: Collection[str] = ()


class Step(NamedTuple):
    """What one step of a search sends.

    Attributes:
        content: as it is sent.
        parts: how many searches of an ``_msearch`` these are; None for one ``_search``.
    """

    content: bytes
    parts: int | None = None

    @classmethod
    def of(cls, bodies: Sequence[exchange.Body]) -> Step:
        """A step of these bodies."""
        if exchange.alone(bodies):
            return cls(exchange.one(bodies[0]))
        return cls(exchange.lines(bodies), len(bodies))


class Request(NamedTuple):
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
    first: Step
    begin: Callable[[], Exchange[Found]]
    due: float | None = None
    scored: Collection[str] = NO_DOCUMENTS


class Answer(NamedTuple):
    """What came back for one query.

    Attributes:
        query: the query's id.
        hits: document ids and scores, best first; empty where the query failed.
        took: milliseconds that the server says it took, all steps together; None where the query failed.
        wall: milliseconds until the client had put the answer together, from when the query was due, or
            from sending it where it was not due at any time; None where the query failed.
        error: why the query failed, in a sentence, or None.
        waited: milliseconds between when the query was due and when it was sent.
        reached: whether there was a cluster to answer, be it with an error.
        sent: whether the query was sent at all.
        how: how the scores were put together, so that more documents can be scored alike.
    """

    query: str
    hits: tuple[tuple[str, float], ...] = ()
    took: float | None = None
    wall: float | None = None
    error: str | None = None
    waited: float = 0.0
    reached: bool = True
    sent: bool = True
    how: How = How()


def ask(client: OpenSearch, request: Request, due: float | None = None) -> Answer:
    """Carry out one search: send its first step, and those that follow from the answers.

    Args:
        client: the cluster.
        request: what to send.
        due: the clock's time (``perf_counter``) at which it should have been sent; None: now.
    """
    carried = request.begin()
    # The first step is on its way as bytes already.
    next(carried)
    sent = perf_counter()
    waited = 0.0 if due is None else max(0.0, sent - due) * 1000
    try:
        found = _carry_out(client, request, carried)
    except OpenSearchException as error:
        reached = not isinstance(error, UnreachableError)
        return Answer(request.query, error=str(failure(error)), waited=waited, reached=reached)
    except LangshiftError as error:
        return Answer(request.query, error=str(error), waited=waited)
    wall = waited + (perf_counter() - sent) * 1000
    return _read(request, found)._replace(wall=wall, waited=waited)


def _carry_out(client: OpenSearch, request: Request, carried: Exchange[Found]) -> Found:
    """What the exchange makes of the cluster's answers.

    Raises:
        LangshiftError: an answer is an error, not of all shards, or cannot be read.
        OpenSearchException: the cluster did not answer as it should.
    """
    step = request.first
    try:
        while True:
            send = client.search if step.parts is None else client.msearch
            heard = send(index=request.target, body=step.content)
            answers = [heard] if step.parts is None else exchange.answers(heard, step.parts)
            step = Step.of(exchange.advance(carried, answers))
    except StopIteration as end:
        found: Found = end.value
        return found


def _read(request: Request, found: Found) -> Answer:
    """The answer, less what nobody will ask for."""
    # One document is found by many queries: its id is kept once.
    hits = tuple([(intern(hit.id), hit.score) for hit in found.hits if hit.score is not None])
    how = found.how
    if how.kept:
        how = replace(how, kept={name: how.kept[name] for name in request.scored if name in how.kept})
    return Answer(request.query, hits, float(found.took), how=how)
