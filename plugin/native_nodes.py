"""On which nodes of a cluster the OpenSearch plugin langshift is."""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException

from langshift.settings import VERSION
from langshift.wording import join_words

NAME: Final = "langshift"
#: What it is called where it is the query alone, without the ingest processor.
SEARCH: Final = "langshift-search"
#: The lowest OpenSearch that the plugin is compiled against and runs on, and the newest, with all of its patches.
LOWEST: Final = "3.3.2"
NEWEST: Final = "3.8"
_MISSING: Final = "missing"


class PluginNodes(NamedTuple):
    """On which nodes the plugin is.

    Attributes:
        versions: node -> the plugin's version there; None where it is not.
        processing: the nodes where it has the ingest processor.
    """

    versions: Mapping[str, str | None]
    processing: Collection[str]

    @property
    def everywhere(self) -> bool:
        """Whether every node has the plugin of this langshift, be it without the processor."""
        return set(self.versions.values()) == {VERSION}

    def in_words(self) -> str:
        """What is where: ``0.1.0 with the ingest processor on every node``."""
        kinds = self._kinds()
        if list(kinds) == [_MISSING]:
            return "not installed"
        return "; ".join(
            f"{kind} on {'every node' if len(kinds) == 1 else join_words(nodes)}" for kind, nodes in kinds.items()
        )

    def sentence(self) -> str:
        """The same as a sentence, of the cluster."""
        return f"The cluster's plugin langshift: {self.in_words()}."

    def problem(self) -> str | None:
        """What is wrong with that, as a sentence; None where all nodes have the same, or none has the plugin."""
        if len(self._kinds()) > 1:
            what = f"is not the same on every node ({self.in_words()})"
        elif not self.everywhere and set(self.versions.values()) != {None}:
            what = f"is not of this version of langshift, {VERSION} ({self.in_words()})"
        else:
            return None
        return f"The plugin langshift {what}: install it on every node, as `langshift plugin install` says."

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"nodes": dict(self.versions), "processing": sorted(self.processing), "in_words": self.in_words()}

    def _kinds(self) -> dict[str, list[str]]:
        """What a node has -> the nodes that have it, those that have nothing last."""
        kinds: dict[str, list[str]] = {}
        for node, version in sorted(self.versions.items(), key=lambda one: (one[1] is None, one[0])):
            has = "with" if node in self.processing else "without"
            kind = _MISSING if version is None else f"{version} {has} the ingest processor"
            kinds.setdefault(kind, []).append(node)
        return kinds


def plugin_nodes(client: OpenSearch) -> PluginNodes | None:
    """On which nodes the plugin is; None where the user may not list plugins."""
    try:
        rows = client.cat.plugins(format="json", h="name,component,version")
    except AuthorizationException:
        return None
    own = {row["name"]: row for row in rows if row["component"] in {NAME, SEARCH}}
    # Every node has the k-NN plugin, so every node is in a row.
    versions = {row["name"]: own.get(row["name"], {}).get("version") for row in rows}
    return PluginNodes(versions, {name for name, row in own.items() if row["component"] == NAME})
