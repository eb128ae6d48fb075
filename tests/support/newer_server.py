"""What a fault proxy makes of the server behind it: one that answers as OpenSearch 3.8 does about vectors."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from fault_proxy import Fault
from http_exchange import Exchange, Reply

from langshift.plugin.metadata import replaced_at, value_at

Json = dict[str, Any]


def leaving_out(*fields: str) -> Fault:
    """Hits of searches lack vectors unless they were asked for, as k-NN #3152 does."""
    return _answering(lambda body, source: _without(source, [one for one in fields if not _wanted(body, one)]))


def leaving_out_always(*fields: str) -> Fault:
    """Hits of searches lack vectors whatever was asked for, as where a search pipeline removes them."""
    return _answering(lambda _, source: _without(source, fields))


def packing(*fields: str) -> Fault:
    """Vectors come as base64 of little-endian floats, also in documents that are asked for by their ids."""
    return _answering(lambda _, source: _packed(source, fields), by_id=True)


def packed(vector: Any) -> str:
    """A vector as base64 of little-endian floats."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _answering(change: Callable[[Json, Json], Json], *, by_id: bool = False) -> Fault:
    async def answer(exchange: Exchange) -> Reply:
        reply = await exchange.forward()
        path = exchange.path.partition("?")[0]
        kinds = ("/_search", "/_msearch", *(("/_mget",) if by_id else ()))
        if reply.status != 200 or not path.endswith(kinds):
            return reply
        answered = json.loads(reply.body)
        for body, hit in _hits(path, exchange.body, answered):
            if "_source" in hit:
                hit["_source"] = change(body, hit["_source"])
        return Reply(reply.status, json.dumps(answered).encode(), reply.kind)

    return answer


def _hits(path: str, body: bytes, answered: Json) -> Iterator[tuple[Json, Json]]:
    """Each document of an answer, with what asked for it."""
    if path.endswith("/_mget"):
        yield from (({}, one) for one in answered["docs"])
        return
    if path.endswith("/_msearch"):
        bodies, answers = [json.loads(line) for line in body.splitlines()[1::2]], answered["responses"]
    else:
        bodies, answers = [json.loads(body or b"{}")], [answered]
    for asked, one in zip(bodies, answers, strict=True):
        yield from ((asked, hit) for hit in one.get("hits", {}).get("hits", []))


def _wanted(body: Json, field: str) -> bool:
    source = body.get("_source")
    if isinstance(source, bool):
        return True
    includes = source.get("includes", []) if isinstance(source, dict) else [source] if source else []
    includes = includes[0] if includes and isinstance(includes[0], list) else includes
    return any(fnmatchcase(field, pattern) for pattern in includes)


def _without(source: Json, fields: Any) -> Json:
    for field in fields:
        if value_at(source, field) is not None:
            source = replaced_at(source, field, None)
    return source


def _packed(source: Json, fields: Any) -> Json:
    for field in fields:
        if isinstance(vector := value_at(source, field), list):
            source = replaced_at(source, field, packed(vector))
    return source
