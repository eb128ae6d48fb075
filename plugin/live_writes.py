"""Writes to the live version while a load makes the one that is to take its place: none of them vanishes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError
from langshift.plugin import metadata, versions
from langshift.plugin.transfer.cutover import lift_block, set_block
from langshift.plugin.transfer.reindex_tasks import shards
from langshift.plugin.versions import StoredIndex, Target
from langshift.server_errors import Unreadable


def noted_at_begin(client: OpenSearch, name: str, live: StoredIndex) -> dict[str, Any]:
    """What a load notes of the version that it is to replace: its id, and how far each of its shards is.

    Raises:
        ClusterError: nobody knows, as a part of the version does not answer.
    """
    try:
        checkpoint = read_checkpoint(client, live.name, int(live.settings["number_of_shards"]))
    except Unreadable as error:
        raise ClusterError(
            f"{str(error).rstrip('.')}, or remove the index with `langshift index drop {name}`."
        ) from error
    return {"uuid": live.uuid, "checkpoint": checkpoint, "blocked": False}


def read_checkpoint(client: OpenSearch, index: str, number: int) -> list[int]:
    """How far each of so many shards of an index is, for ``writes_since``.

    Raises:
        Unreadable: one has no primary at this moment.
    """
    # What is under way at this moment may be in nobody's corpus.
    return [shard.checkpoint for shard in shards(client, index, number)]


def writes_since(client: OpenSearch, index: str, checkpoint: Sequence[int]) -> int:
    """How many writes an index has had: documents written, updated or deleted, each time they were.

    Args:
        client: the cluster.
        index: the index.
        checkpoint: how far it was; empty where that is not known, and there is nothing to count.

    Raises:
        Unreadable: a shard has no primary at this moment.
    """
    # Nothing but a write takes a number: no refused one, no update that changes nothing, no change of primaries.
    known = zip(shards(client, index, len(checkpoint)), checkpoint, strict=True) if checkpoint else ()
    return sum(max(0, shard.latest - before) for shard, before in known)


@contextmanager
def blocked(client: OpenSearch, target: Target) -> Iterator[int]:
    """From here on the version that a load is to replace takes no writes, but for one that takes none anyway.

    After an error it takes them again, else after ``release``. May be entered again where it was cut off. Where the
    process dies, ``release_abandoned`` makes up for it.

    Returns:
        How many writes it has had since the load began.

    Raises:
        ClusterError: the version was deleted, and another has its name.
        Unreadable: a part of it does not answer.
    """
    live = str(target.live)
    release_abandoned(client, target.name)
    meta, settings = metadata.read_metadata(client, target.index), metadata.read_settings(client, live)
    noted = meta.get(metadata.UNFINISHED) or {}
    if noted.get("uuid", "") not in ("", settings["uuid"]):
        raise ClusterError(
            f"{live} was deleted and created again since this load began, so {target.name} was not pointed to "
            f"{target.index}: run the load again."
        )
    checkpoint = noted.get("checkpoint") or ()
    if metadata.is_write_blocked(settings):
        yield writes_since(client, live, checkpoint)
        return
    # Noted first: what is killed between the two leaves a block that the next command knows for a load's.
    metadata.write(client, target.index, {**meta, metadata.UNFINISHED: {**noted, "blocked": True}})
    try:
        set_block(client, live)
        yield writes_since(client, live, checkpoint)
    except BaseException:
        release(client, target.index)
        raise


def require_blocked(client: OpenSearch, target: Target) -> None:
    """To be called right before the alias moves.

    Raises:
        Unreadable: another command took this load for dead, and has let the version take writes again.
    """
    if not metadata.is_write_blocked(metadata.read_settings(client, str(target.live))):
        raise Unreadable(f"Another command has let {target.live} take writes again while {target.name} was to change.")


def release(client: OpenSearch, index: str) -> dict[str, Any]:
    """Let the version that the load of another was to replace take writes again, where that load has blocked it.

    Returns:
        The ``_meta`` of the load's version, as it is then; empty where that is gone.
    """
    meta: dict[str, Any] = {}
    with suppress(NotFoundError):
        meta = metadata.read_metadata(client, index)
        if has_blocked(meta):
            noted = meta[metadata.UNFINISHED]
            lift_block(client, noted["live"], noted["uuid"])
            meta = {**metadata.read_metadata(client, index), metadata.UNFINISHED: {**noted, "blocked": False}}
            metadata.write(client, index, meta)
    return meta


def has_blocked(meta: Mapping[str, Any]) -> bool:
    """Whether the load of a version has blocked the live one, by the version's ``_meta``."""
    noted = meta.get(metadata.UNFINISHED) or {}
    return "if_exists" in noted and bool(noted.get("blocked"))


def release_abandoned(client: OpenSearch, name: str) -> bool:
    """Let the live version of a name take writes again where a load was killed that had blocked it.

    A load that is just being published, which takes less than a second, blocks it once more.

    Returns:
        Whether there was one.
    """
    left = [index for index, meta in versions.unfinished(client, name).items() if has_blocked(meta)]
    for index in left:
        release(client, index)
    return bool(left)
