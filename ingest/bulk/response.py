"""What a bulk answer says of each operation of its request: done, dead, or to be sent again."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langshift.credentials import redact
from langshift.ingest.bulk.writer import ActionResult, BulkAction, BulkChunk
from langshift.server_errors import INDEX_NOT_FOUND, is_block, passes

#: Statuses of an item that say nothing against it: too many requests, and what a server in trouble answers.
_BUSY, _TROUBLE, _FAILED = 429, range(500, 600), 500
_CONFLICT = 409
# What the server says of a version conflict.
_CURRENT = re.compile(r"current version \[(\d+)\]")


class MalformedResponse(Exception):
    """The answer is not one to this request; what the server did is not known."""


class RenamedDocument(MalformedResponse):
    """The answer tells of documents with other ids."""


@dataclass
class BulkResponse:
    """What an answer says.

    Attributes:
        results: what became of items for good.
        again: items that the server may take another time.
        why: the last reason for that, in the server's words; empty where there are none.
        overloaded: whether the server had too much to do.
        failed: whether it met an error of its own over each of ``again``, and nothing else.
        fatal: a reason that no document could be written, or empty.
        blocked: whether the index takes no writes at this moment.
        unsure: whether some of ``again`` may have been written.
        missing: the same as ``why`` where the node that answers does not know the index; else empty.
    """

    results: list[ActionResult] = field(default_factory=list)
    again: list[BulkAction] = field(default_factory=list)
    why: str = ""
    overloaded: bool = False
    failed: bool = True
    fatal: str = ""
    blocked: bool = False
    unsure: bool = False
    missing: str = ""


def parse_bulk_response(answer: object, chunk: BulkChunk, *, unsure: bool) -> BulkResponse:
    """Read the answer to a chunk.

    Args:
        answer: the answer as JSON.
        chunk: what was sent.
        unsure: whether the chunk was sent before and the answer was lost, so that ``updated`` may be our own.

    Raises:
        MalformedResponse: it does not tell of each item in its turn.
    """
    entries = answer.get("items") if isinstance(answer, dict) else None
    entries = entries if isinstance(entries, list) else []
    if len(entries) != len(chunk):
        raise MalformedResponse(f"a response for {len(entries)} of {len(chunk)} documents")
    found = BulkResponse()
    for item, one in zip(chunk.items, entries, strict=True):
        result = _item_result(item, one)
        status, error = result["status"], result.get("error")
        if ended := _ended_by_pipeline(result):
            found.results.append(ActionResult(item, "dead", "", *ended))
            continue
        if status < 300 or (status == 404 and item.operation == "delete" and error is None):
            word = "update" if item.update else str(result.get("result", ""))
            word = "resent" if unsure and word in ("updated", "not_found") else word
            found.results.append(ActionResult(item, "done", word))
            continue
        error = error if isinstance(error, dict) else {"type": "unknown", "reason": str(error)}
        kind, said = str(error.get("type", "unknown")), reason(error)
        if status == _CONFLICT and item.operation != "update":
            there = _CURRENT.search(said)
            found.results.append(ActionResult(item, "superseded", there=int(there[1]) if there else 0))
        elif status == _CONFLICT or passes(status, error):
            # Somebody has written what an update changes, perhaps this very request before its answer was lost.
            found.again.append(item._replace(body=b"") if status == _CONFLICT else item)
            found.why = said
            found.overloaded |= status in (_BUSY, 503)
            found.unsure |= status in _TROUBLE
            found.failed &= status == _FAILED
            found.blocked |= is_block(error)
        elif kind == INDEX_NOT_FOUND:
            # Or the node has only just started.
            found.again.append(item)
            found.why = found.missing = said
            found.failed = False
        elif status in (401, 403):
            found.fatal = said
        elif kind == "index_closed_exception":
            # No document's fault, and the server's word for it is just "closed".
            found.fatal = "the index is closed; open it"
        else:
            found.results.append(ActionResult(item, "dead", "", kind, said + _remedy(said)))
    found.failed &= bool(found.again)
    return found


def _item_result(item: BulkAction, answer: object) -> dict[str, Any]:
    """What an answer says of one operation.

    Raises:
        MalformedResponse: it is about another.
    """
    result = answer.get("index" if item.update else item.operation) if isinstance(answer, dict) else None
    if (
        not isinstance(result, dict)
        or result.get("_id") != (item.target or item.id)
        or not isinstance(result.get("status"), int)
    ):
        raise RenamedDocument("a response about other documents")
    return result


# What a pipeline does on purpose, and what no final one may.
_FAILS, _MOVED = "fail_processor_exception", "can't change the target index"


def _ended_by_pipeline(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """The type and the reason where the index's final pipeline has kept a document out; else None.

    The server calls the latter an error of its own, but no other try ends otherwise.
    """
    if result.get("result") == "noop":
        return "dropped", "the index's final pipeline dropped it"
    error = result.get("error")
    if not isinstance(error, dict):
        return None
    kind, said = str(error.get("type")), reason(error)
    return (kind, f"the index's final pipeline failed: {said}") if kind == _FAILS or _MOVED in said else None


def _remedy(said: str) -> str:
    """What to do about a value that a field of whole numbers cannot keep as it is."""
    if not any(words in said for words in ("without data loss", "Long value passed as String")):
        return ""
    return (
        ": the first values of this field were whole numbers; to keep others too, load the corpus into a new version "
        'with a --template that maps it as "double" or "keyword"'
    )


def reason(error: Mapping[str, Any]) -> str:
    """An item's error in words: the reason and its causes, without the final full stop."""
    text, causes, cause = str(error.get("reason") or error.get("type", "no reason given")), [], error.get("caused_by")
    while isinstance(cause, dict):
        causes.append(_PLACE.sub("", " ".join(str(cause.get("reason") or "").split())))
        cause = cause.get("caused_by")
    told = ": ".join(one for one in causes if one and one not in text)
    return redact(" ".join((f"{text} ({told})" if told else text).split()).rstrip("."))


# Where in a body that nobody sees a parser of numbers stood.
_PLACE = re.compile(r" ?at \[Source: [^\]]*\]?")
