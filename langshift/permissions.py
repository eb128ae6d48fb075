"""What OpenSearch's security plugin says when a user may not do something, as a sentence for a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

# A permission may hold brackets itself, as `indices:data/write/bulk[s]` does.
_REFUSAL = re.compile(
    r"no permissions for \[(?P<permissions>[^\]\s].*?)\](?=$| and )"
    r"(?: and User \[name=(?P<user>.*?), (?:backend_)?roles=)?",
)
# Pattern of permissions -> the narrowest of the plugin's default action groups that has them; the first that fits.
# None where that would let somebody who only reads delete indices too.
_GROUPS: dict[str, str | None] = {
    "cluster:monitor/*": "cluster_monitor",
    "cluster:admin/ingest/pipeline/*": "cluster_manage_pipelines",
    # What a request over several indices needs on the cluster; its parts are named with brackets.
    "indices:data/write/bulk": "cluster_composite_ops",
    "indices:data/write/reindex": "cluster_composite_ops",
    "indices:data/read/mget": "cluster_composite_ops_ro",
    "indices:data/read/msearch": "cluster_composite_ops_ro",
    "indices:data/read/scroll": "cluster_composite_ops_ro",
    "indices:monitor/*": "indices_monitor",
    "indices:admin/create": "create_index",
    "indices:admin/mapping/put": "create_index",
    "indices:admin/aliases*": "manage_aliases",
    # Templates are the cluster's, not an index's.
    "indices:admin/template/*": "cluster_manage_index_templates",
    "indices:admin/index_template/*": "cluster_manage_index_templates",
    "indices:admin/get": None,
    "indices:admin/mappings/get": None,
    "indices:admin/*": "manage",
    "indices:data/read/search": "search",
    "indices:data/read/*": "read",
    "indices:data/write/*": "write",
}


class Lacking(NamedTuple):
    """What a user may not do.

    Attributes:
        permissions: the permissions that are missing, as the cluster names them; at least one.
        user: the user's name; None where the cluster does not say it.
    """

    permissions: tuple[str, ...]
    user: str | None

    def __str__(self) -> str:
        """The end of a sentence that begins with the cluster."""
        who = f"the user {self.user}" if self.user else "this user"
        s, them = ("s", "them") if len(self.permissions) > 1 else ("", "it")
        groups = [_group(permission) for permission in self.permissions]
        if len(set(groups)) == 1:
            named = _and(self.permissions) + (f" (the action group {groups[0]} has {them})" if groups[0] else "")
        else:
            pairs = zip(self.permissions, groups, strict=True)
            named = _and([f"{one} (the action group {group} has it)" if group else one for one, group in pairs])
        return (
            f"does not let {who} do that: it lacks the permission{s} {named}; "
            f"ask whoever administers the cluster for {them}."
        )


def lacking(words: str) -> Lacking | None:
    """What the security plugin's words say of missing permissions; None where they say nothing of them.

    Args:
        words: the reason of an error, of a whole request or of one item of it.
    """
    found = _REFUSAL.search(" ".join(words.split()).rstrip("."))
    return Lacking(tuple(found["permissions"].split(", ")), found["user"]) if found else None


def _group(permission: str) -> str | None:
    return next((group for pattern, group in _GROUPS.items() if fnmatchcase(permission, pattern)), None)


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
