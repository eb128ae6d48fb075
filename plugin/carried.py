"""A version that a load adds to while a retune or a rollback lets the alias stand for another."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import index_settings, origin
from langshift.plugin.meta import uuid_of
from langshift.plugin.target import Target
from langshift.plugin.versions import version_behind


def is_carried_over(client: OpenSearch, target: Target, now: str) -> bool:
    """Whether everything that was ever written to a load's version is in the one that is live now, too.

    Args:
        client: the cluster.
        target: the version that the load adds to.
        now: what the alias stands for.
    """
    if target.created or now == target.index:
        return False
    # Both leave the former version behind a write block, set before the last of it was carried over.
    if not index_settings.is_write_blocked(index_settings.read(client, target.index)):
        return False
    made, left = origin.read(client, now), origin.read(client, target.index)
    retuned = made is not None and made.kind == "retune" and made.uuid == target.uuid
    return retuned or (left is not None and left.kind == "retune" and left.uuid == uuid_of(client, now))


def require_not_replaced(client: OpenSearch, target: Target) -> None:
    """Refuse to wait for a version that takes no writes because another has taken its place.

    Raises:
        ClusterError: saying what is in which.
    """
    if target.created:
        return
    name, index, now = target.name, target.index, version_behind(client, target.name)
    if now is None or now == index:
        return
    if is_carried_over(client, target, now):
        raise ClusterError(
            f"{name} stands for {now} by now, by which a retune or a rollback has replaced {index} while this load was "
            f"adding to that: what it had written is in {now} too, and the rest is in neither. Run it again with "
            f"the language vectors and scales of {now}."
        )
    raise ClusterError(f"{name} stands for {now} by now, and {index} takes no writes: run it again.")
