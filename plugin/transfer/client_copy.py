"""Copying documents through this process, page by page, where the cluster alone cannot make those of the target."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import Any, Literal, NamedTuple

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.files import batched, batched_by_size
from langshift.plugin.raw_documents import RawPage, StoredDocument, decode_hit, hit_bytes, open_raw
from langshift.plugin.stored_vector import WHOLE
from langshift.plugin.transfer import reindex_tasks
from langshift.plugin.transfer.reindex_tasks import CopyCounts, TaskInterrupted, added
from langshift.plugin.transfer.state import ClientTransform, Transfer, TransferAborted
from langshift.retry import RetryBudget, prefetch, retry_until_available
from langshift.server_errors import INDEX_NOT_FOUND, Unreadable, passes

# Documents of a page and of its parts: one is converted while the one before is written, so that a run which is killed
# loses the work of a page at most.
_PAGE, _PART = 512, 256
# Of the first page, until it is known how large documents are; and bytes of a page, and of a request.
_FIRST, _PAGE_BYTES, _REQUEST_BYTES = 64, 16 << 20, 8 << 20
# A page may take long to convert.
_KEPT = "1h"


def copy_here(
    run: Transfer,
    transform: ClientTransform,
    source: Mapping[str, Any],
    version_type: Literal["external", "external_gte"],
    on_progress: Callable[[CopyCounts], None],
) -> CopyCounts:
    """Copy the documents that a query finds.

    What is read next, what is converted and what is written overlap.

    Args:
        run: the run.
        transform: how a document becomes one of the target.
        source: query and slice; empty for all documents.
        version_type: ``external`` leaves alone what the target has in the same version or a later one, which is not
            converted either; ``external_gte`` writes the same version again, as it may be another document's: one that
            was deleted and made anew.
        on_progress: is told how far this is, again and again.

    Returns:
        How many documents were written, and how many were left as they are.

    Raises:
        TaskInterrupted: a node that held a part of the live version is gone; what was copied by then is there.
        TransferAborted: the target can never take one of the documents.
        TransferSuperseded: by another run.
        Unreadable, OpenSearchException: the cluster did not do its part for as long as patience lasts.
    """
    copied = CopyCounts(0, 0)
    stopping = threading.Event()
    with ExitStack() as stack:
        writer = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="copy"))
        # Whoever is interrupted does not wait for a cluster that takes nothing.
        stack.callback(stopping.set)
        reading = stack.enter_context(open_raw(run.client))
        pages = prefetch(_pages(run, reading, source, whole=version_type == "external"))
        stack.callback(pages.close)
        pending: Future[CopyCounts] | None = None

        def settle() -> None:
            nonlocal copied
            if pending is not None:
                copied = added([copied, pending.result()])
                on_progress(copied)

        for page in pages:
            copied = added([copied, CopyCounts(0, page.present)])
            on_progress(copied)
            for part in batched(zip(page.documents, page.counterparts, strict=True), _PART):
                documents, counterparts = zip(*part, strict=True)
                sources = transform.convert(documents, counterparts)
                settle()
                lines = map(partial(_lines, version_type), documents, sources)
                written = list(zip((one.id for one in documents), lines, strict=True))
                pending = writer.submit(copy_context().run, _write, run, written, stopping)
        settle()
    return copied


class _Page(NamedTuple):
    """Documents to convert.

    Attributes:
        documents: as the live version has them.
        counterparts: ``_source`` of each as the target has it; None where it lacks it.
        present: how many more the target has already.
    """

    documents: Sequence[StoredDocument]
    counterparts: Sequence[Mapping[str, Any] | None]
    present: int = 0


def _pages(run: Transfer, reading: OpenSearch, source: Mapping[str, Any], *, whole: bool) -> Iterator[_Page]:
    with ExitStack() as stack:
        pit = run.retry(lambda: stack.enter_context(reindex_tasks.point_in_time(run.client, run.source, _KEPT)))
        most = min(_PAGE, run.retry(reindex_tasks.page_size, run.client, run.source))
        size = min(_FIRST, most)
        request = {**source, **pit, **WHOLE, "version": True}
        while True:
            hits = run.retry(_search, run.source, reading, {**request, "size": size})
            if hits:
                documents = list(map(decode_hit, hits))
                compare = _without_present if whole else _with_counterparts
                yield run.retry(compare, run, documents)
            if len(hits) < size:
                return
            request["search_after"] = documents[-1].sort
            size = max(1, min(most, _PAGE_BYTES * len(hits) // sum(map(len, hits))))


def _search(index: str, reading: OpenSearch, request: dict[str, Any]) -> list[bytes]:
    try:
        page: RawPage = reading.search(body=request, params={"allow_partial_search_results": "false"})
    except NotFoundError as error:
        raise TaskInterrupted(f"a node that held a shard of {index} has left the cluster") from error
    return list(map(hit_bytes, page.hits.hits))


def _without_present(run: Transfer, documents: Sequence[StoredDocument]) -> _Page:
    """Those that the target lacks, or has in an earlier version."""
    found = _get(run, documents, _source="false")
    lacking = [
        document
        for document, there in zip(documents, found, strict=True)
        if not there["found"] or there["_version"] < document.version
    ]
    return _Page(lacking, [None] * len(lacking), len(documents) - len(lacking))


def _with_counterparts(run: Transfer, documents: Sequence[StoredDocument]) -> _Page:
    return _Page(documents, [there["_source"] if there["found"] else None for there in _get(run, documents)])


def _get(run: Transfer, documents: Sequence[StoredDocument], **params: str) -> list[dict[str, Any]]:
    keys = [{"_id": one.id, **({} if one.routing is None else {"routing": one.routing})} for one in documents]
    return in_target(run, keys, **params)


def in_target(run: Transfer, keys: Sequence[Mapping[str, Any]], **params: str) -> list[dict[str, Any]]:
    """What the target has of documents, in the order of their keys.

    Raises:
        Unreadable: the shard of one does not answer.
    """
    found: list[dict[str, Any]] = run.client.mget(index=run.target, body={"docs": keys}, params=params)["docs"]
    for one in found:
        if "error" in one:
            raise Unreadable(f"Index {run.target} cannot return document {one['_id']}.")
    return found


def _lines(version_type: str, document: StoredDocument, source: bytes) -> bytes:
    """A document's lines of a bulk request."""
    action: dict[str, Any] = {"_id": document.id, "version": document.version, "version_type": version_type}
    if document.routing is not None:
        action["routing"] = document.routing
    return orjson.dumps({"index": action}) + b"\n" + source + b"\n"


def _write(run: Transfer, documents: Sequence[tuple[str, bytes]], stopping: threading.Event) -> CopyCounts:
    requests = batched_by_size(documents, _REQUEST_BYTES, lambda one: len(one[1]))
    return added([_send(run, request, stopping) for request in requests])


def _send(run: Transfer, documents: list[tuple[str, bytes]], stopping: threading.Event) -> CopyCounts:
    """Write documents, by id and lines; those again that the target does not take at this moment."""
    left, written, conflicts = documents, 0, 0
    budget = RetryBudget(run.seconds)

    def send() -> None:
        nonlocal left, written, conflicts
        # Another run may have removed the target, of which a write would make an index of its name.
        run.mark.read()
        body = b"".join(one for _, one in left)
        # Pipelines have seen these documents already.
        answer = run.client.bulk(index=run.target, body=body, params={"pipeline": "_none"})
        again, why = [], ""
        for (id_, one), item in zip(left, answer["items"], strict=True):
            result = item["index"]
            error = result.get("error")
            if error is None:
                written += 1
            elif result["status"] == _CONFLICT:
                conflicts += 1
            elif passes(result["status"], error) or error.get("type") == INDEX_NOT_FOUND:
                again.append((id_, one))
                why = reindex_tasks.reason(error)
            else:
                raise TransferAborted(f"Document {id_} cannot be copied: {reindex_tasks.reason(error)}.")
        if len(again) < len(left):
            budget.taken()
        left = again
        if left:
            raise Unreadable(
                f"The cluster accepts no documents into {run.target} ({why}): run the command again to resume."
            )

    retry_until_available(send, budget, stopping)
    return CopyCounts(written, conflicts)


_CONFLICT = 409
