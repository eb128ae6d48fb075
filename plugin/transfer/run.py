"""A new version made out of the live one inside the cluster; what an earlier try left behind; the way back."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException, RequestError

from langshift.client import address
from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import live_writes, metadata, pipelines, version_writer, versions
from langshift.plugin.index_templates import ALREADY_EXISTS, create_version
from langshift.plugin.transfer import copying, cutover, reindex_tasks, state
from langshift.retry import at_work, is_passing, waiting
from langshift.server_errors import failure


def finish_abandoned(client: OpenSearch, name: str) -> state.TransferResult | None:
    """Finish what was killed right after it had let the alias stand for its version; None where nothing was.

    To be called before anybody looks what is live.

    Raises:
        ClusterError: ``name`` is an index, or an alias of several.
    """
    live = versions.read_live(client, name)
    if live is None:
        return None
    noted, found = live.meta.get(metadata.UNFINISHED), state.transfer_note_from_metadata(live.meta)
    # Else its block would be taken for somebody's own.
    live_writes.release_abandoned(client, name)
    if found is None:
        if noted is not None:
            # A load's, that was killed when it had published the version: what that was to replace is kept.
            metadata.write(client, live.name, {**live_writes.release(client, live.name), metadata.UNFINISHED: None})
        return None
    kind, note = found
    metadata.change(client, live.name, {metadata.UNFINISHED: None})
    if kind != "rollback":
        return state.TransferResult(name, live.name, note["from"], note["asked"], kind)
    return state.TransferResult(name, live.name, note["from"], None, _kind_of(client, note["from"]))


def _kind_of(client: OpenSearch, version: str) -> str:
    """What had made a version that was rolled back from; it may be gone."""
    try:
        found = metadata.read_origin(client, version)
    except NotFoundError:
        found = None
    return "retune" if found is None else found.kind


def release_abandoned(client: OpenSearch, name: str) -> None:
    """Before unfinished versions of a name are dropped: end their tasks, and let the live one take writes again.

    A run that works on one of them at this moment stops.
    """
    for index, kind, note in abandoned(client, name):
        _release(client, index, kind, note)


def clear_abandoned(client: OpenSearch, name: str) -> None:
    """Clear away what transfers have left unfinished, and let the live version take writes again."""
    for index, kind, note in abandoned(client, name):
        discard(client, index, kind, note)


def abandoned(client: OpenSearch, name: str) -> list[tuple[str, state.Kind, dict[str, Any]]]:
    """Versions that transfers have left unfinished, oldest first, with what they have noted.

    Versions that loads are making are none of these.
    """
    found = {index: state.transfer_note_from_metadata(one) for index, one in versions.unfinished(client, name).items()}
    return [(index, *one) for index, one in found.items() if one is not None]


def discard(client: OpenSearch, index: str, kind: state.Kind, note: Mapping[str, Any]) -> None:
    """Clear away what a transfer has made of a version, whoever works on it.

    A version that was being made is removed, with its pipeline. One that was to be rolled back to is as it was
    before, behind its write block; what was carried over to it by then does no harm, and is carried over again.
    """
    _release(client, index, kind, note)
    if kind != "rollback":
        client.indices.delete(index=index, ignore_unavailable=True)
        pipelines.forget_where_allowed(client, index)
        return
    client.indices.put_settings(index=index, body={"index": {"blocks.write": True}})
    version_writer.restore(client, index)
    metadata.change(client, index, {metadata.UNFINISHED: None})


def _release(client: OpenSearch, index: str, kind: state.Kind, note: Mapping[str, Any]) -> None:
    if not metadata.uuid_of(client, index):
        return
    mark = state.TransferMark(client, index, kind)
    mark.take_over(note)
    reindex_tasks.cancel(client, index)
    if note.get("blocked"):
        cutover.lift_block(client, note["from"], note["uuid"])
        mark.note(blocked=False)


class GateRejected(Exception):
    """What was being made is refused by whoever asked for it, with the error that this was raised from."""


@contextmanager
def cleaned_up_on_error(run: state.Transfer) -> Iterator[None]:
    """Around the steps of a run up to the swap.

    What breaks off for want of a node, or because somebody interrupts it, stays and can be gone on with, but for a
    version that is rolled back to, which costs little to begin with anew. What can never become live goes.
    """
    try:
        try:
            yield
        except NotFoundError:
            # Somebody has deleted something: that is the better thing to say.
            run.retry(run.mark.read)
            run.require_unchanged()
            raise
    except state.TransferSuperseded:
        with suppress(OpenSearchException):
            versions.remove_impostor(run.client, run.target, "")
        raise
    except BaseException as error:
        useless = isinstance(error, state.TransferAborted | GateRejected)
        # The cluster was waited for, or somebody does not want to wait.
        with waiting(None):
            _leave(run, error, useless=useless or run.mark.kind == "rollback")
        if isinstance(error, GateRejected) and error.__cause__ is not None:
            raise error.__cause__ from None
        raise


def _leave(run: state.Transfer, error: BaseException, *, useless: bool) -> None:
    try:
        note = run.mark.read()
        if versions.version_behind(run.client, run.name) == run.target:
            return  # all that is left is to clear the mark, which the next run does
        if useless:
            discard(run.client, run.target, run.mark.kind, note)
        else:
            reindex_tasks.cancel(run.client, run.target)
            run.mark.note(task=None)
            cutover.unblock(run)
    except state.TransferSuperseded:
        return
    except (OpenSearchException, LangshiftError) as trouble:
        original, why = (
            failure(one, address(run.client)) if isinstance(one, OpenSearchException) else one
            for one in (error, trouble)
        )
        if not isinstance(original, LangshiftError):
            return
        raise ClusterError(
            f"{original} Cleaning up failed too, so {run.source} may stay read-only until the same command is run "
            f"again: {why}"
        ) from error


# What a version has while documents are copied into it: a document that is deleted there may come back with a lower
# version at once, and none goes through a pipeline a second time.
APART = {"gc_deletes": "0s", "final_pipeline": "_none"}
# Of as many slices as there are shards, each is one shard. Of one shard (5,000 documents, 512 dimensions, two cores in
# demand) two slices took 0.6 to 0.8 of one slice's time, four 0.5 of it, with as much work for the processors.
_LEAST_SLICES = 2


def transfer(
    client: OpenSearch,
    plan: state.TransferPlan,
    *,
    watch: state.TransferListener,
    gate: Callable[[str], None] | None = None,
    patience: float,
) -> state.TransferResult:
    """Make a new version of an index out of the live one, and let the alias stand for it.

    What is written, updated and deleted meanwhile is in the new version too, with the same ids, routing and versions
    of documents. Writes are refused during the last pass; after it the old version takes none any more. Where this
    breaks off, the live version goes on serving, and the same call goes on; another call clears up what is left.

    Args:
        client: the cluster.
        plan: what to make.
        watch: is told how far it is; what it raises breaks the transfer off.
        gate: looks at the new version, given its name, before it becomes live; whatever error it raises is raised, and
            removes that version, unless it is trouble of the cluster's.
        patience: seconds to wait for a cluster that cannot be reached, or that copies no document.

    Raises:
        ClusterError: a document cannot be copied, the new version is not what it must be, or what was live was
            deleted or replaced meanwhile; then the new version is removed.
        LangshiftError: another run has taken over.
        OpenSearchException: the cluster refuses, or cannot be reached.
    """
    started = time.monotonic()
    finished = finish_abandoned(client, plan.name)
    if finished is not None and finished.requested == plan.requested:
        return finished
    done = _carry_over(_begin(client, plan, watch, patience), plan.kind, plan.requested, gate)
    return replace(done, seconds=time.monotonic() - started)


@at_work()
def _carry_over(
    run: state.Transfer,
    kind: str,
    requested: Mapping[str, Any] | None = None,
    gate: Callable[[str], None] | None = None,
) -> state.TransferResult:
    """Bring the target up to date, and let the alias stand for it."""
    with cleaned_up_on_error(run):
        if run.mark.kind != "rollback":
            cutover.unblock(run)
            copying.copy_all(run)
        cutover.sync_changes(run)
        if gate is not None:
            run.retry(reindex_tasks.refresh, run.client, run.target)
            run.report("checking")
            try:
                gate(run.target)
            except Exception as error:
                if is_passing(error):
                    raise
                raise GateRejected from error
            cutover.sync_changes(run)
        cutover.wait_for_replicas(run)
        if isinstance(run.transform, state.ClientTransform):
            # What was written in the meantime takes longer than in the cluster, and writers are to wait for little.
            cutover.sync_changes(run)
        documents, blocked = cutover.cut_over(run)
        cutover.fix_late_writes(run)
        run.retry(run.mark.clear)
    run.report("done", documents, documents)
    figures = documents, run.caught_up, run.deleted
    return state.TransferResult(run.name, run.target, run.source, requested, kind, *figures, blocked=blocked)


def _begin(
    client: OpenSearch, plan: state.TransferPlan, watch: state.TransferListener, patience: float
) -> state.Transfer:
    """The version that another run has left unfinished, or a new one."""
    there = versions.read_live(client, plan.name)
    if there is None:
        raise ClusterError(
            f"There is no index {plan.name}: create it with `langshift ingest CORPUS --index {plan.name}`."
        )
    if any(plan.body["mappings"].get("_source", {}).get(name) for name in ("includes", "excludes")):
        raise ClusterError(
            f"Index {there.name} leaves fields out of _source, which a copy would not have: load the corpus again."
        )
    live, uuid, mine = there.name, there.uuid, None
    for index, kind, note in abandoned(client, plan.name):
        same = kind == plan.kind and (note["asked"], note["from"], note["uuid"]) == (plan.requested, live, uuid)
        if mine is None and same:
            mine = index
        else:
            discard(client, index, kind, note)
    target = mine or versions.next_version(client, plan.name, live)
    run = state.Transfer(client, plan.name, live, uuid, target, plan.transform, plan.kind, watch, patience)
    run.throttle = plan.throttle
    if mine is None:
        number = int(there.settings["number_of_shards"])
        run.checkpoint = tuple(shard.checkpoint for shard in run.retry(reindex_tasks.shards, client, live, number))
        run.retry(_make, run, plan)
    else:
        # That run does nothing more, should it still be alive, but may have noted more.
        note = (run.retry(metadata.unfinished, client, target) or {})[plan.kind]
        run.checkpoint = tuple(note["checkpoint"])
        _open(run, note)
    run.slices = plan.slices or max(_LEAST_SLICES, len(run.checkpoint))
    return run


def _make(run: state.Transfer, plan: state.TransferPlan) -> None:
    body: dict[str, Any] = deepcopy(dict(plan.body))
    restore = version_writer.add_load_settings(body["settings"]["index"], fast=False, more=APART)
    note = {**run.first_note(), "asked": dict(plan.requested), "task": None, "copied": False}
    body["mappings"].setdefault("_meta", {})[metadata.UNFINISHED] = {**restore, plan.kind: note}

    def is_own() -> bool:
        with suppress(state.TransferSuperseded):
            return bool(run.mark.read())
        return False

    try:
        create_version(run.client, run.name, run.target, body, is_own)
    except RequestError as error:
        if error.error != ALREADY_EXISTS:
            raise
        raise ClusterError(
            f"Another run is creating a version of {run.name}: run the command again when it has finished."
        ) from error


def roll_back(
    client: OpenSearch,
    name: str,
    transform: state.Transform | None,
    *,
    to: str | None = None,
    watch: state.TransferListener,
    patience: float,
) -> state.TransferResult:
    """Let the alias stand again for the version that was live before, or for another that is complete.

    Where retunes and reencodes have made one of the two of the other, whatever was written, updated and deleted in the
    live one since is carried over; it takes no writes any more afterwards, and stays. Else the alias just moves: their
    documents are others.

    Args:
        client: the cluster.
        name: the alias.
        transform: how a document of the live version becomes one of the other; None where the alias just moves.
        to: the version that is to be live; None for the one before the live one.
        watch: is told how far it is; what it raises breaks the rollback off.
        patience: seconds to wait for a cluster that cannot be reached, or that copies no document.

    Raises:
        ClusterError: there is no previous version, or it is not what it must be.
        LangshiftError: another run has taken over.
        OpenSearchException: the cluster refuses, or cannot be reached.
    """
    started = time.monotonic()
    finished = finish_abandoned(client, name)
    if finished is not None and finished.requested is None and to in (None, finished.index):
        return finished
    plan = plan_rollback(client, name, to)
    clear_abandoned(client, name)
    if plan.kind == "load":
        transform = state.ScriptTransform("", {}, lambda _: [], "", "")
    if transform is None:
        raise ValueError("what was made of another version is rolled back with a transform")
    run = state.Transfer(client, name, plan.live, plan.uuid, plan.version, transform, "rollback", watch, patience)
    run.checkpoint, run.notes_replaced = plan.checkpoint, to is not None
    if plan.kind == "load":
        done = _move(run)
    else:
        _open(run, run.first_note())
        done = _carry_over(run, plan.kind)
    return replace(done, seconds=time.monotonic() - started)


def _move(run: state.Transfer) -> state.TransferResult:
    """Let the alias stand for a version with documents of its own."""
    run.report("swapping")
    # Of a version that does not answer, nobody is to find out by searching.
    documents = run.retry(reindex_tasks.count, run.client, run.target)
    if run.notes_replaced:
        # A retune may have left it behind a block.
        run.retry(run.client.indices.put_settings, index=run.target, body=cutover.UNBLOCKED)
        run.retry(metadata.note_replaced, run.client, run.target, run.source)
    run.retry(cutover.swap, run)
    run.report("done", documents, documents)
    return state.TransferResult(run.name, run.target, run.source, None, kind="load", documents=documents)


class RollbackPlan(NamedTuple):
    """What a rollback does.

    Attributes:
        live: the live version.
        uuid: its id.
        version: the one that takes its place.
        kind: ``load`` where the alias just moves; ``reencode`` or ``retune`` where what was written to the live one is
            carried over, which a reencode's way back may have to encode.
        checkpoint: of each shard of the live one, the last operation that the other has.
    """

    live: str
    uuid: str
    version: str
    kind: metadata.Kind
    checkpoint: tuple[int, ...]


def plan_rollback(client: OpenSearch, name: str, to: str | None = None) -> RollbackPlan:
    """What a rollback does.

    Args:
        client: the cluster.
        name: the alias.
        to: the version that is to be live; None for the one before the live one.

    Raises:
        ClusterError: there is none.
    """
    there = versions.read_live(client, name)
    if there is None:
        raise ClusterError(f"There is no index {name}: nothing can be rolled back.")
    live, origin = there.name, metadata.origin_from_metadata(there.name, there.meta)
    version = to or _previous(client, name, live, origin)
    kind = _copied_by(client, name, live, version)
    # What a retune has left behind its block has not been written to since.
    untouched = metadata.is_write_blocked(metadata.read_settings(client, version))
    if untouched and to is None and origin is not None and origin.kind in metadata.COPIES and origin.replaced is None:
        return RollbackPlan(live, there.uuid, version, kind, origin.checkpoint)
    # Nobody knows what the other has of this one: all of it is looked at.
    nothing = (-1,) * int(there.settings["number_of_shards"])
    return RollbackPlan(live, there.uuid, version, kind, nothing)


def _previous(client: OpenSearch, name: str, live: str, origin: metadata.Origin | None) -> str:
    remedy = f"use `langshift retune {name} --alpha A` to create one with the alpha that you want"
    if origin is None or origin.previous is None:
        raise ClusterError(f"There is no version of {name} before {live}: {remedy}.")
    version, uuid = origin.previous
    if metadata.uuid_of(client, version) != uuid:
        raise ClusterError(f"The version before {live}, {version}, was dropped: {remedy}.")
    return version


def _copied_by(client: OpenSearch, name: str, live: str, version: str) -> metadata.Kind:
    """What has made one of two versions of the other, however many steps it took; ``load`` where they are others."""
    all_ = versions.listed(client, name, f"*.mappings._meta.{metadata.ORIGIN}")
    uuids = {index: one["settings"]["index"]["uuid"] for index, one in all_.items()}
    steps: dict[str, dict[str, metadata.Kind]] = {index: {} for index in all_}
    for index, one in all_.items():
        origin = metadata.origin_from_metadata(index, one.get("mappings", {}).get("_meta", {}))
        if origin is not None and origin.kind in metadata.COPIES and uuids.get(origin.version or "") == origin.uuid:
            steps[index][str(origin.version)] = steps[str(origin.version)][index] = origin.kind
    reached: dict[str, metadata.Kind] = {live: "retune"}
    for index in (todo := [live]):
        for other, kind in steps[index].items():
            if other not in reached:
                reached[other] = "reencode" if "reencode" in (kind, reached[index]) else "retune"
                todo.append(other)
    return reached.get(version, "load")


def _open(run: state.Transfer, note: Mapping[str, Any]) -> None:
    """Let a version that is there take what is copied to it, under this run's note."""
    run.retry(run.mark.take_over, note)
    run.retry(version_writer.apply_load_settings, run.client, run.target, fast=False, more=APART)
    # One that was live is behind a block; so is one that a run was killed with right before the swap.
    run.retry(run.client.indices.put_settings, index=run.target, body=cutover.UNBLOCKED)
