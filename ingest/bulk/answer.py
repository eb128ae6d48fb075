"""Reading the answer to a bulk request, item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langshift.hidden import hide
from langshift.ingest.bulk.item import Chunk, Item, Outcome
from langshift.missing_index import INDEX_NOT_FOUND

#: Statuses of an item that say nothing against it: too many requests, and what a server in trouble answers.
_BUSY, _TROUBLE, _FAILED = 429, range(500, 600), 500


class Broken(Exception):
    """The answer is not one to this request; what the server did is not known."""


class Verdict(NamedTuple):
    """What an answer says.

    Attributes:
        settled: what became of items for good.
        again: items that the server may take another time.
        why: the last reason for that, in the server's words; empty where there are none.
        overloaded: whether the server had too much to do.
        failed: whether it met an error of its own over each of ``again``, and nothing else.
        fatal: a reason that no document could be written, or empty.
        blocked: whether the index takes no writes at this moment.
        missing: the same as ``why`` where the node that answers does not know the index; else empty.
    """

    settled: list[Outcome]
    again: list[Item]
    why: str
    overloaded: bool
    failed: bool
    fatal: str
    blocked: bool = False
    missing: str = ""


def read(answer: Any, chunk: Chunk, breaks: Callable[[Mapping[str, Any]], bool], *, unsure: bool) -> Verdict:  # noqa: ANN401 - any JSON value
    """Read the answer to a chunk.

    Args:
        answer: the answer as JSON.
        chunk: what was sent.
        breaks: whether an item's error is the k-NN memory breaker's.
        unsure: whether the chunk was sent before and the answer was lost, so that ``updated`` may be our own.

    Raises:
        Broken: it does not tell of each item in its turn.
    """
    told = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(told, list) or len(told) != len(chunk):
        count = len(told) if isinstance(told, list) else 0
        raise Broken(f"an answer for {count} of {len(chunk)} documents")
    settled: list[Outcome] = []
    again: list[Item] = []
    why = fatal = missing = ""
    overloaded, failed, blocked = False, True, False
    for item, one in zip(chunk.items, told, strict=True):
        result = one.get(item.operation) if isinstance(one, dict) else None
        if not isinstance(result, dict) or result.get("_id") != item.id or not isinstance(result.get("status"), int):
            raise Broken("an answer about other documents")
        status, error = result["status"], result.get("error")
        if status < 300 or (status == 404 and item.operation == "delete" and error is None):
            settled.append(Outcome(item, "done", _result(str(result.get("result", "")), unsure=unsure)))
            continue
        error = error if isinstance(error, dict) else {"type": "unknown", "reason": str(error)}
        kind, said = str(error.get("type", "unknown")), reason(error)
        if status == 409:
            settled.append(Outcome(item, "superseded"))
        elif (
            status == _BUSY or status in _TROUBLE or kind == "cluster_block_exception" or _broke(status, error, breaks)
        ):
            again.append(item)
            why = said
            overloaded = overloaded or status in (_BUSY, 503)
            failed = failed and status == _FAILED
            blocked = blocked or kind == "cluster_block_exception"
        elif kind == INDEX_NOT_FOUND:
            # Or the node has only just started.
            again.append(item)
            why = missing = said
            failed = False
        elif status in (401, 403):
            fatal = said
        elif kind == "index_closed_exception":
            # No document's fault, and the server's word for it is just "closed".
            fatal = "the index is closed, open it"
        else:
            settled.append(Outcome(item, "dead", "", kind, said))
    return Verdict(settled, again, why, overloaded, failed and bool(again), fatal, blocked, missing)


def reason(error: Mapping[str, Any]) -> str:
    """An item's error in words: the reason and the innermost cause, without the final full stop."""
    words, cause = [str(error.get("reason") or error.get("type", "no reason given"))], error.get("caused_by")
    while isinstance(cause, dict):
        if cause.get("reason"):
            words[1:] = [str(cause["reason"])]
        cause = cause.get("caused_by")
    told = f"{words[0]} ({words[1]})" if len(words) > 1 and words[1] not in words[0] else words[0]
    return hide(" ".join(told.split()).rstrip("."))


def _result(word: str, *, unsure: bool) -> str:
    return "resent" if unsure and word in ("updated", "not_found") else word


def _broke(status: int, error: Mapping[str, Any], breaks: Callable[[Mapping[str, Any]], bool]) -> bool:
    return status == 400 and breaks(error)
