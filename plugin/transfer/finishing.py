"""The last steps: writers wait, the rest is copied, all is compared, and the alias moves."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from opensearchpy.exceptions import NotFoundError, TransportError

from langshift.plugin import meta, origin
from langshift.plugin.transfer import reading, tasks
from langshift.plugin.transfer.blocking import block
from langshift.plugin.transfer.copying import catch_up
from langshift.plugin.transfer.removing import delete_gone
from langshift.plugin.transfer.run import Run
from langshift.plugin.transfer.verifying import verify
from langshift.plugin.versions import version_behind

# So few documents of a pass are copied in no time: the next may be the one that writers wait for.
_FEW, _PASSES = 500, 6
_SETTLED_SECONDS = 60


def bring_up(run: Run) -> None:
    """Copy and delete what was written and deleted meanwhile, until little of it is left."""
    for _ in range(_PASSES):
        run.tell("catching up")
        if catch_up(run) + delete_gone(run) <= _FEW:
            return


def settle(run: Run) -> None:
    """Wait until the target has as many copies as the live version, so that a node may die after the swap too.

    No longer than a minute: a cluster that cannot make them may never.
    """
    run.tell("settling")
    there = run.ask(lambda: run.client.indices.stats(index=run.source, metric="docs"))["_shards"]["successful"]
    params = {"wait_for_active_shards": there, "timeout": f"{_SETTLED_SECONDS}s"}
    # The server says 408 where the time is over.
    with suppress(TransportError):
        run.client.cluster.health(index=run.target, params={**params, "request_timeout": _SETTLED_SECONDS + 10})


def finish(run: Run) -> tuple[int, float]:
    """Block the live version, copy what is left, compare, and let the alias stand for the target.

    Returns:
        How many documents the target holds, and for how many seconds nothing could be written.

    Raises:
        GivenUp: the target is not what it must be, or the live version is not live any more.
    """
    run.require_unchanged()
    run.throttle = None
    run.tell("blocked")
    began = time.monotonic()
    theirs = block(run)
    catch_up(run)
    delete_gone(run)
    # None may write any more that was begun by a request whose answer was lost.
    run.ask(lambda: tasks.cancel(run.client, run.target))
    documents = verify(run)
    _prepare(run, theirs)
    run.tell("swapping")
    run.require_unchanged()
    run.ask(run.mark.read)
    run.ask(lambda: swap(run))
    return documents, time.monotonic() - began


def _prepare(run: Run, blocked: bool) -> None:
    """Give the target its own settings back, and note what is its origin from now on."""
    settings = dict((run.ask(lambda: meta.unfinished(run.client, run.target)) or {}).get("restore", {}))
    if blocked:
        settings["blocks.write"] = True
    run.ask(lambda: run.client.indices.put_settings(index=run.target, body={"index": settings}))
    if run.mark.kind == "retune":
        # A version that goes back in its place keeps its own origin.
        checkpoint = [shard.latest for shard in run.ask(lambda: reading.shards(run.client, run.target))]
        found = run.ask(lambda: origin.made(run.client, "retune", run.source, checkpoint))
        run.ask(lambda: meta.change(run.client, run.target, {meta.ORIGIN: found.to_dict()}))


def swap(run: Run) -> None:
    """Let the alias stand for the target, in one request: no search may find both versions, or none.

    May be called again where its answer was lost.

    Raises:
        GivenUp: the alias does not stand any more for what was live.
    """
    aliases = run.client.indices.get_alias(name=run.name)
    if run.source not in aliases and version_behind(run.client, run.name) == run.target:
        return  # it was done, and the answer was lost
    properties: dict[str, Any] = aliases.get(run.source, {}).get("aliases", {}).get(run.name, {})
    remove = {"remove": {"index": run.source, "alias": run.name, "must_exist": True}}
    add = {"add": {"index": run.target, "alias": run.name, **properties}}
    try:
        run.client.indices.update_aliases(body={"actions": [remove, add]})
    except NotFoundError:
        run.require_unchanged()
        raise
