"""Documents that were deleted and made anew: their versions are lower than those that the target has of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langshift.plugin.transfer import reading
from langshift.plugin.transfer.removing import Identity, remove
from langshift.plugin.transfer.run import Run
from langshift.plugin.transfer.tasks import Copied
from langshift.trouble import Unreadable

_AT_A_TIME = 1000
# The server looks at its clock five times a second only, and remembers what was deleted for one look.
_PAUSE, _TRIES = 0.1, 100


def settle_conflicts(run: Run, source: Mapping[str, Any], copy: Callable[[Sequence[str]], Copied]) -> int:
    """Delete in the target what it has in a later version than the live one, and copy it anew with its own.

    Versions stay as they are, so that whoever writes with versions of his own can go on. A document that is written
    while this goes on is left to the next pass, which copies whatever was written since this one began: those who
    delete documents and make them anew without end would keep this going without end, too.

    Args:
        run: the run.
        source: query and slice of the pass that met the conflicts.
        copy: copies documents of these ids.

    Returns:
        How many documents were copied.

    Raises:
        Unreadable: a document that nobody writes cannot be copied.
    """
    todo = run.ask(lambda: _differing(run, source))
    written = 0
    while todo:
        some = dict(list(todo.items())[:_AT_A_TIME])
        written += _settled(run, some, copy)
        for identity in some:
            del todo[identity]
    return written


def _settled(run: Run, some: dict[Identity, _Differs], copy: Callable[[Sequence[str]], Copied]) -> int:
    written = 0
    for _ in range(_TRIES):
        later = [identity for identity, differs in some.items() if differs.later]
        run.ask(lambda later=later: remove(run, later))  # type: ignore[misc]
        ids = list(dict.fromkeys(id_ for id_, _ in some))
        copied = copy(ids)
        written += copied.written
        if not copied.conflicts:
            return written
        time.sleep(_PAUSE)
        now = run.ask(lambda ids=ids: _differing(run, {"query": {"ids": {"values": ids}}}))  # type: ignore[misc]
        some = {one: differs for one, differs in now.items() if one in some and differs.written == some[one].written}
        if not some:
            return written
    raise Unreadable(f"The document {ids[0]} cannot be copied, since the cluster keeps a later version of it.")


class _Differs(NamedTuple):
    """How a document of the live version differs from the target's.

    Attributes:
        written: number of the operation that wrote it in the live version, and of that one's primary term.
        later: whether the target has it in a later version. Where it does not, it lacks the document: it has just
            deleted it, and remembers that in a later version.
    """

    written: tuple[int, int]
    later: bool


def _differing(run: Run, source: Mapping[str, Any]) -> dict[Identity, _Differs]:
    """Documents of a pass that the target lacks after it, and those that it has in a later version."""
    found: dict[Identity, _Differs] = {}
    body = {**source, "_source": False, "version": True, "seq_no_primary_term": True}
    for hits in reading.pages(run.client, run.source, body):
        asked = [_place(hit) for hit in hits]
        answer = run.client.mget(index=run.target, body={"docs": asked}, params={"_source": "false"})
        for hit, there in zip(hits, answer["docs"], strict=True):
            if "error" in there:
                raise Unreadable(f"Index {run.target} does not answer for the document {hit['_id']}.")
            later = there["found"] and there["_version"] > hit["_version"]
            if later or not there["found"]:
                written = hit["_seq_no"], hit["_primary_term"]
                found[hit["_id"], hit.get("_routing")] = _Differs(written, later)
    return found


def _place(hit: Mapping[str, Any]) -> dict[str, Any]:
    return {"_id": hit["_id"], **({"routing": hit["_routing"]} if "_routing" in hit else {})}
