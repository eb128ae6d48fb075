"""The requests of a search as they are sent, for a person to send again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from langshift.retrieval.exchange import Body, Exchange, Response, T, alone, lines, one


@dataclass(frozen=True)
class Request:
    """One request, without what the client adds to each, such as credentials.

    Attributes:
        method: such as ``POST``.
        path: such as ``/news-v0001/_search``.
        content: the body as it is sent, JSON or lines of JSON.
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
        return f"{self.method} {self.path}\n{self.content.decode().rstrip()}\n"

    @property
    def in_dev_tools_and_for_curl(self) -> str:
        """As Dev Tools take it, below the same for a shell as a comment; a body of lines makes that several lines."""
        comment = self.as_curl.replace("\n", "\n# ")
        return f"# {comment}\n{self.in_dev_tools}"

    @property
    def as_curl(self) -> str:
        """As a command for a shell, in which ``$OPENSEARCH_URL`` is the cluster's address."""
        kind = "application/x-ndjson" if self.path.endswith("/_msearch") else "application/json"
        body = shlex.quote(self.content.decode())
        return f"curl -X {self.method} \"$OPENSEARCH_URL{self.path}\" -H 'content-type: {kind}' --data-binary {body}"


def recorded(exchange: Exchange[T], index: str, requests: list[Request]) -> Exchange[T]:
    """The exchange; each of its steps is added to ``requests`` as what is sent to ``index``."""
    try:
        bodies = next(exchange)
        while True:
            requests.append(request_of(index, bodies))
            answers: Sequence[Response] = yield bodies
            bodies = exchange.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result


def request_of(index: str, bodies: Sequence[Body]) -> Request:
    """One step of an exchange as what is sent to ``index``."""
    if alone(bodies):
        return Request("POST", f"/{index}/_search", one(bodies[0]))
    return Request("POST", f"/{index}/_msearch", lines(bodies))
