"""Taking documents out of the target that the live version has no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from langshift.plugin.transfer import reading
from langshift.plugin.transfer.run import Run
from langshift.trouble import Unreadable

Identity = tuple[str, str | None]


def delete_gone(run: Run) -> int:
    """Delete in the target what was deleted in the live version; returns how many documents.

    Called after ``catch_up``, when the target has every document of the live version that it had when that began:
    where it has no more than that, nothing was deleted.

    Raises:
        TakenOver: by another run.
    """
    for index in (run.source, run.target):
        run.ask(lambda index=index: reading.refresh(run.client, index))  # type: ignore[misc]
    here, there = (
        run.ask(lambda index=index: reading.count(run.client, index))  # type: ignore[misc]
        for index in (run.target, run.source)
    )
    if here <= there:
        return 0
    run.tell("deleting", 0, here)
    # A node that dies takes the search along: what was deleted by then is found no more.
    deleted = run.ask(lambda: _scan(run, here))
    run.deleted += deleted
    return deleted


def remove(run: Run, documents: Sequence[Identity]) -> None:
    """Delete documents in the target.

    Raises:
        TakenOver: by another run.
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


def _scan(run: Run, total: int) -> int:
    deleted = seen = 0
    for hits in reading.pages(run.client, run.target, {"_source": False}):
        ours = [(hit["_id"], hit.get("_routing")) for hit in hits]
        live = _live(run, ours)
        gone = [identity for identity in ours if identity not in live]
        remove(run, gone)
        deleted, seen = deleted + len(gone), seen + len(hits)
        run.tell("deleting", seen, total)
    return deleted


def _live(run: Run, documents: Sequence[Identity]) -> set[Identity]:
    """Those of some documents that the live version has."""
    ids = list(dict.fromkeys(id_ for id_, _ in documents))
    body: dict[str, Any] = {"query": {"ids": {"values": ids}}, "_source": False, "size": 2 * len(documents)}
    answer = reading.search(run.client, body, index=run.source)
    return {(hit["_id"], hit.get("_routing")) for hit in answer["hits"]["hits"]}
