"""A bulk request's body taken apart into its operations, and what a server answers for one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """One operation of a bulk request.

    Attributes:
        action: ``index``, ``create``, ``update`` or ``delete``.
        id: the document's ``_id``.
        target: the index that it goes to.
        raw: its lines as they came, each with its line break.
    """

    action: str
    id: str
    target: str
    raw: bytes

    def refused(self, status: int, error: Mapping[str, Any]) -> dict[str, Any]:
        """What a server says of it that does not do it."""
        return {self.action: {"_index": self.target, "_id": self.id, "status": status, "error": dict(error)}}


def operations(path: str, body: bytes) -> list[Operation]:
    """The operations of a request to ``path``, such as ``/news-v0001/_bulk?refresh=false``."""
    return list(_operations(path.split("?")[0].removesuffix("/_bulk").strip("/"), body))


def _operations(index: str, body: bytes) -> Iterator[Operation]:
    lines = (line + b"\n" for line in body.split(b"\n"))
    for line in lines:
        if line.strip():
            ((action, meta),) = json.loads(line).items()
            entry = b"" if action == "delete" else next(lines, b"")
            yield Operation(action, meta.get("_id", ""), meta.get("_index", index), line + entry)


def answered(items: list[dict[str, Any]]) -> bytes:
    """The body of an answer with these items."""
    errors = any("error" in said for item in items for said in item.values())
    return json.dumps({"took": 1, "errors": errors, "items": items}).encode()
