"""A real cluster of three nodes, whose processes can be killed and brought back."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
from opensearchpy import OpenSearch

from langshift import embedded
from langshift.embedded import NodeStatus, Server

NAMES = ("langshift", "langshift-2", "langshift-3")
#: For tests that start servers of their own, each of which takes ten seconds of processor time whenever it starts.
long_form = pytest.mark.skipif("LANGSHIFT_KILLS" not in os.environ, reason="starts its own servers: make soak runs it")


class ThreeNodes:
    """The cluster of one home.

    Attributes:
        home: langshift's folder.
    """

    def __init__(self, home: Path, quick_java: Callable[[], AbstractContextManager[None]]) -> None:
        self.home, self._quick_java = home, quick_java

    def up(self) -> Server:
        """Form the cluster, or start those of its nodes that do not run."""
        with self._quick_java():
            return embedded.up(self.home, 3)

    def nodes(self) -> dict[str, NodeStatus]:
        """All nodes by name; at least one has to run."""
        server = embedded.status(self.home)
        assert server is not None
        return {node.name: node for node in server.nodes}

    def url(self, name: str) -> str:
        """The address of a node that runs."""
        url = self.nodes()[name].url
        assert url is not None
        return url

    def kill(self, *names: str) -> None:
        """Kill nodes with SIGKILL; they are dead when this returns."""
        nodes = self.nodes()
        processes = [psutil.Process(nodes[name].pid) for name in names]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes)

    def data(self, name: str) -> Path:
        """The folder of a node's data."""
        return Path(str(embedded.places(self.home)["home"])) / name.replace("langshift", "node") / "data"

    def holder(self, client: OpenSearch, index: str) -> str:
        """The node that holds the primary of an index with one shard."""
        shards = client.cat.shards(index=index, params={"format": "json", "h": "prirep,node"})
        return str(next(shard["node"] for shard in shards if shard["prirep"] == "p"))
