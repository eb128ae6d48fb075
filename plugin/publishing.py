"""Versions that loads have written: published behind their alias, or discarded."""

from __future__ import annotations

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError
from langshift.plugin import load_settings, meta, origin, pipeline
from langshift.plugin.carried import is_carried_over
from langshift.plugin.meta import uuid_of
from langshift.plugin.target import Target, remove_impostor, require_there
from langshift.plugin.versions import unfinished, version_behind


def publish(client: OpenSearch, target: Target) -> str:
    """Make everything written searchable, and let the alias stand for a version made by this load.

    May be called again where it was cut off: what is done already is passed over.

    Returns:
        The version that the alias stands for: the load's, or one that a retune or rollback has carried its documents
        over to meanwhile.

    Raises:
        ClusterError: the version was deleted meanwhile, or the alias does not stand any more for what it stood for.
    """
    require_there(client, target)
    now = version_behind(client, target.name)
    if now is not None and is_carried_over(client, target, now):
        return now
    if now != target.index:
        _require_unchanged(target, now)
        load_settings.restore(client, target.index)
    client.indices.refresh(index=target.index)
    if now != target.index:
        _swap(client, target)
    _finish(client, target.index)
    return target.index


def discard_planned(client: OpenSearch, name: str, token: str) -> None:
    """Remove the version that a load has made and was killed before it could write that down."""
    for index in unfinished(client, name):
        if (meta.unfinished(client, index) or {}).get("token") == token:
            client.indices.delete(index=index, ignore_unavailable=True)


def discard(client: OpenSearch, target: Target) -> None:
    """Remove a version that this load made and that nobody has seen.

    What a write has made of its name after somebody deleted it goes too; another load's version stays.
    """
    if not target.created or _is_published(client, target):
        return
    if uuid_of(client, target.index) == target.uuid:
        client.indices.delete(index=target.index, ignore_unavailable=True)
    remove_impostor(client, target.index, target.uuid)


def _is_published(client: OpenSearch, target: Target) -> bool:
    try:
        # Not `exists_alias`: its answer does not say whether it is the alias or the index that a node does not know.
        client.indices.get_alias(index=target.index, name=target.name)
    except NotFoundError:
        return False
    return True


def _require_unchanged(target: Target, now: str | None) -> None:
    name, index = target.name, target.index
    told = f"stands for {now}" if now else "is gone"
    if not target.created:
        raise ClusterError(f"{name} {told} by now, while this load has added its documents to {index}: run it again.")
    if target.live is None and now is not None:
        raise ClusterError(
            f"Another load has made {name} ({now}) meanwhile, so this one's documents were not added: "
            "run again to add them."
        )
    if target.live != now:
        raise ClusterError(
            f"{name} stood for {target.live} when this load began and {told} by now, so {index} was not put in its "
            "place: run it again."
        )


def _swap(client: OpenSearch, target: Target) -> None:
    drop = {"remove": {"index": target.live, "alias": target.name, "must_exist": True}}
    add = {"add": {"index": target.index, "alias": target.name}}
    try:
        # One request: no search may find both versions, or none.
        client.indices.update_aliases(body={"actions": [add] if target.live is None else [drop, add]})
    except NotFoundError:
        require_there(client, target)
        _require_unchanged(target, version_behind(client, target.name))
        raise


def _finish(client: OpenSearch, index: str) -> None:
    """Do what is left to do for a version that is live; the mark goes last, so that a killed run is made up for."""
    noted = meta.unfinished(client, index)
    if noted is None:
        return
    before, kept = noted.get("live"), meta.read(client, index).get(meta.ORIGIN)
    if noted.get("if_exists") == "replace" and before is not None:
        client.indices.delete(index=before, ignore_unavailable=True)
        pipeline.forget_where_allowed(client, before)
    kept = kept or origin.made(client, "load", before).to_dict()
    meta.change(client, index, {meta.UNFINISHED: None, meta.ORIGIN: kept})
