"""The version that one load writes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import meta
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.meta import uuid_of

IfExists = Literal["fail", "append", "replace", "new-version"]


@dataclass(frozen=True)
class Target:
    """The version that a load writes to.

    Attributes:
        name: the alias.
        index: the versioned index.
        uuid: the server's own id of it; an index of the same name that is made later has another.
        created: whether this load made it and nobody sees it before ``publish``.
        live: the version behind the alias when the load began; None where there was none.
        if_exists: what was asked for where there is a version already.
        fields: its names of fields.
    """

    name: str
    index: str
    uuid: str
    created: bool
    live: str | None
    if_exists: IfExists
    fields: Fields = USUAL

    @property
    def bulk_parameters(self) -> dict[str, Any]:
        """Where a bulk request goes.

        To the version and never through the alias, which a retune may let stand for a version with another shift
        meanwhile. The documents are shifted already, so no default pipeline of the index runs.
        """
        return {"index": self.index, "params": {"pipeline": "_none"}}


def require_there(client: OpenSearch, target: Target) -> None:
    """Refuse a version that is gone, also where a write has made an index of its name since.

    Raises:
        ClusterError: it was deleted.
    """
    if uuid_of(client, target.index) != target.uuid:
        raise ClusterError(f"Index {target.index} was deleted by somebody while it was being written: run again.")


def remove_impostor(client: OpenSearch, index: str, uuid: str) -> None:
    """Remove what a write has made of a version's name after somebody had deleted the version.

    Another version that was made of that name since stays.

    Args:
        client: the cluster.
        index: the version's name, and
        uuid: its id.
    """
    now = uuid_of(client, index)
    if now and now != uuid and meta.FINGERPRINT not in meta.read(client, index):
        client.indices.delete(index=index, ignore_unavailable=True)
