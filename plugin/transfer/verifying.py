"""Whether a version holds what it must, before it becomes live; nobody writes to either version meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.console import counted
from langshift.plugin.fields import value_at
from langshift.plugin.transfer import reading
from langshift.plugin.transfer.mark import GivenUp
from langshift.plugin.transfer.run import Run

_SAMPLED = 200
_TOLERANCE = 1e-6  # of the vector's norm


def verify(run: Run) -> int:
    """Compare the target with the live version: the numbers of documents, and a sample of them.

    Returns:
        How many documents the target holds.

    Raises:
        GivenUp: they differ.
    """
    for index in (run.source, run.target):
        run.ask(lambda index=index: reading.refresh(run.client, index))  # type: ignore[misc]
    there, here = (
        run.ask(lambda index=index: reading.count(run.client, index))  # type: ignore[misc]
        for index in (run.source, run.target)
    )
    if there != here:
        raise _differs(run, f"it has {counted(here, 'document')}, not {there:,}")
    now = run.ask(lambda: reading.shards(run.client, run.source))
    if any(shard.latest > known for shard, known in zip(now, run.checkpoint, strict=True)):
        raise _differs(run, f"somebody has written to {run.source} although that takes no writes")
    sample = run.ask(lambda: _sample(run))
    expected = run.way.expected([hit["_source"] for hit in sample]) if sample else []
    copies = run.ask(lambda: _copies(run, sample)) if sample else []
    for number, (hit, vector, copy) in enumerate(zip(sample, expected, copies, strict=True), 1):
        if difference := _difference(run, hit, vector, copy):
            raise _differs(run, f"{difference} of the document {hit['_id']}")
        run.tell("verifying", number, len(sample))
    return here


def _sample(run: Run) -> list[dict[str, Any]]:
    size = min(_SAMPLED, reading.page_size(run.client, run.source))
    body = {"size": size, "version": True, "query": {"function_score": {"random_score": {}}}}
    hits: list[dict[str, Any]] = reading.search(run.client, body, index=run.source)["hits"]["hits"]
    return hits


def _copies(run: Run, sample: list[dict[str, Any]]) -> list[dict[str, Any]]:
    docs = [{"_id": hit["_id"], **({"routing": hit["_routing"]} if "_routing" in hit else {})} for hit in sample]
    found: list[dict[str, Any]] = run.client.mget(index=run.target, body={"docs": docs})["docs"]
    return found


def _difference(
    run: Run, hit: Mapping[str, Any], expected: NDArray[np.floating[Any]] | None, copy: Mapping[str, Any]
) -> str:
    """In what a document differs from what it must be; empty where in nothing."""
    if not copy.get("found"):
        return "it lacks a copy"
    if copy["_version"] != hit["_version"]:
        return f"it has version {copy['_version']}, not {hit['_version']},"
    vector = run.way.vector_field
    live, here = value_at(hit["_source"], vector), value_at(copy["_source"], vector)
    if not _same(here, expected, live):
        return f"it has another {vector} than expected"
    ours, theirs = (_others(run, source) for source in (copy["_source"], hit["_source"]))
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return f"it has another {differing[0]}" if differing else ""


def _same(here: Any, expected: NDArray[np.floating[Any]] | None, live: Any) -> bool:  # noqa: ANN401 - any JSON
    if expected is None or here is None:
        return expected is None and bool(here == live)
    if not isinstance(here, list) or len(here) != len(expected):
        return False
    found = np.asarray(here, dtype=np.float64)
    norm = max(np.linalg.norm(expected), np.linalg.norm(np.asarray(live, dtype=np.float64)))
    return bool(np.linalg.norm(found - expected) <= _TOLERANCE * norm)


def _others(run: Run, source: Mapping[str, Any]) -> dict[str, Any]:
    """A document without the fields that the script may change."""
    others = deepcopy(dict(source))
    for path in (run.way.vector_field, run.way.stamp_field):
        _remove(others, path)
    return others


def _remove(source: dict[str, Any], path: str) -> None:
    """Remove a field, also where a part of its name has dots itself; an object that it leaves empty goes too."""
    if path in source:
        del source[path]
        return
    parts = path.split(".")
    for cut in range(1, len(parts)):
        inner = source.get(".".join(parts[:cut]))
        if isinstance(inner, dict):
            _remove(inner, ".".join(parts[cut:]))
            if not inner:
                del source[".".join(parts[:cut])]


def _differs(run: Run, how: str) -> GivenUp:
    return GivenUp(
        f"{run.target} is not what {run.source} should have become ({how}), so {run.name} stands for {run.source} as "
        "before: run it again."
    )
