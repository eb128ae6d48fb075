"""Documents that were deleted and made anew: their versions are lower than those that the target has of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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

    Versions stay as they are, so that whoever writes with versions of his own can go on.

    Args:
        run: the run.
        source: query and slice of the pass that met the conflicts.
        copy: copies documents of these ids.

    Returns:
        How many documents were copied.
    """
    lacking, later = run.ask(lambda: _differing(run, source))
    todo = [*lacking, *later]
    written = 0
    for start in range(0, len(todo), _AT_A_TIME):
        some = todo[start : start + _AT_A_TIME]
        run.ask(lambda some=some: remove(run, [one for one in some if one in later]))  # type: ignore[misc]
        written += _copied(copy, list(dict.fromkeys(id_ for id_, _ in some)))
    return written


def _copied(copy: Callable[[Sequence[str]], Copied], ids: Sequence[str]) -> int:
    written = 0
    for _ in range(_TRIES):
        copied = copy(ids)
        written = max(written, copied.written)
        if not copied.conflicts:
            return written
        time.sleep(_PAUSE)
    raise Unreadable(f"The document {ids[0]} cannot be copied, since the cluster keeps a later version of it.")


def _differing(run: Run, source: Mapping[str, Any]) -> tuple[list[Identity], set[Identity]]:
    """Documents of a pass that the target lacks, and those that it has in a later version.

    What it lacks after the pass, it has just deleted, and remembers in a later version.
    """
    lacking: list[Identity] = []
    later: set[Identity] = set()
    for hits in reading.pages(run.client, run.source, {**source, "_source": False, "version": True}):
        asked = [_place(hit) for hit in hits]
        answer = run.client.mget(index=run.target, body={"docs": asked}, params={"_source": "false"})
        for hit, found in zip(hits, answer["docs"], strict=True):
            if "error" in found:
                raise Unreadable(f"Index {run.target} does not answer for the document {hit['_id']}.")
            if not found["found"]:
                lacking.append((hit["_id"], hit.get("_routing")))
            elif found["_version"] > hit["_version"]:
                later.add((hit["_id"], hit.get("_routing")))
    return lacking, later


def _place(hit: Mapping[str, Any]) -> dict[str, Any]:
    return {"_id": hit["_id"], **({"routing": hit["_routing"]} if "_routing" in hit else {})}
