"""The last steps of a transfer: the write block, the check, the swap of the alias, and writes that came late."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, TransportError

from langshift.normal_form import normal_texts
from langshift.plugin import metadata
from langshift.plugin.index_sample import random_order
from langshift.plugin.stored_vector import WHOLE, distance, is_left_out, left_out, vector_at
from langshift.plugin.transfer import reindex_tasks
from langshift.plugin.transfer.copying import catch_up, delete_gone, document_key
from langshift.plugin.transfer.state import ClientTransform, ScriptTransform, Transfer, TransferAborted
from langshift.plugin.versions import move_alias, version_behind
from langshift.plugin.whole_view import hidden_documents, restricted_in_words
from langshift.server_errors import Unreadable
from langshift.wording import pluralize

#: Settings of an index that takes writes.
UNBLOCKED: Final = {"index": {"blocks.write": None}}


def block(run: Transfer) -> bool:
    """Let the live version take no writes any more; those under way are done when this returns.

    Returns:
        Whether somebody had blocked it before: then the version that takes its place is blocked too.
    """
    theirs = not run.retry(run.mark.read).get("blocked") and metadata.is_write_blocked(run.settings(run.source))
    if not theirs:
        # Noted first: a run that is killed between the two leaves a block that the next one knows for its own.
        run.retry(run.mark.note, blocked=True)
        run.retry(set_block, run.client, run.source)
    return theirs


def unblock(run: Transfer) -> None:
    """Let the live version take writes again, where this transfer has blocked it."""
    if run.retry(run.mark.read).get("blocked"):
        run.retry(lift_block, run.client, run.source, run.uuid)
        run.retry(run.mark.note, blocked=False)


def set_block(client: OpenSearch, index: str) -> None:
    """Let an index take no writes; those under way are done when this returns.

    Raises:
        Unreadable: a part of it does not answer, or it took none already, so that nobody knows of those under way.
    """
    answer = client.indices.add_block(index=index, block="write")
    if not (answer["acknowledged"] and answer["shards_acknowledged"]):
        client.indices.put_settings(index=index, body=UNBLOCKED)
        raise Unreadable(f"Some shards of {index} do not respond, so writes to it could not be blocked.")


def lift_block(client: OpenSearch, index: str, uuid: str) -> None:
    """Let an index take writes; nothing happens where it is gone, or another has its name."""
    if metadata.uuid_of(client, index) == uuid:
        with suppress(NotFoundError):
            client.indices.put_settings(index=index, body=UNBLOCKED)


_PAUSE, _LONGEST = 0.05, 60.0  # seconds
_TRIES = 10
# Whoever copies or changes all of an index has chosen the version when he began.
_LASTING = ("reindex", "byquery")


# The server chooses the pipeline of a request when that begins, and the version that the alias stands for when the
# pipeline is through: one that makes the vectors by a model takes seconds, in which an alias may have moved.
def fix_late_writes(run: Transfer) -> None:
    """Give what was written past the transfer the target's shift; called after the swap."""
    transform = run.transform
    # Where this process makes documents, a client's vectors are of the wrong encoder or of the right one, and who sends
    # which is known to nobody.
    if isinstance(transform, ClientTransform) or transform.late_writes is None:
        return
    _wait_for_writes(run)
    late_writes = transform.late_writes
    body = {"query": late_writes, "script": {"id": transform.script, "params": transform.params}}
    # What somebody has just written again is looked at again.
    params = {"conflicts": "proceed", "pipeline": "_none"}
    for _ in range(_TRIES):
        if not reindex_tasks.count_fresh(run, run.target, dict(late_writes)):
            return
        run.retry(run.client.update_by_query, index=run.target, body=body, params=params)


def _wait_for_writes(run: Transfer) -> None:
    """Wait until the writes that are under way are done; no longer than a minute."""
    before = run.retry(_writes, run.client)
    deadline = time.monotonic() + _LONGEST
    while before and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        before &= run.retry(_writes, run.client)


def _writes(client: OpenSearch) -> set[str]:
    return {
        id_
        for id_, task in reindex_tasks.listed_tasks(client, {"actions": "indices:data/write/*"})
        if "parent_task_id" not in task and not any(kind in task["action"] for kind in _LASTING)
    }


_SAMPLED = 200
_TOLERANCE = 1e-6  # of the vector's norm


def verify(run: Transfer) -> int:
    """Compare the target with the live version: the numbers of documents, and a sample of them.

    Vectors that this process makes are not compared: making them again would keep writers waiting, so that whoever
    makes them compares a sample before.

    Returns:
        How many documents the target holds.

    Raises:
        TransferAborted: they differ.
    """
    there, here = (reindex_tasks.count_fresh(run, index) for index in (run.source, run.target))
    if there != here:
        raise _differs(run, f"it has {pluralize(here, 'document')}, not {there:,}")
    now = run.retry(reindex_tasks.shards, run.client, run.source, len(run.checkpoint))
    if any(shard.latest > known for shard, known in zip(now, run.checkpoint, strict=True)):
        raise _differs(run, f"{run.source} was written to although it is read-only")
    if hidden := run.retry(hidden_documents, run.client, run.source):
        raise TransferAborted(restricted_in_words(run.source, hidden, f"a {run.kind}"))
    size = min(_SAMPLED, run.retry(reindex_tasks.page_size, run.client, run.source))
    body = {"size": size, "version": True, "query": random_order(), **WHOLE}
    sample = run.retry(reindex_tasks.search, run.client, body, index=run.source)["hits"]["hits"]
    # Vectors that this process makes are not compared.
    expected: Sequence[_Vector] = [None] * len(sample)
    if sample and isinstance(run.transform, ScriptTransform):
        expected = run.transform.expected([hit["_source"] for hit in sample])
    wanted = {"docs": [document_key(hit) for hit in sample]}
    copies = run.retry(run.client.mget, index=run.target, body=wanted)["docs"] if sample else []
    for number, (hit, vector, copy) in enumerate(zip(sample, expected, copies, strict=True), 1):
        if difference := _difference(run, hit, vector, copy):
            raise _differs(run, f"document {hit['_id']} {difference}")
        run.report("verifying", number, len(sample))
    return here


_Vector = NDArray[np.floating[Any]] | None


def _difference(run: Transfer, hit: Mapping[str, Any], expected: _Vector, copy: Mapping[str, Any]) -> str:
    """In what a document differs from what it must be; empty where in nothing."""
    if not copy.get("found"):
        return "has no copy"
    if copy["_version"] != hit["_version"]:
        return f"has version {copy['_version']}, not {hit['_version']}"
    if isinstance(run.transform, ScriptTransform):
        vector = run.transform.vector_field
        live, here = vector_at(hit["_source"], vector), vector_at(copy["_source"], vector)
        if (live is None) != (here is None):
            index = run.source if live is None else run.target
            if run.retry(is_left_out, run.client, index, vector, hit["_id"]):
                raise TransferAborted(left_out(index, vector))
        norms = [np.linalg.norm(one.astype(np.float64)) for one in (expected, live) if one is not None]
        if not distance(here, expected) <= _TOLERANCE * max(norms, default=0):
            return f"has an unexpected {vector}"
    ours, theirs = (_others(run, source) for source in (copy["_source"], hit["_source"]))
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return f"has a different {differing[0]}" if differing else ""


def _others(run: Transfer, source: Mapping[str, Any]) -> dict[str, Any]:
    """A document without what the transform may change."""
    others = deepcopy(dict(source))
    if isinstance(run.transform, ClientTransform):
        others = normal_texts(others, run.transform.texts)
    for path in run.transform.changes:
        metadata.remove_at(others, path)
    return others


def _differs(run: Transfer, how: str) -> TransferAborted:
    return TransferAborted(
        f"{run.target} is not as expected for a {run.kind} of {run.source} ({how}), so {run.name} still points to "
        f"{run.source}: run the command again."
    )


# So few documents of a pass are copied in no time: the next may be the one that writers wait for.
_FEW, _PASSES = 500, 6
# Where each is encoded.
_FEW_TO_ENCODE = 32
_REPLICA_TIMEOUT = 60


def sync_changes(run: Transfer) -> None:
    """Copy and delete what was written and deleted meanwhile, until little of it is left."""
    few = _FEW_TO_ENCODE if isinstance(run.transform, ClientTransform) else _FEW
    for _ in range(_PASSES):
        run.report("catching up")
        if catch_up(run) + delete_gone(run) <= few:
            return


def wait_for_replicas(run: Transfer) -> None:
    """Wait until the target has as many copies as the live version, so that a node may die after the swap too.

    No longer than a minute: a cluster that cannot make them may never.
    """
    run.report("settling")
    there = run.retry(run.client.indices.stats, index=run.source, metric="docs")["_shards"]["successful"]
    params = {"wait_for_active_shards": there, "timeout": f"{_REPLICA_TIMEOUT}s"}
    # The server says 408 where the time is over.
    with suppress(TransportError):
        run.client.cluster.health(index=run.target, params={**params, "request_timeout": _REPLICA_TIMEOUT + 10})


def cut_over(run: Transfer) -> tuple[int, float]:
    """Block the live version, copy what is left, compare, and let the alias stand for the target.

    Returns:
        How many documents the target holds, and for how many seconds nothing could be written.

    Raises:
        TransferAborted: the target is not what it must be, or the live version is not live any more.
    """
    run.require_unchanged()
    run.throttle = None
    run.report("blocked")
    began = time.monotonic()
    theirs = block(run)
    catch_up(run)
    delete_gone(run)
    # None may write any more that was begun by a request whose answer was lost.
    run.retry(reindex_tasks.cancel, run.client, run.target)
    if isinstance(run.transform, ClientTransform):
        reindex_tasks.wait_for_requests(run)
    documents = verify(run)
    _prepare(run, theirs)
    run.report("swapping")
    run.require_unchanged()
    run.retry(run.mark.read)
    run.retry(swap, run)
    return documents, time.monotonic() - began


def _prepare(run: Transfer, blocked: bool) -> None:
    """Give the target its own settings back, and note what is its origin from now on."""
    settings = dict((run.retry(metadata.unfinished, run.client, run.target) or {}).get("restore", {}))
    if blocked:
        settings["blocks.write"] = True
    run.retry(run.client.indices.put_settings, index=run.target, body={"index": settings})
    if run.notes_replaced:
        run.retry(metadata.note_replaced, run.client, run.target, run.source)
    # A version that goes back in its place keeps its own origin.
    elif run.mark.kind != "rollback":
        # It has as many shards, as its settings are copied.
        shards = run.retry(reindex_tasks.shards, run.client, run.target, len(run.checkpoint))
        origin = metadata.new_origin(run.mark.kind, run.source, run.uuid, [shard.latest for shard in shards])
        run.retry(metadata.change, run.client, run.target, {metadata.ORIGIN: origin.to_dict()})


def swap(run: Transfer) -> None:
    """Let the alias stand for the target, in one request: no search may find both versions, or none.

    May be called again where its answer was lost.

    Raises:
        TransferAborted: the alias does not stand any more for what was live.
    """
    # By the index: who may do all with an alias and its versions may not ask which of all indices have it.
    found = run.client.indices.get_alias(index=run.source, params={"ignore": 404})
    aliases: dict[str, dict[str, Any]] = found.get(run.source, {}).get("aliases", {})
    if run.name not in aliases and version_behind(run.client, run.name) == run.target:
        return  # it was done, and the answer was lost
    properties = aliases.get(run.name, {})
    try:
        move_alias(run.client, run.name, run.source, run.target, properties)
    except NotFoundError:
        # Of a request that was sent twice, as its first answer was lost, the second finds it done.
        if version_behind(run.client, run.name) != run.target:
            run.require_unchanged()
            raise
