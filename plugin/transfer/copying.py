"""Copying documents: all of them once, then again and again those that were written meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from langshift.patience import BACKOFF
from langshift.plugin.index_settings import window
from langshift.plugin.transfer import reading, tasks
from langshift.plugin.transfer.conflicts import settle_conflicts
from langshift.plugin.transfer.mappings import carry_mappings
from langshift.plugin.transfer.run import Run
from langshift.plugin.transfer.tasks import Broken, Copied

T = TypeVar("T")

# Of documents to a bulk request inside the cluster; a throttled task waits after each.
_BATCH = 1000
# So few documents are copied by one task for all shards, though some of them may be there already.
_FEW = 5000


def copy_all(run: Run) -> None:
    """Copy every document, or go on with that; what is written meanwhile is left to ``catch_up``.

    Raises:
        GivenUp: a document cannot be copied, or the live version is gone.
        OpenSearchException: the cluster could not be reached for as long as patience lasts.
    """
    if run.ask(run.mark.read).get("copied"):
        return
    run.ask(lambda: reading.refresh(run.client, run.source))
    total = run.ask(lambda: reading.count(run.client, run.source))
    furthest = 0

    def told(copied: Copied) -> None:
        nonlocal furthest
        if copied.written > furthest:
            run.patience.taken()
        furthest = max(furthest, copied.written)
        run.tell("copying", min(copied.all, total), total)

    run.tell("copying", 0, total)
    carry_mappings(run)
    going = _going_on(run)

    def copy() -> None:
        nonlocal going
        task, going = going, None
        if task is None:
            # A document that is there already is passed over: this pass may have broken off before.
            task = tasks.start(run, _body(run, {}, "external"), **_params(run, run.slices))
            run.ask(lambda: run.mark.note(task=task))
        tasks.follow(run, task, told)

    _until_done(run, copy)
    run.ask(lambda: run.mark.note(copied=True, task=None))


def catch_up(run: Run) -> int:
    """Copy what was written since the last time; returns how many documents.

    Deletes are left to ``delete_gone``.

    Raises:
        GivenUp: a document cannot be copied, or the live version is gone.
    """
    now = run.ask(lambda: reading.shards(run.client, run.source))
    run.ask(lambda: reading.refresh(run.client, run.source))
    since = run.checkpoint
    later = [number for number, shard in enumerate(now) if shard.latest > since[number]]
    if not later:
        return 0
    carry_mappings(run)
    written = 0
    for query in _parts(run, later):
        written += _until_done(run, lambda query=query: _copy_some(run, query))  # type: ignore[misc]
        run.tell("catching up", written)
    # An operation that one copy of a shard lacks yet is copied again.
    run.checkpoint = tuple(max(shard.checkpoint, before) for shard, before in zip(now, since, strict=True))
    run.ask(lambda: run.mark.note(checkpoint=list(run.checkpoint)))
    run.caught_up += written
    return written


def _copy_some(run: Run, source: Mapping[str, Any]) -> int:
    copied = _pass(run, source)
    if not copied.conflicts:
        return copied.written
    # The other documents of these are in the target by now: what is left is deleted there and copied anew.
    return copied.written + settle_conflicts(run, source, lambda ids: _pass(run, {"query": {"ids": {"values": ids}}}))


def _pass(run: Run, source: Mapping[str, Any]) -> Copied:
    task = tasks.start(run, _body(run, source, "external_gte"), **_params(run, None))
    return tasks.follow(run, task, lambda _: None)


def _parts(run: Run, shards: list[int]) -> list[dict[str, Any]]:
    """Sources of tasks that together copy what was written to some shards.

    The numbers of operations are each shard's own, and a query knows no shards: what is new in one has lower numbers
    than what is old in another. Of as many slices as there are shards, each is one shard.
    """
    several = len(run.checkpoint)
    lowest = _since(min(run.checkpoint[number] for number in shards))
    if several == 1 or run.ask(lambda: reading.count(run.client, run.source, lowest)) <= _FEW:
        return [{"query": lowest}]
    slices = [{"id": number, "max": several} for number in shards]
    return [{"query": _since(run.checkpoint[one["id"]]), "slice": one} for one in slices]


def _since(checkpoint: int) -> dict[str, Any]:
    return {"range": {"_seq_no": {"gt": checkpoint}}}


def _body(run: Run, source: Mapping[str, Any], version_type: str) -> dict[str, Any]:
    batch = min(_BATCH, window(run.settings(run.source)))
    size = batch if run.throttle is None else max(1, min(batch, round(run.throttle)))
    return {
        "conflicts": "proceed",
        "source": {"index": run.source, "size": size, **source},
        # Pipelines have seen these documents already.
        "dest": {"index": run.target, "version_type": version_type, "pipeline": "_none"},
        "script": {"id": run.way.script, "params": run.way.params},
    }


def _params(run: Run, slices: int | None) -> dict[str, Any]:
    params: dict[str, Any] = {} if slices is None or slices == 1 else {"slices": slices}
    if run.throttle is not None:
        params["requests_per_second"] = run.throttle
    return params


def _going_on(run: Run) -> str | None:
    """The task of a run that broke off, where it still runs or has ended since."""
    noted: str | None = run.ask(run.mark.read).get("task")
    active = run.ask(lambda: tasks.running(run.client, run.target))
    if noted is None and len(active) == 1:
        (noted,) = active
    if noted is not None and noted in active and run.throttle is not None:
        rate = {"requests_per_second": run.throttle}
        run.ask(lambda: run.client.reindex_rethrottle(task_id=noted, params=rate))
    return noted


def _until_done(run: Run, action: Callable[[], T]) -> T:
    """Do it again where a node died meanwhile, until nothing has moved for as long as patience lasts."""

    def note(_: RetryCallState) -> None:
        run.require_unchanged()
        run.patience.trouble()

    run.patience.taken()
    trying = Retrying(
        wait=BACKOFF,
        stop=lambda _: run.patience.over,
        retry=retry_if_exception_type(Broken),
        before_sleep=note,
        reraise=True,
    )
    return trying(action)
