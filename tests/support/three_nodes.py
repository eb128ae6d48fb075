"""A real cluster of three nodes, whose processes can be killed and brought back."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.embedded.cluster import launch, log_end, prepared, terminate
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import COMMON, Node, ServerHome
from langshift.embedded.state import is_alive
from langshift.plugin import native

NAMES = ("langshift", "langshift-2", "langshift-3")
START_SECONDS = 300
# A shard whose only copy is lost stays so: the cluster is red for good, and a test goes on with it.
RED_SECONDS = 15


@contextmanager
def running_with(
    plugin: Path, home: Path, quick_java: Callable[[], AbstractContextManager[None]], *names: str
) -> Iterator[ThreeNodes]:
    """Three nodes, of which these have a plugin, by its zip, from their first start on."""
    made = ThreeNodes(home, quick_java)
    for name in names:
        native.unpack(plugin, made.plugins(name))
    try:
        made.up()
        yield made
    finally:
        made.stop()


class _Member(Node):
    """A node that shares the machine with two others."""

    def command(self, java: Java) -> list[str]:
        return [re.sub(r"^-Xm[sx].*", lambda found: f"{found[0][:4]}512m", one) for one in super().command(java)]


class ThreeNodes:
    """A cluster of three processes on this machine.

    Args:
        home: a langshift home, of which it takes the distribution, and in which its files are.
        quick_java: within its context servers start that live for the tests only.
    """

    def __init__(self, home: Path, quick_java: Callable[[], AbstractContextManager[None]]) -> None:
        self._place, self._quick_java = ServerHome.of(home), quick_java
        self._nodes = {name: _Member(self._place.base / name) for name in NAMES}
        self._distributions: dict[str, Path] = {}
        self._processes: dict[str, psutil.Process] = {}
        with ExitStack() as held:
            sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2 * len(NAMES))]
            ports = [one.getsockname()[1] for one in sockets]
        self._http, self._transport = (dict(zip(NAMES, part, strict=True)) for part in (ports[:3], ports[3:]))

    def up(self) -> None:
        """Form the cluster, or start those of its nodes that do not run."""
        place, missing = self._place, [name for name in NAMES if not self._runs(name)]
        if not missing:
            return
        distribution, java = prepared(place), choose_java(place.account)
        with self._quick_java():
            for name in missing:
                self._nodes[name].folder.parent.mkdir(exist_ok=True)
                self._nodes[name].folder.parent.chmod(0o755)
                own = self._distributions.get(name, distribution)
                self._nodes[name].lay_out(own, self._settings(name), place.account)
                self._processes[name] = launch(self._nodes[name], java, place.account)
        deadline = time.monotonic() + START_SECONDS
        while not all(map(self._sees_all, NAMES)):
            assert time.monotonic() < deadline, [log_end(self._nodes[name]) for name in NAMES]
            time.sleep(0.5)
        with OpenSearch(self.url(NAMES[0])) as client, suppress(OpenSearchException):
            params = {"wait_for_status": "yellow", "timeout": f"{RED_SECONDS}s", "request_timeout": 2 * RED_SECONDS}
            client.cluster.health(params=params)

    def stop(self) -> None:
        """Stop all nodes."""
        for process in self._processes.values():
            terminate(process)

    def url(self, name: str) -> str:
        """The address of a node."""
        return f"http://127.0.0.1:{self._http[name]}"

    def kill(self, *names: str) -> None:
        """Kill nodes with SIGKILL; they are dead when this returns."""
        processes = [self._processes[name] for name in names]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes)

    def stop_one(self, name: str) -> None:
        """Stop a node as for an upgrade."""
        terminate(self._processes[name])

    def give(self, name: str, distribution: Path) -> None:
        """Have a node start with another distribution from now on."""
        self._distributions[name] = distribution

    def data(self, name: str) -> Path:
        """The folder of a node's data."""
        return self._nodes[name].data

    def plugins(self, name: str) -> Path:
        """The folder of the plugins that a node has beside those of the distribution."""
        return self._nodes[name].installed

    def holder(self, client: OpenSearch, index: str) -> str:
        """The node that holds the primary of an index with one shard."""
        shards = client.cat.shards(index=index, params={"format": "json", "h": "prirep,node"})
        return str(next(shard["node"] for shard in shards if shard["prirep"] == "p"))

    def _runs(self, name: str) -> bool:
        return name in self._processes and is_alive(self._processes[name])

    def _sees_all(self, name: str) -> bool:
        assert self._runs(name), log_end(self._nodes[name])
        try:
            with OpenSearch(self.url(name), timeout=10) as client:
                return bool(client.cluster.health()["number_of_nodes"] == len(NAMES))
        except OpenSearchException:
            return False

    def _settings(self, name: str) -> dict[str, Any]:
        return {
            "cluster.name": f"langshift-{self._transport[NAMES[0]]}",
            "node.name": name,
            "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in self._transport.values()],
            # Read by a node whose folder holds no cluster yet; the others join it.
            **({"cluster.initial_cluster_manager_nodes": [name]} if name == NAMES[0] else {}),
            "http.port": self._http[name],
            "transport.port": self._transport[name],
            **COMMON,
        }
