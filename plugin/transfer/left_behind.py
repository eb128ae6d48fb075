"""What runs that were killed have left: finished where the alias had moved, else cleared away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

from langshift.plugin import load_settings, meta, pipeline
from langshift.plugin.meta import uuid_of
from langshift.plugin.transfer import tasks
from langshift.plugin.transfer.blocking import lift_block
from langshift.plugin.transfer.mark import Kind, Mark, new_token, noted
from langshift.plugin.transfer.plan import RolledBack, Transferred
from langshift.plugin.versions import unfinished, version_behind


def finish_left_behind(client: OpenSearch, name: str) -> Transferred | RolledBack | None:
    """Finish what was killed right after it had let the alias stand for its version; None where nothing was.

    To be called before anybody looks what is live.

    Raises:
        ClusterError: ``name`` is an index, or an alias of several.
    """
    live = version_behind(client, name)
    found = noted(client, live) if live is not None else None
    if live is None or found is None:
        return None
    kind, note = found
    meta.note_unfinished(client, live, None)
    if kind == "rollback":
        return RolledBack(name, live, note["from"], "retune")
    return Transferred(name, live, note["from"], asked=note["asked"])


def release_left_behind(client: OpenSearch, name: str) -> None:
    """Before unfinished versions of a name are dropped: end their tasks, and let the live one take writes again.

    A run that works on one of them at this moment stops.

    Raises:
        ClusterError: ``name`` is an index, or an alias of several.
    """
    for index, kind, note in left_behind(client, name):
        _release(client, index, kind, note)


def clear_left_behind(client: OpenSearch, name: str) -> None:
    """Clear away what transfers have left unfinished, and let the live version take writes again.

    Raises:
        ClusterError: ``name`` is an index, or an alias of several.
    """
    for index, kind, note in left_behind(client, name):
        give_up(client, index, kind, note)


def left_behind(client: OpenSearch, name: str) -> list[tuple[str, Kind, dict[str, Any]]]:
    """Versions that transfers have left unfinished, oldest first, with what they have noted.

    Versions that loads are making are none of these.
    """
    found = [(index, noted(client, index)) for index in unfinished(client, name)]
    return [(index, *one) for index, one in found if one is not None]


def give_up(client: OpenSearch, index: str, kind: Kind, note: Mapping[str, Any]) -> None:
    """Clear away what a transfer has made of a version, whoever works on it.

    A version that a retune was making is removed, with its pipeline. One that was to be rolled back to is as it was
    before, behind its write block; what was carried over to it by then does no harm, and is carried over again.
    """
    _release(client, index, kind, note)
    if kind == "retune":
        client.indices.delete(index=index, ignore_unavailable=True)
        pipeline.forget_where_allowed(client, index)
        return
    client.indices.put_settings(index=index, body={"index": {"blocks.write": True}})
    load_settings.restore(client, index)
    meta.note_unfinished(client, index, None)


def _release(client: OpenSearch, index: str, kind: Kind, note: Mapping[str, Any]) -> None:
    uuid = uuid_of(client, index)
    if not uuid:
        return
    # From here on a run that still works on it stops before its next step.
    token = new_token()
    meta.note_unfinished(client, index, {**(meta.unfinished(client, index) or {}), kind: {**note, "token": token}})
    tasks.cancel(client, index)
    if note.get("blocked"):
        lift_block(client, note["from"], note["uuid"])
        Mark(client, index, kind, token).note(blocked=False)
