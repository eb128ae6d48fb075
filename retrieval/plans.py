"""A search as a plan of bodies and answers, so that a client, an asynchronous one and a replay can carry it out.

A mode is a generator: it yields the bodies of one step, is sent the answers, and returns what it found. A step of one
body is one ``_search``, a step of several is one ``_msearch``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.credentials import redact
from langshift.errors import ClusterError, LangshiftError, UnavailableError
from langshift.server_errors import closed, failure, not_permitted

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch


Body = dict[str, Any]
Response = Mapping[str, Any]
T = TypeVar("T")
SearchPlan = Generator[tuple[Body, ...], Sequence[Response], T]


class ShardBody(dict[str, Any]):
    """A body that asks one shard alone; it can only be sent in an ``_msearch``.

    Attributes:
        shard: which, counted from 0.
    """

    def __init__(self, body: Body, shard: int) -> None:
        """Make it of the body for all shards."""
        super().__init__(body)
        self.shard = shard


def execute(client: OpenSearch, index: str, plan: SearchPlan[T]) -> T:
    """Carry out a plan with a cluster.

    Args:
        client: the cluster.
        index: what to search.
        plan: as the functions of ``modes`` make them.

    Returns:
        What the plan returns.

    Raises:
        ClusterError: a search failed, or not all shards answered.
        OpenSearchException: the cluster did not answer as it should.
    """
    running = _Running(plan)
    while bodies := running.bodies:
        send = client.search if is_single(bodies) else client.msearch
        running.take(step_responses(send(index=_named(index, bodies), body=step_content(bodies)), bodies))
    if isinstance(running.outcome, LangshiftError):
        raise running.outcome
    return running.outcome


async def execute_async(client: AsyncOpenSearch, index: str, plan: SearchPlan[T]) -> T:
    """Carry out a plan with a cluster's asynchronous client; all else is as in ``execute``."""
    running = _Running(plan)
    while bodies := running.bodies:
        send = client.search if is_single(bodies) else client.msearch
        responses = await send(index=_named(index, bodies), body=step_content(bodies))
        running.take(step_responses(responses, bodies))
    if isinstance(running.outcome, LangshiftError):
        raise running.outcome
    return running.outcome


class _Running(Generic[T]):
    """A plan that is under way.

    Attributes:
        bodies: whose answers it waits for; none once it has ended.
        outcome: what it returned or why it failed, once it has ended.
    """

    outcome: T | LangshiftError

    def __init__(self, plan: SearchPlan[T]) -> None:
        self._plan = plan
        self.bodies: Sequence[Body] = ()
        self.take(None)

    def take(self, responses: Sequence[Response] | None) -> None:
        """Go on with the answers; begin where there are none yet."""
        try:
            self.bodies = next(self._plan) if responses is None else advance(self._plan, responses)
        except StopIteration as end:
            self.outcome, self.bodies = end.value, ()
        except LangshiftError as error:
            self.fail(error)

    def fail(self, error: LangshiftError) -> None:
        """End with an error."""
        self._plan.close()
        self.outcome, self.bodies = error, ()


def advance(plan: SearchPlan[Any], responses: Sequence[Response]) -> tuple[Body, ...]:
    """Send a plan the answers to a step, as they came, whoever carries it out.

    Returns:
        The bodies of the next step.

    Raises:
        StopIteration: the plan has ended; its value is what the plan returns.
        ClusterError: an answer is an error, not of all shards, or cannot be read.
    """
    whole = [check_response(response) for response in responses]
    try:
        return plan.send(whole)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ClusterError(_unreadable(whole[0] if len(whole) == 1 else whole)) from error


def altered(
    plan: SearchPlan[T],
    change: Callable[[tuple[Body, ...]], tuple[Body, ...]] = lambda bodies: bodies,
    look: Callable[[Sequence[Response]], None] = lambda _: None,
) -> SearchPlan[T]:
    """The plan, the bodies of each of whose steps are changed, and whose answers are looked at."""
    try:
        bodies = next(plan)
        while True:
            responses = yield change(bodies)
            look(responses)
            bodies = plan.send(responses)
    except StopIteration as end:
        result: T = end.value
        return result


def slowest(responses: Sequence[Response]) -> float:
    """The milliseconds that the server says a step took: its searches are carried out side by side."""
    return max((float(response["took"]) for response in responses), default=0.0)


def is_single(bodies: Sequence[Body]) -> bool:
    """Whether a step is one ``_search``."""
    return len(bodies) == 1 and not isinstance(bodies[0], ShardBody)


def _named(index: str, bodies: Sequence[Body]) -> str | None:
    """The index that the path of a step names: none at a point in time, which names it itself."""
    return None if "pit" in bodies[0] else index


def step_content(bodies: Sequence[Body]) -> bytes:
    """The content of a step: of a ``_search``, or of an ``_msearch``."""
    return orjson.dumps(bodies[0]) if is_single(bodies) else msearch_body(bodies)


def step_responses(response: Response, bodies: Sequence[Body]) -> list[Response]:
    """The answers to a step, not looked at yet.

    Raises:
        ClusterError: there is not one for each body.
    """
    return [response] if is_single(bodies) else split_msearch(response, len(bodies))


def msearch_body(bodies: Sequence[Body]) -> bytes:
    """The content of an ``_msearch``."""
    return b"".join(_header(body) + orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE) for body in bodies)


def _header(body: Body) -> bytes:
    return b'{"preference":"_shards:%d"}\n' % body.shard if isinstance(body, ShardBody) else b"{}\n"


def split_msearch(response: Response, count: int) -> list[Response]:
    """The parts of the answer to an ``_msearch``, not looked at yet.

    Args:
        response: the answer.
        count: how many bodies were sent.

    Raises:
        ClusterError: there are no parts, or not as many.
    """
    parts = response.get("responses") if isinstance(response, Mapping) else None
    if not isinstance(parts, list) or len(parts) != count:
        raise ClusterError(_unreadable(response))
    return parts


def check_response(response: Response) -> Response:
    """The response to one search, which is whole.

    Raises:
        ClusterError: the search failed, took too long, or was answered by some of its shards only.
    """
    try:
        if "error" in response:
            said = _words(response["error"])
            message = f"The cluster answered {response.get('status')}: {said.rstrip('.;')[:300]}."
            kind = UnavailableError if response.get("status") in (429, 503) else ClusterError
            raise not_permitted(said) or kind(message)
        shards = response["_shards"]
        if response["timed_out"] or shards["failed"]:
            message = f"The search failed in part: {shards['successful']} of {shards['total']} shards answered in time."
            raise UnavailableError(message)
        # What is read of it later.
        _ = response["took"], [(hit["_id"], float(hit["_score"])) for hit in response["hits"]["hits"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ClusterError(_unreadable(response)) from None
    return response


def _words(error: object) -> str:
    """The server's words for why, with those of the innermost cause."""
    if not isinstance(error, Mapping):
        return redact(" ".join(str(error).split()))
    if message := closed(error):
        return message
    roots = error.get("root_cause") or [{}]
    said = [error.get("reason") or error.get("type"), roots[0].get("reason")]
    return redact(" ".join(": ".join(dict.fromkeys(str(part) for part in said if part)).split()))


def _unreadable(response: object) -> str:
    return f"The cluster gave an unreadable answer: {redact(str(response))[:200]}."


@dataclass(frozen=True)
class HttpRequest:
    """One request, without what the client adds to each, such as credentials.

    Attributes:
        method: such as ``POST``.
        path: such as ``/news-v0001/_search``.
        content: the body as it is sent, JSON or lines of JSON; may be empty.
    """

    method: str
    path: str
    content: bytes

    def to_dict(self) -> dict[str, Any]:
        """As JSON; ``lines`` are those of the body."""
        parts = [orjson.loads(line) for line in self.content.splitlines()]
        return {"method": self.method, "path": self.path, "lines": parts}

    @property
    def in_dev_tools(self) -> str:
        """As OpenSearch's Dev Tools take it."""
        return f"{self.method} {self.path}\n{self.content.decode()}".rstrip() + "\n"

    @property
    def in_dev_tools_and_for_curl(self) -> str:
        """As Dev Tools take it, below the same for a shell as a comment; a body of lines makes that several lines."""
        comment = self.as_curl.replace("\n", "\n# ")
        return f"# {comment}\n{self.in_dev_tools}"

    @property
    def as_curl(self) -> str:
        """As a command for a shell, in which ``$OPENSEARCH_URL`` is the cluster's address."""
        if not self.content:
            return f'curl -X {self.method} "$OPENSEARCH_URL{self.path}"'
        kind = "application/x-ndjson" if self.path.endswith("/_msearch") else "application/json"
        body = shlex.quote(self.content.decode())
        return f"curl -X {self.method} \"$OPENSEARCH_URL{self.path}\" -H 'content-type: {kind}' --data-binary {body}"


@dataclass
class Exchange:
    """What was sent for a plan so far.

    Attributes:
        requests: in order.
        took: milliseconds that the server says all of it took.
    """

    requests: list[HttpRequest] = field(default_factory=list)
    took: float = 0.0


def recorded(plan: SearchPlan[T], index: str, exchange: Exchange) -> SearchPlan[T]:
    """The plan, of which each step is noted in ``exchange``, as what is sent to ``index``."""

    def note(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
        exchange.requests.append(request_of(index, bodies))
        return bodies

    def add(responses: Sequence[Response]) -> None:
        exchange.took += slowest(responses)

    return altered(plan, note, add)


def request_of(index: str, bodies: Sequence[Body]) -> HttpRequest:
    """One step of a plan as what is sent to ``index``."""
    place = "".join(f"/{name}" for name in [_named(index, bodies)] if name)
    return HttpRequest("POST", f"{place}/{'_search' if is_single(bodies) else '_msearch'}", step_content(bodies))


_BODIES_AT_ONCE = 100
_BYTES_AT_ONCE = 4_000_000


def execute_many(client: OpenSearch, index: str, plans: Iterable[SearchPlan[T]]) -> Iterator[T | LangshiftError]:
    """Carry out many plans with a cluster, about a hundred searches or 4 MB to a request.

    Args:
        client: the cluster.
        index: what to search.
        plans: as the functions of ``modes`` make them; a hundred at a time are taken.

    Yields:
        What each plan returns, in their order, or the error that ended it.
    """
    coming = iter(plans)
    while wave := [_Running(plan) for plan in islice(coming, _BODIES_AT_ONCE)]:
        while waiting := [running for running in wave if running.bodies]:
            for together, content in _requests(waiting):
                _ask(client, index, together, content)
        yield from (running.outcome for running in wave)


def _requests(waiting: Sequence[_Running[T]]) -> Iterator[tuple[list[_Running[T]], bytes]]:
    """Put the bodies of several plans together to requests of bounded size."""
    together: list[_Running[T]] = []
    content, count = bytearray(), 0
    for running in waiting:
        together.append(running)
        content += msearch_body(running.bodies)
        count += len(running.bodies)
        if count >= _BODIES_AT_ONCE or len(content) >= _BYTES_AT_ONCE:
            yield together, bytes(content)
            together, content, count = [], bytearray(), 0
    if together:
        yield together, bytes(content)


def _ask(client: OpenSearch, index: str, together: Sequence[_Running[T]], content: bytes) -> None:
    count = sum(len(running.bodies) for running in together)
    try:
        responses = iter(split_msearch(client.msearch(index=index, body=content), count))
    except (OpenSearchException, LangshiftError) as error:
        for running in together:
            running.fail(error if isinstance(error, LangshiftError) else failure(error))
        return
    for running in together:
        running.take(list(islice(responses, len(running.bodies))))
