"""Documents that come to the target with the former version's shift, by requests that began before the swap.

The server chooses the pipeline of a request when that begins, and the version that the alias stands for when the
pipeline is through: one that makes the vectors by a model takes seconds, in which an alias may have moved.
"""

from __future__ import annotations

import time

from opensearchpy import OpenSearch

from langshift.plugin.transfer import reading
from langshift.plugin.transfer.run import Run

_PAUSE, _LONGEST = 0.05, 60.0  # seconds
_TRIES = 10
# Whoever copies or changes all of an index has chosen the version when he began.
_LASTING = ("reindex", "byquery")


def mend_strays(run: Run) -> int:
    """Give what was written past the transfer the target's shift; called after the swap.

    Returns:
        How many documents it was.
    """
    stray = run.way.stray
    if stray is None:
        return 0
    _wait_for_writes(run)
    body = {"query": stray, "script": {"id": run.way.script, "params": run.way.params}}
    # What somebody has just written again is looked at again.
    params = {"conflicts": "proceed", "pipeline": "_none"}
    mended = 0
    for _ in range(_TRIES):
        run.ask(lambda: reading.refresh(run.client, run.target))
        if not run.ask(lambda: reading.count(run.client, run.target, dict(stray))):
            break
        told = run.ask(lambda: run.client.update_by_query(index=run.target, body=body, params=params))
        mended += int(told["updated"])
    return mended


def _wait_for_writes(run: Run) -> None:
    """Wait until the writes that are under way are done; no longer than a minute."""
    before = run.ask(lambda: _writes(run.client))
    deadline = time.monotonic() + _LONGEST
    while before and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        before &= run.ask(lambda: _writes(run.client))


def _writes(client: OpenSearch) -> set[str]:
    answer = client.tasks.list(params={"actions": "indices:data/write/*"})
    tasks = {id_: task for node in answer.get("nodes", {}).values() for id_, task in node["tasks"].items()}
    return {
        id_
        for id_, task in tasks.items()
        if "parent_task_id" not in task and not any(kind in task["action"] for kind in _LASTING)
    }
