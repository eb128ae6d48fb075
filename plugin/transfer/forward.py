"""A new version is made out of the live one inside the cluster, while people search and write."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import ClusterError
from langshift.patience import Patience
from langshift.plugin import load_settings, meta
from langshift.plugin.meta import uuid_of
from langshift.plugin.transfer import reading
from langshift.plugin.transfer.blocking import lift_block, unblock
from langshift.plugin.transfer.copying import copy_all
from langshift.plugin.transfer.finishing import bring_up, finish, settle
from langshift.plugin.transfer.left_behind import finish_left_behind, give_up, left_behind
from langshift.plugin.transfer.mark import Mark, new_token, noted
from langshift.plugin.transfer.plan import Plan, Transferred, Watch
from langshift.plugin.transfer.run import Run
from langshift.plugin.transfer.strays import mend_strays
from langshift.plugin.transfer.tidy import Useless, tidied
from langshift.plugin.versions import version_behind, versions

# What a version has while documents are copied into it: a document that is deleted there may come back with a lower
# version at once, and none goes through a pipeline a second time.
APART = {"gc_deletes": "0s", "final_pipeline": "_none"}
# Of as many slices as there are shards, each is one shard. Of one shard (5,000 documents, 512 dimensions, two cores in
# demand) two slices took 0.6 to 0.8 of one slice's time, four 0.5 of it, with as much work for the processors.
_LEAST_SLICES, _MOST_SLICES = 2, 8


def transfer(
    client: OpenSearch,
    plan: Plan,
    *,
    watch: Watch,
    gate: Callable[[str], None] | None = None,
    patience: float,
) -> Transferred:
    """Make a new version of an index out of the live one, and let the alias stand for it.

    What is written, updated and deleted meanwhile is in the new version too, with the same ids, routing and versions
    of documents. Writes are refused during the last pass; after it the old version takes none any more. Where this
    breaks off, the live version goes on serving, and the same call goes on; another call clears up what is left.

    Args:
        client: the cluster.
        plan: what to make.
        watch: is told how far it is; what it raises breaks the transfer off.
        gate: looks at the new version, given its name, before it becomes live; whatever error it raises removes that
            version, and is raised.
        patience: seconds to wait for a cluster that cannot be reached, or that copies no document.

    Raises:
        ClusterError: a document cannot be copied, the new version is not what it must be, or what was live was
            deleted or replaced meanwhile; then the new version is removed.
        LangshiftError: another run has taken over.
        OpenSearchException: the cluster refuses, or cannot be reached.
    """
    started = time.monotonic()
    finished = finish_left_behind(client, plan.name)
    if isinstance(finished, Transferred) and finished.asked == plan.asked:
        return finished
    run = _begin(client, plan, watch, patience)
    with tidied(run):
        unblock(run)
        copy_all(run)
        bring_up(run)
        if gate is not None:
            _pass_gate(run, gate)
            bring_up(run)
        settle(run)
        documents, blocked = finish(run)
        mend_strays(run)
        run.ask(run.mark.clear)
    run.tell("done", documents, documents)
    return Transferred(
        name=plan.name,
        index=run.target,
        live=run.source,
        documents=documents,
        caught_up=run.caught_up,
        deleted=run.deleted,
        seconds=time.monotonic() - started,
        blocked=blocked,
        asked=plan.asked,
    )


def _pass_gate(run: Run, gate: Callable[[str], None]) -> None:
    run.ask(lambda: reading.refresh(run.client, run.target))
    run.tell("checking")
    try:
        gate(run.target)
    except Exception as error:
        raise Useless from error


def _begin(client: OpenSearch, plan: Plan, watch: Watch, patience: float) -> Run:
    """The version that another run has left unfinished, or a new one."""
    live = version_behind(client, plan.name)
    if live is None:
        raise ClusterError(
            f"There is no index {plan.name}: make it with `langshift ingest CORPUS --index {plan.name}`."
        )
    if any(plan.body["mappings"].get("_source", {}).get(name) for name in ("includes", "excludes")):
        raise ClusterError(
            f"Index {live} leaves fields out of _source, so that a version made of it would lack them: load it anew."
        )
    uuid, token, mine = uuid_of(client, live), new_token(), None
    for index, kind, note in left_behind(client, plan.name):
        same = kind == "retune" and (note["asked"], note["from"], note["uuid"]) == (plan.asked, live, uuid)
        if mine is None and same:
            mine = index
        else:
            give_up(client, index, kind, note)
    run = Run(
        client=client,
        name=plan.name,
        source=live,
        uuid=uuid,
        target=mine or _next(client, plan.name),
        way=plan.way,
        mark=Mark(client, mine or _next(client, plan.name), "retune", token),
        watch=watch,
        patience=Patience(patience),
        throttle=plan.throttle,
    )
    if mine is None:
        run.checkpoint = tuple(shard.checkpoint for shard in run.ask(lambda: reading.shards(client, live)))
        run.ask(lambda: _make(run, plan, token))
    else:
        _take_over(run, token)
    run.slices = plan.slices or max(_LEAST_SLICES, min(len(run.checkpoint), _MOST_SLICES))
    return run


def _next(client: OpenSearch, name: str) -> str:
    existing = versions(client, name)
    number = int(existing[-1].rpartition("-v")[2]) + 1 if existing else 1
    return f"{name}-v{number:04}"


def _make(run: Run, plan: Plan, token: str) -> None:
    body: dict[str, Any] = deepcopy(dict(plan.body))
    restore = load_settings.quickened(body["settings"]["index"], fast=False, more=APART)
    body["mappings"].setdefault("_meta", {})[meta.UNFINISHED] = {
        **restore,
        "retune": {
            "asked": dict(plan.asked),
            "from": run.source,
            "uuid": run.uuid,
            "checkpoint": list(run.checkpoint),
            "task": None,
            "copied": False,
            "blocked": False,
            "token": token,
        },
    }
    try:
        run.client.indices.create(index=run.target, body=body)
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise
        found = noted(run.client, run.target)
        if found is None or found[1].get("token") != token:
            raise ClusterError(
                f"Another run is making a version of {run.name} at this moment: run again when it is done."
            ) from error


def _take_over(run: Run, token: str) -> None:
    """Go on with what another run has left; that one does nothing more, should it still be alive."""
    unfinished = run.ask(lambda: meta.unfinished(run.client, run.target)) or {}
    note = {**unfinished["retune"], "token": token}
    run.ask(lambda: meta.note_unfinished(run.client, run.target, {**unfinished, "retune": note}))
    run.checkpoint = tuple(note["checkpoint"])
    # A kill right before the swap left the target with settings of its own, perhaps with a block of its users.
    run.ask(lambda: lift_block(run.client, run.target, uuid_of(run.client, run.target)))
    run.ask(lambda: load_settings.quicken(run.client, run.target, fast=False, more=APART))
