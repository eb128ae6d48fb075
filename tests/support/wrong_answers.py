"""Answers that OpenSearch does not give, put by the fault proxy in the place of those that it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, cycle

from fault_proxy import Fault
from http_exchange import JSON, Exchange, Reply

#: The real answer -> another.
Form = Callable[[Reply], Reply]


def _body(body: bytes, kind: str = JSON, status: int = 200) -> Form:
    return lambda reply: replace(reply, status=status, body=body, kind=kind)


def _half(reply: Reply) -> Reply:
    return replace(reply, body=reply.body[: len(reply.body) // 2])


def _values(value: object) -> Form:
    """The names of the real answer, and another value under each."""

    def form(reply: Reply) -> Reply:
        real = json.loads(reply.body)
        names = real if isinstance(real, dict) else ["name"]
        return replace(reply, status=200, body=json.dumps(dict.fromkeys(names, value)).encode())

    return form


_PAGE = b"<html><body><h1>Welcome</h1>\x1b[31m</body></html>"
_OTHER = {
    "acknowledged": "yes",
    "name": "other",
    "cluster_name": "other",
    "cluster_uuid": 7,
    "version": "1",
    "count": "1",
}
FORMS: dict[str, Form] = {
    "{}": _body(b"{}"),
    "[]": _body(b"[]"),
    "empty": _body(b""),
    "null": _body(b"null"),
    "a string": _body(b'"It works\\u001b[2J"'),
    "a number": _body(b"7"),
    "true": _body(b"true"),
    "a list of another API": _body(b'[{"id": 1}]'),
    "HTML": _body(_PAGE, "text/html"),
    "HTML that is called JSON": _body(_PAGE),
    "plain text": _body(b"It works!", "text/plain"),
    "no known type": _body(b"{}", "application/octet-stream"),
    "404 and HTML": _body(_PAGE, "text/html", 404),
    "404 and nothing": _body(b"", "text/plain", 404),
    "404 and {}": _body(b"{}", JSON, 404),
    "cut off": _half,
    "an error with 200": _body(b'{"error": {"type": "x", "reason": "y"}, "status": 500}'),
    "another API": _body(json.dumps(_OTHER).encode()),
    "names with null": _values(None),
    "names with numbers": _values(5),
    "names with lists": _values([1, 2]),
    "names with words": _values("words"),
}


_KEPT = re.compile(r"_.*|plugins|docs|store|write|pipeline|point_in_time|http|settings|health")


def endpoint(exchange: Exchange) -> str:
    """What is asked, without the names of indices, tasks and pipelines; a pattern is ``*``."""
    path = exchange.path.partition("?")[0]
    if path == "/":
        return f"{exchange.method} /"
    parts = [one if _KEPT.fullmatch(one) else "*" if "*" in one else "name" for one in path[1:].split("/")]
    return f"{exchange.method} /{'/'.join(parts)}"


#: Whose answers are looked at elsewhere, or do not matter.
_LEFT_ALONE = re.compile(r".*/_bulk|.*_knn/stats|GET /_cat/plugins|GET /\*|DELETE .*point_in_time")


class Wrong:
    """Puts wrong answers in the place of real ones.

    Attributes:
        asked: every endpoint that came by, in order.
        given: the endpoints whose answers were replaced.
    """

    def __init__(self, forms: Iterable[str] = (), only: str | None = None, after: bool = True) -> None:
        """Replace answers.

        Args:
            forms: the first answer of each endpoint in turn is replaced by one of these, again and again; none where
                nothing is to be replaced.
            only: every answer of this endpoint is replaced, and no other.
            after: whether the server has carried the request out first; else every second one reaches it.
        """
        self.asked: list[str] = []
        self.given: list[str] = []
        self._forms, self._only, self._after = list(forms), only, after
        self._number = count()

    async def answer(self, exchange: Exchange) -> Reply:
        """For every request."""
        name = endpoint(exchange)
        first = name not in self.asked
        self.asked.append(name)
        wrong = name == self._only if self._only else first and not _LEFT_ALONE.fullmatch(name)
        if not self._forms or not wrong:
            return await exchange.forward()
        self.given.append(name)
        number = next(self._number)
        reached = self._after or number % 2 == 0
        reply = await exchange.forward() if reached else Reply(200, b'{"acknowledged": true}')
        return FORMS[self._forms[number % len(self._forms)]](reply)


class Troubled:
    """Lets the first request to each endpoint meet one fault in turn.

    Attributes:
        given: those endpoints.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Begin with the first of the faults, and go on with it after the last."""
        self.given: list[str] = []
        self._faults = cycle(faults)

    async def answer(self, exchange: Exchange) -> Reply:
        """For every request."""
        name = endpoint(exchange)
        if name in self.given or name.endswith(("/_bulk", "_knn/stats", "/point_in_time")):
            return await exchange.forward()
        self.given.append(name)
        return await next(self._faults)(exchange)
