"""Copying documents: all of them once, then again and again those that were written meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from langshift.files import batched
from langshift.plugin.metadata import remove_at, window
from langshift.plugin.transfer import reindex_tasks
from langshift.plugin.transfer.client_copy import copy_here, in_target
from langshift.plugin.transfer.reindex_tasks import CopyCounts, TaskInterrupted
from langshift.plugin.transfer.state import ClientTransform, ScriptTransform, Transfer
from langshift.retry import BACKOFF
from langshift.server_errors import Unreadable


def carry_mappings(run: Transfer) -> None:
    """Give the target each field that it lacks, before documents with it come and are mapped by guess."""

    def carry() -> None:
        there, here = (
            run.client.indices.get_mapping(index=index)[index]["mappings"].get("properties", {})
            for index in (run.source, run.target)
        )
        if isinstance(run.transform, ClientTransform):
            for path in run.transform.removed:
                remove_at(there, path.replace(".", ".properties."))
        if lacking := _lacking(there, here):
            run.client.indices.put_mapping(index=run.target, body={"properties": lacking})

    run.retry(carry)


def _lacking(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the one mapping that the other lacks; of objects only what is lacking in them."""
    lacking: dict[str, Any] = {}
    for name, field in there.items():
        if name not in here:
            lacking[name] = field
        elif inner := _lacking(field.get("properties", {}), here[name].get("properties", {})):
            kind = {"type": "nested"} if field.get("type") == "nested" else {}
            lacking[name] = {**kind, "properties": inner}
    return lacking


Identity = tuple[str, str | None]


def delete_gone(run: Transfer) -> int:
    """Delete in the target what was deleted in the live version; returns how many documents.

    Called after ``catch_up``, when the target has every document of the live version that it had when that began:
    where it has no more than that, nothing was deleted.

    Raises:
        TransferSuperseded: by another run.
    """
    here, there = (reindex_tasks.count_fresh(run, index) for index in (run.target, run.source))
    if here <= there:
        return 0
    run.report("deleting", 0, here)
    # A node that dies takes the search along: what was deleted by then is found no more.
    deleted = run.retry(_scan, run, here)
    run.deleted += deleted
    return deleted


def remove(run: Transfer, documents: Sequence[Identity]) -> None:
    """Delete documents in the target.

    Raises:
        TransferSuperseded: by another run.
        Unreadable: a part of the cluster does not answer; some may be deleted.
    """
    if not documents:
        return
    run.mark.read()
    actions = [
        orjson.dumps({"delete": {"_id": id_} if routing is None else {"_id": id_, "routing": routing}})
        for id_, routing in documents
    ]
    answer = run.client.bulk(index=run.target, body=b"\n".join(actions) + b"\n", params={"pipeline": "_none"})
    for item in answer["items"]:
        if error := item["delete"].get("error"):
            raise Unreadable(f"Documents of {run.target} could not be deleted: {error.get('reason', error)}.")


def _scan(run: Transfer, total: int) -> int:
    deleted = seen = 0
    for hits in reindex_tasks.pages(run.client, run.target, {"_source": False}):
        ours = [(hit["_id"], hit.get("_routing")) for hit in hits]
        ids = list(dict.fromkeys(id_ for id_, _ in ours))
        body = {"query": {"ids": {"values": ids}}, "_source": False, "size": 2 * len(ours)}
        answer = reindex_tasks.search(run.client, body, index=run.source)
        live = {(hit["_id"], hit.get("_routing")) for hit in answer["hits"]["hits"]}
        gone = [identity for identity in ours if identity not in live]
        remove(run, gone)
        deleted, seen = deleted + len(gone), seen + len(hits)
        run.report("deleting", seen, total)
    return deleted


_AT_A_TIME = 1000
# The server looks at its clock five times a second only, and remembers what was deleted for one look.
_PAUSE, _TRIES = 0.1, 100


def resolve_conflicts(run: Transfer, source: Mapping[str, Any]) -> int:
    """Delete in the target what it has in a later version than the live one, and copy it anew with its own.

    Versions stay as they are, so that whoever writes with versions of his own can go on. A document that is written
    while this goes on is left to the next pass, which copies whatever was written since this one began: those who
    delete documents and make them anew without end would keep this going without end, too.

    Args:
        run: the run.
        source: query and slice of the pass that met the conflicts.

    Returns:
        How many documents were copied.

    Raises:
        Unreadable: a document that nobody writes cannot be copied.
    """
    todo = run.retry(_differing, run, source).items()
    return sum(_resolve_batch(run, dict(part)) for part in batched(todo, _AT_A_TIME))


def _resolve_batch(run: Transfer, some: dict[Identity, _Differs]) -> int:
    written = 0
    for _ in range(_TRIES):
        run.retry(remove, run, [identity for identity, differs in some.items() if differs.later])
        ids = list(dict.fromkeys(id_ for id_, _ in some))
        by_ids = {"query": {"ids": {"values": ids}}}
        copied = _pass(run, by_ids)
        written += copied.written
        if not copied.conflicts:
            return written
        time.sleep(_PAUSE)
        now = run.retry(_differing, run, by_ids)
        some = {one: differs for one, differs in now.items() if one in some and differs.written == some[one].written}
        if not some:
            return written
    raise Unreadable(f"Document {ids[0]} cannot be copied: the cluster stores a later version of it.")


class _Differs(NamedTuple):
    """How a document of the live version differs from the target's.

    Attributes:
        written: number of the operation that wrote it in the live version, and of that one's primary term.
        later: whether the target has it in a later version. Where it does not, it lacks the document: it has just
            deleted it, and remembers that in a later version.
    """

    written: tuple[int, int]
    later: bool


def _differing(run: Transfer, source: Mapping[str, Any]) -> dict[Identity, _Differs]:
    """Documents of a pass that the target lacks after it, and those that it has in a later version."""
    found: dict[Identity, _Differs] = {}
    body = {**source, "_source": False, "version": True, "seq_no_primary_term": True}
    for hits in reindex_tasks.pages(run.client, run.source, body):
        keys = [document_key(hit) for hit in hits]
        for hit, there in zip(hits, in_target(run, keys, _source="false"), strict=True):
            later = there["found"] and there["_version"] > hit["_version"]
            if later or not there["found"]:
                found[hit["_id"], hit.get("_routing")] = _Differs((hit["_seq_no"], hit["_primary_term"]), later)
    return found


def document_key(hit: Mapping[str, Any]) -> dict[str, Any]:
    """The id of a hit, with its routing where it has one, as a request for several documents takes it."""
    return {"_id": hit["_id"], **({"routing": hit["_routing"]} if "_routing" in hit else {})}


T = TypeVar("T")

# Of documents to a bulk request inside the cluster; a throttled task waits after each. One node holds those of all
# slices: of more than eight, which each have a thousand, all together have no more.
_BATCH, _AT_ONCE = 1000, 8000
# So few documents are copied by one task for all shards, though some of them may be there already.
_FEW = 5000


def copy_all(run: Transfer) -> None:
    """Copy every document, or go on with that; what is written meanwhile is left to ``catch_up``.

    Raises:
        TransferAborted: a document cannot be copied, or the live version is gone.
        OpenSearchException: the cluster could not be reached for as long as patience lasts.
    """
    if run.retry(run.mark.read).get("copied"):
        return
    total = reindex_tasks.count_fresh(run, run.source)
    furthest = 0

    def report_progress(copied: CopyCounts) -> None:
        nonlocal furthest
        if copied.written > furthest:
            run.patience.taken()
        furthest = max(furthest, copied.written)
        run.report("copying", min(copied.written + copied.conflicts, total), total)

    run.report("copying", 0, total)
    carry_mappings(run)
    # A document that is there already is passed over: this pass may have broken off before.
    if isinstance(run.transform, ClientTransform):
        _until_done(run, partial(copy_here, run, run.transform, {}, "external", report_progress))
    else:
        _copy_all_by_task(run, report_progress)
    run.retry(run.mark.note, copied=True, task=None)


def _copy_all_by_task(run: Transfer, report_progress: Callable[[CopyCounts], None]) -> None:
    going = _going_on(run)

    def copy() -> None:
        nonlocal going
        task, going = going, None
        if task is None:
            task = reindex_tasks.start(run, _body(run, {}, "external", run.slices), **_params(run, run.slices))
            run.retry(run.mark.note, task=task)
        reindex_tasks.wait_for_task(run, task, report_progress)

    _until_done(run, copy)


def catch_up(run: Transfer) -> int:
    """Copy what was written since the last time; returns how many documents.

    Deletes are left to ``delete_gone``.

    Raises:
        TransferAborted: a document cannot be copied, or the live version is gone.
    """
    now = run.retry(reindex_tasks.shards, run.client, run.source, len(run.checkpoint))
    run.retry(reindex_tasks.refresh, run.client, run.source)
    since = run.checkpoint
    later = [number for number, shard in enumerate(now) if shard.latest > since[number]]
    if not later:
        return 0
    carry_mappings(run)
    written = 0
    for query in _parts(run, later):
        written += _until_done(run, partial(_copy_some, run, query))
        run.report("catching up", written)
    # An operation that one copy of a shard lacks yet is copied again.
    run.checkpoint = tuple(max(shard.checkpoint, before) for shard, before in zip(now, since, strict=True))
    run.retry(run.mark.note, checkpoint=list(run.checkpoint))
    run.caught_up += written
    return written


def _copy_some(run: Transfer, source: Mapping[str, Any]) -> int:
    copied = _pass(run, source)
    if not copied.conflicts:
        return copied.written
    # The other documents of these are in the target by now: what is left is deleted there and copied anew.
    return copied.written + resolve_conflicts(run, source)


def _pass(run: Transfer, source: Mapping[str, Any]) -> CopyCounts:
    if isinstance(run.transform, ClientTransform):
        return copy_here(run, run.transform, source, "external_gte", lambda _: run.patience.taken())
    task = reindex_tasks.start(run, _body(run, source, "external_gte", 1), **_params(run, 1))
    return reindex_tasks.wait_for_task(run, task, lambda _: None)


def _parts(run: Transfer, shards: list[int]) -> list[dict[str, Any]]:
    """Sources of tasks that together copy what was written to some shards.

    The numbers of operations are each shard's own, and a query knows no shards: what is new in one has lower numbers
    than what is old in another. Of as many slices as there are shards, each is one shard.
    """
    several = len(run.checkpoint)
    lowest = _since(min(run.checkpoint[number] for number in shards))
    if several == 1 or run.retry(reindex_tasks.count, run.client, run.source, lowest) <= _FEW:
        return [{"query": lowest}]
    slices = [{"id": number, "max": several} for number in shards]
    return [{"query": _since(run.checkpoint[one["id"]]), "slice": one} for one in slices]


def _since(checkpoint: int) -> dict[str, Any]:
    return {"range": {"_seq_no": {"gt": checkpoint}}}


def _body(run: Transfer, source: Mapping[str, Any], version_type: str, slices: int) -> dict[str, Any]:
    assert isinstance(run.transform, ScriptTransform)  # noqa: S101 - what has no script is not copied by tasks
    batch = min(_BATCH, max(1, _AT_ONCE // slices), window(run.settings(run.source)))
    size = batch if run.throttle is None else max(1, min(batch, round(run.throttle)))
    return {
        "conflicts": "proceed",
        "source": {"index": run.source, "size": size, **source},
        # Pipelines have seen these documents already.
        "dest": {"index": run.target, "version_type": version_type, "pipeline": "_none"},
        "script": {"id": run.transform.script, "params": run.transform.params},
    }


def _params(run: Transfer, slices: int) -> dict[str, Any]:
    params: dict[str, Any] = {} if slices == 1 else {"slices": slices}
    if run.throttle is not None:
        params["requests_per_second"] = run.throttle
    return params


def _going_on(run: Transfer) -> str | None:
    """The task of a run that broke off, where it still runs or has ended since."""
    noted: str | None = run.retry(run.mark.read).get("task")
    active = run.retry(reindex_tasks.running, run.client, run.target)
    if noted is None and len(active) == 1:
        (noted,) = active
    if noted is not None and noted in active and run.throttle is not None:
        run.retry(run.client.reindex_rethrottle, task_id=noted, params={"requests_per_second": run.throttle})
    return noted


def _until_done(run: Transfer, action: Callable[[], T]) -> T:
    """Do it again where a node died meanwhile, until nothing has moved for as long as patience lasts."""

    def note(state: RetryCallState) -> None:
        run.require_unchanged()
        error = state.outcome.exception() if state.outcome else None
        run.patience.trouble(error.why if isinstance(error, TaskInterrupted) else "")

    run.patience.taken()
    trying = Retrying(
        wait=BACKOFF,
        stop=lambda _: run.patience.over,
        retry=retry_if_exception_type(TaskInterrupted),
        before_sleep=note,
        reraise=True,
    )
    return trying(action)
