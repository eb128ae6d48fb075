"""Where a version came from: what it was made of or has replaced, so that the alias can go back there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from opensearchpy import OpenSearch

from langshift.plugin import meta
from langshift.plugin.meta import uuid_of

Kind = Literal["load", "retune", "adopt"]


@dataclass(frozen=True)
class Origin:
    """Kept in a version's mapping under ``_meta.langshift_origin``.

    Attributes:
        kind: what made the version.
        version: the version or index that it was made of or has replaced; None where there was none, or where that
            was not kept.
        uuid: the server's own id of that one.
        checkpoint: of a retune, the last operation of each shard of the new version, by the shard's number, when it
            became live: whatever is later was written by others.
        at: when, ISO 8601.
    """

    kind: Kind
    version: str | None
    uuid: str | None
    checkpoint: tuple[int, ...]
    at: str

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_origin``."""
        return {
            "kind": self.kind,
            "from": self.version,
            "uuid": self.uuid,
            "checkpoint": list(self.checkpoint),
            "at": self.at,
        }


def made(client: OpenSearch, kind: Kind, version: str | None, checkpoint: Sequence[int] = ()) -> Origin:
    """The origin of a version that is made now.

    Args:
        client: the cluster.
        kind: what makes it.
        version: what it is made of or replaces; one that is not there counts as none.
        checkpoint: see ``Origin``.
    """
    uuid = uuid_of(client, version) if version else ""
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Origin(kind, version if uuid else None, uuid or None, tuple(checkpoint), at)


def read(client: OpenSearch, index: str) -> Origin | None:
    """Where a version came from; None where it does not say.

    Raises:
        NotFoundError: there is no such index.
    """
    return of_meta(meta.read(client, index))


def of_meta(kept: Mapping[str, Any]) -> Origin | None:
    """Where a version came from, from its whole ``_meta``."""
    found = kept.get(meta.ORIGIN)
    if found is None:
        return None
    return Origin(found["kind"], found["from"], found["uuid"], tuple(found["checkpoint"]), found["at"])
