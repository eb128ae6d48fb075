"""What the fault proxy can do to a request."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bulk_body import Operation, answered
from fault_proxy import Fault, passed
from http_exchange import Cut, Exchange, Reply
from server_words import Refusal, malformed, nginx, not_recovered, recovering, unknown

Items = list[dict[str, Any]]
Words = Callable[[Operation], Refusal]

_PAGE = "text/html"


def delayed(seconds: float, then: Fault = passed) -> Fault:
    """Wait first."""

    async def fault(exchange: Exchange) -> Reply:
        await asyncio.sleep(seconds)
        return await then(exchange)

    return fault


async def cut_before(exchange: Exchange) -> Reply:  # noqa: ARG001 - a fault's signature
    """Cut the connection; the server never sees the request."""
    raise Cut


async def cut_after(exchange: Exchange) -> Reply:
    """Let the server do it all, then cut the connection without an answer."""
    await exchange.forward()
    raise Cut


async def cut_midway(exchange: Exchange) -> Reply:
    """Cut the connection in the middle of the answer's body."""
    reply = await exchange.forward()
    return replace(reply, cut=len(reply.body) // 2)


async def broken_off(exchange: Exchange) -> Reply:
    """An answer whose JSON ends in the middle though the connection holds, as a proxy's full buffer leaves it."""
    reply = await exchange.forward()
    return replace(reply, body=reply.body[: len(reply.body) // 2])


def with_items(change: Callable[[Items], Items]) -> Fault:
    """Change the items of the real answer: leave some out, add some, put them in another order."""

    async def fault(exchange: Exchange) -> Reply:
        reply = await exchange.forward()
        answer = json.loads(reply.body)
        return replace(reply, body=json.dumps({**answer, "items": change(answer["items"])}).encode())

    return fault


def refusing(which: Callable[[Operation], Words | None]) -> Fault:
    """Refuse some operations in the server's words; only the others reach the server."""

    async def fault(exchange: Exchange) -> Reply:
        refused = {at: words for at, one in enumerate(exchange.operations) if (words := which(one))}
        others = [one.raw for at, one in enumerate(exchange.operations) if at not in refused]
        done: list[dict[str, Any]] = []
        if others:
            reply = await exchange.forward(b"".join(others))
            if reply.status != 200:
                return reply
            done = json.loads(reply.body)["items"]
        real = iter(done)
        items = [
            one.refused(*refused[at](one)) if at in refused else next(real)
            for at, one in enumerate(exchange.operations)
        ]
        return Reply(200, answered(items))

    return fault


def at_first(which: Callable[[Operation], Words | None]) -> Fault:
    """Refuse some operations when they come for the first time."""
    known: set[str] = set()

    def refused(operation: Operation) -> Words | None:
        first = operation.id not in known
        known.add(operation.id)
        return which(operation) if first else None

    return refusing(refused)


def refusing_all(words: Words) -> Fault:
    """Refuse every operation."""
    return refusing(lambda _: words)


def whole(refusal: Refusal) -> Fault:
    """Refuse the whole request."""

    async def fault(exchange: Exchange) -> Reply:  # noqa: ARG001 - a fault's signature
        return Reply(refusal.status, refusal.whole())

    return fault


def page(status: int) -> Fault:
    """Answer as a proxy on the way does."""

    async def fault(exchange: Exchange) -> Reply:  # noqa: ARG001 - a fault's signature
        return Reply(status, nginx(status), _PAGE)

    return fault


def at_most(size: int) -> Fault:
    """Refuse a body of more than ``size`` bytes as a proxy on the way does."""

    async def fault(exchange: Exchange) -> Reply:
        return await (page(413) if len(exchange.body) > size else passed)(exchange)

    return fault


def poisoned(poison: bytes, refusal: Refusal | None = None) -> Fault:
    """Refuse a whole request because of what one of its documents holds."""

    async def fault(exchange: Exchange) -> Reply:
        return await (whole(refusal or malformed()) if poison in exchange.body else passed)(exchange)

    return fault


class Breaker:
    """The memory breaker of k-NN: it refuses every item of so many bulk requests, and then lets them pass.

    Attributes:
        refused: bulk requests that it has refused.
    """

    def __init__(self, words: Words, requests: float) -> None:
        self._words, self._requests = words, requests
        self.refused = 0

    @property
    def triggered(self) -> bool:
        """Whether it refuses."""
        return self.refused < self._requests

    async def bulk(self, exchange: Exchange) -> Reply:
        """For bulk requests."""
        if not self.triggered:
            return await exchange.forward()
        self.refused += 1
        return await refusing_all(self._words)(exchange)


# What OpenSearch 3.6 does with a request while its cluster's state is not recovered, seen at a node that waits for
# others with `gateway.recover_after_data_nodes`: it refuses it for the block, but where it resolves the names of
# indices first, of which it knows none yet.
_BY_NAME = re.compile(r"/([^/_][^/]*)(/_(settings|mapping|alias/.*|refresh|field_caps|block/.*))?")
_NO_INDEX = re.compile(r"/(|_tasks.*|_nodes.*|_cat/plugins|_reindex)")


class Recovering:
    """A server whose cluster manager was elected before it had recovered the cluster's state from its disk.

    Attributes:
        met: how many requests have been refused for that.
    """

    def __init__(self, requests: int = 3) -> None:
        """Refuse so many requests once this has begun."""
        self.met = 0
        self._requests, self._begun = requests, False

    def begin(self) -> None:
        """From here on."""
        self._begun = True

    async def any(self, exchange: Exchange) -> Reply:
        """For all requests."""
        path, _, query = exchange.path.partition("?")
        if not self._begun or self.met == self._requests or _NO_INDEX.fullmatch(path):
            return await exchange.forward()
        self.met += 1
        named = _BY_NAME.fullmatch(path)
        changed = exchange.method == "DELETE" or (exchange.method == "PUT" and path.endswith("/_settings"))
        if "ignore_unavailable=true" in query or changed:
            return await whole(recovering())(exchange)
        if named and "*" not in named[1]:
            return await whole(unknown(named[1]))(exchange)
        return await whole(not_recovered())(exchange)
