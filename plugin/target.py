"""The version that one load writes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError

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
    """

    name: str
    index: str
    uuid: str
    created: bool
    live: str | None
    if_exists: IfExists

    @property
    def bulk_parameters(self) -> dict[str, Any]:
        """Where a bulk request goes.

        An index that somebody deletes meanwhile would be made anew by the next write, without its mapping:
        the alias, which goes with the index, is demanded where there is one; ``publish`` checks the others.
        """
        return {"index": self.index} if self.created else {"index": self.name, "params": {"require_alias": "true"}}


def require_there(client: OpenSearch, target: Target) -> None:
    """Refuse a version that is gone, also where a write has made an index of its name since.

    Raises:
        ClusterError: it was deleted.
    """
    if uuid_of(client, target.index) != target.uuid:
        raise ClusterError(f"Index {target.index} was deleted by somebody while it was being written: run again.")


def uuid_of(client: OpenSearch, index: str) -> str:
    """The server's own id of an index; empty where there is no such index."""
    try:
        found: str = client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
    except NotFoundError:
        return ""
    return found
