"""Tasks of ``_reindex``, begun, watched and ended; and reads that never take a part for the whole."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException

from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.transfer.state import ScriptTransform, Transfer, TransferAborted
from langshift.server_errors import INDEX_NOT_FOUND, Unreadable, causes, is_gone, passes, unblockable

# A request of so many ids of 512 bytes is one that any server takes.
_PAGE = 5000
# A copy that gets its segments from the primary may lag behind it, whatever was refreshed.
_PRIMARY = {"preference": "_primary"}


class Shard(NamedTuple):
    """How far one shard is.

    Attributes:
        checkpoint: every operation up to this one is in all its copies, so that whichever copy is refreshed and
            searched after this was read shows it.
        latest: the last operation that it was given.
    """

    checkpoint: int
    latest: int


def shards(client: OpenSearch, index: str, number: int) -> tuple[Shard, ...]:
    """How far each shard of an index is, of which there are so many.

    Raises:
        Unreadable: one has no primary at this moment.
    """
    answer = client.indices.stats(index=index, metric="docs", params={"level": "shards"})
    found: dict[int, Shard] = {}
    for shard, copies in answer.get("indices", {}).get(index, {}).get("shards", {}).items():
        for copy in copies:
            if copy["routing"]["primary"] and "seq_no" in copy:
                numbers = copy["seq_no"]
                found[int(shard)] = Shard(int(numbers["global_checkpoint"]), int(numbers["max_seq_no"]))
    if len(found) < number:
        raise Unreadable(f"Index {index} has a shard that no node currently serves: bring its node back.")
    return tuple(found[number] for number in sorted(found))


def refresh(client: OpenSearch, index: str) -> None:
    """Let searches find everything written so far, in each copy.

    Raises:
        Unreadable: one does not answer.
    """
    answer = client.indices.refresh(index=index)["_shards"]
    if answer["failed"]:
        raise Unreadable(f"{answer['failed']} of {answer['total']} shard copies of {index} could not be refreshed.")


def count(client: OpenSearch, index: str, query: dict[str, Any] | None = None) -> int:
    """How many documents a version holds, or how many of them match."""
    body = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    return int(search(client, body, index=index)["hits"]["total"]["value"])


def count_fresh(run: Transfer, index: str, query: dict[str, Any] | None = None) -> int:
    """As ``count``, of all written so far."""
    run.retry(refresh, run.client, index)
    return run.retry(count, run.client, index, query)


def search(client: OpenSearch, body: dict[str, Any], index: str | None = None) -> dict[str, Any]:
    """A search that fails where a shard does not answer, instead of leaving its documents out."""
    # A point in time has its copies already.
    params = {"allow_partial_search_results": "false", **({} if index is None else _PRIMARY)}
    return dict(client.search(index=index, body=body, params=params))


def pages(client: OpenSearch, index: str, body: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """All hits of a search, as they were when it began, page by page.

    Raises:
        NotFoundError: there is no such index.
        Unreadable: a node that held a part of it is gone.
    """
    with point_in_time(client, index) as pit:
        size = page_size(client, index)
        request = {**body, **pit, "size": size}
        while True:
            try:
                answer = search(client, request)
            except NotFoundError as error:
                raise Unreadable(f"A node that held a shard of {index} has left the cluster.") from error
            hits = answer["hits"]["hits"]
            if hits:
                yield hits
            if len(hits) < size:
                return
            request["search_after"] = hits[-1]["sort"]


@contextmanager
def point_in_time(client: OpenSearch, index: str, keep_alive: str = "10m") -> Iterator[dict[str, Any]]:
    """The part of a search's body that reads an index as it is now, in an order that can be gone on with.

    Args:
        client: the cluster.
        index: its name.
        keep_alive: for how long it may be left unread.

    Raises:
        NotFoundError: there is no such index.
    """
    params = {"keep_alive": keep_alive, "allow_partial_pit_creation": "false", **_PRIMARY}
    pit = client.create_pit(index=index, params=params)["pit_id"]
    try:
        yield {
            "pit": {"id": pit, "keep_alive": keep_alive},
            "sort": [{"_shard_doc": "asc"}],
            "track_total_hits": False,
        }
    finally:
        with suppress(OpenSearchException):
            client.delete_pit(body={"pit_id": [pit]})


def page_size(client: OpenSearch, index: str) -> int:
    """How many ids of a version may be asked for at a time: each might be there twice, with two routings."""
    return max(1, min(_PAGE, metadata.window(metadata.read_settings(client, index)) // 2))


_COPYING = {"detailed": "true", "actions": "indices:data/write/reindex*"}
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_REQUEST = 0.05, 1.0, 60.0
# What no second try mends; an index that is missing is looked into by whoever began the task.
_FOR_GOOD = {"resource_not_found_exception", "illegal_argument_exception", "security_exception"}
_SCROLL_GONE = "scroll_id references node"
_NO_SCRIPT = "unable to find script ["


class TaskInterrupted(ClusterError):
    """A task ended before its work was done, and may be begun again.

    Attributes:
        why: why it did; a clause.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"Copying inside the cluster was interrupted ({why}): run the command again to resume it.")
        self.why = why


class MissingResource(TransferAborted):
    """A task ended because the node that was copying did not know an index, or the script.

    Attributes:
        index: the index; None where it was the script.
    """

    def __init__(self, why: str, index: str | None = None) -> None:
        super().__init__(why)
        self.index = index


class CopyCounts(NamedTuple):
    """What a task has done so far.

    Attributes:
        written: documents created or overwritten.
        conflicts: documents that were there already, in the same or a later version.
    """

    written: int
    conflicts: int


def start(run: Transfer, body: Mapping[str, Any], **params: Any) -> str:  # noqa: ANN401 - parameters of a request
    """Begin a task, after ending whatever else still writes to the target; its id."""

    def begin() -> str:
        # Also one of this run, whose answer was lost.
        cancel(run.client, run.target)
        return str(run.client.reindex(body=body, params={"wait_for_completion": "false", **params})["task"])

    run.retry(run.mark.read)
    return run.retry(begin)


def wait_for_task(run: Transfer, task: str, on_progress: Callable[[CopyCounts], None]) -> CopyCounts:
    """Wait until a task ends.

    Args:
        run: the run.
        task: its id.
        on_progress: is told how far it is, again and again.

    Raises:
        TaskInterrupted: it is gone, or has failed for something that passes.
        TransferAborted: it has failed for what a document holds, or somebody has deleted what it needs.
    """
    try:
        return _followed(run, task, on_progress)
    except MissingResource as missing:
        if run.retry(_is_gone, run, missing):
            raise
        # A cluster manager that has just started hides all indices and scripts from every node for a moment.
        raise TaskInterrupted("the cluster was starting") from missing


def _is_gone(run: Transfer, missing: MissingResource) -> bool:
    if missing.index is not None:
        return is_gone(run.client.transport.perform_request, missing.index)
    assert isinstance(run.transform, ScriptTransform)  # noqa: S101 - it has no tasks otherwise
    try:
        run.client.get_script(id=run.transform.script)
    except NotFoundError:
        return True
    return False


def _followed(run: Transfer, task: str, on_progress: Callable[[CopyCounts], None]) -> CopyCounts:
    pause = _FIRST_PAUSE
    while True:
        try:
            answer = run.retry(run.client.tasks.get, task_id=task)
        except NotFoundError as error:
            raise TaskInterrupted("the node that was copying has left the cluster") from error
        if not _writes_to(answer["task"], run.target):
            # And has given the number to another task.
            raise TaskInterrupted("the node that was copying was restarted")
        if answer.get("error"):
            raise _failed(answer["error"])
        if answer["completed"]:
            return _result(answer["response"])
        slices = answer["task"]["status"].get("slices") or []
        for one in slices:
            # The task goes on with its other slices for as long as it takes.
            if isinstance(one, Mapping) and "type" in one:
                run.retry(cancel, run.client, run.target)
                raise _failed(one)
        on_progress(_sum(answer["task"]["status"], run.retry(_children, run.client, task) if slices else {}))
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def running(client: OpenSearch, target: str) -> list[str]:
    """The tasks that copy documents into a version at this moment."""
    listed = listed_tasks(client, _COPYING)
    return [task for task, one in listed if "parent_task_id" not in one and _writes_to(one, target)]


def cancel(client: OpenSearch, target: str) -> None:
    """End all tasks that copy documents into a version; none writes there any more when this returns."""
    while tasks := running(client, target):
        for task in tasks:
            with suppress(NotFoundError):
                client.tasks.cancel(task_id=task, params={"wait_for_completion": "true"})


def wait_for_requests(run: Transfer) -> None:
    """Wait until no request writes documents to the target any more, one whose answer was lost; at most a minute."""
    params = {"actions": "indices:data/write/bulk", "detailed": "true"}
    deadline = time.monotonic() + _LONGEST_REQUEST
    while time.monotonic() < deadline:
        tasks = run.retry(lambda: list(listed_tasks(run.client, params)))
        if not any(f"indices[{run.target}]" in str(task.get("description", "")) for _, task in tasks):
            return
        time.sleep(_FIRST_PAUSE)


def _writes_to(task: Mapping[str, Any], target: str) -> bool:
    return str(task.get("description", "")).endswith(f" to [{target}]")


def _children(client: OpenSearch, task: str) -> dict[int, Mapping[str, Any]]:
    """Status of each slice of a task that is under way, by its number."""
    statuses = [one.get("status") or {} for _, one in listed_tasks(client, {**_COPYING, "parent_task_id": task})]
    return {status["slice_id"]: status for status in statuses if "slice_id" in status}


def listed_tasks(client: OpenSearch, params: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Id and details of each task that goes on in the cluster."""
    for node in client.tasks.list(params=params).get("nodes", {}).values():
        yield from node["tasks"].items()


def _sum(status: Mapping[str, Any], children: Mapping[int, Mapping[str, Any]]) -> CopyCounts:
    slices = [children.get(number, one) or {} for number, one in enumerate(status.get("slices") or [])]
    return added(map(_counted, slices or [status]))


def added(parts: Iterable[CopyCounts]) -> CopyCounts:
    """What several tasks, or parts of one, have done."""
    written, conflicts = zip(*parts, CopyCounts(0, 0), strict=True)
    return CopyCounts(sum(written), sum(conflicts))


def _counted(status: Mapping[str, Any]) -> CopyCounts:
    written = status.get("created", 0) + status.get("updated", 0) + status.get("noops", 0)
    return CopyCounts(written, status.get("version_conflicts", 0))


def _result(response: Mapping[str, Any]) -> CopyCounts:
    for one in response.get("failures") or []:
        cause = one.get("cause") or one.get("reason") or {}
        cause = cause if isinstance(cause, Mapping) else {"reason": str(cause)}
        for kind in (kind for kind in causes(cause) if kind.get("type") == INDEX_NOT_FOUND):
            index = str(kind.get("index") or one.get("index"))
            raise MissingResource(f"Index {index} was deleted during the copying: run the command again.", index)
        if "id" in one and not passes(one.get("status"), cause):
            raise TransferAborted(f"Document {one['id']} cannot be copied: {reason(cause)}.")
        raise _failed(cause)
    if response.get("canceled") or response.get("timed_out"):
        raise TaskInterrupted(f"it was cancelled ({response.get('canceled', 'timed out')})")
    return _counted(response)


def reason(error: Mapping[str, Any]) -> str:
    """The innermost reason of a server's error, on one line and without the final full stop."""
    innermost = causes(error)[-1]
    return " ".join(str(innermost.get("reason") or innermost.get("type") or "no reason given").split()).rstrip(".")


def _failed(error: Mapping[str, Any]) -> Exception:
    """What a task's error means."""
    why, kinds = reason(error), {str(cause.get("type")) for cause in causes(error)}
    # A node that dies takes the scroll along that read there, which the others call an illegal argument.
    if passes(None, error) or _SCROLL_GONE in why:
        return TaskInterrupted(unblockable(why))
    if "script_exception" in kinds:
        # The script's own sentence, which names the document.
        return TransferAborted(f"{why}.")
    message = f"The cluster cannot copy the documents: {why}."
    if _NO_SCRIPT in why:
        return MissingResource(message)
    return TransferAborted(message) if kinds & _FOR_GOOD else TaskInterrupted(why)
