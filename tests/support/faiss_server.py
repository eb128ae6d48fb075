"""A real OpenSearch whose k-NN has Faiss, with native libraries that are compiled from their sources."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes.util import find_library
from pathlib import Path

import psutil
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.embedded.cluster import prepared
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import COMMON, Node, ServerHome
from langshift.embedded.process import launch, log_end, terminate
from langshift.embedded.state import is_alive

ROOT = Path(__file__).parents[2]
#: The libraries; beside the project, as they are no part of it.
BUILT = ROOT.parent / "shared" / "servers" / "faiss"
# What they are linked with, of the system's own.
_NEEDED = ("openblas", "gomp", "gfortran")
START_SECONDS = 300


def lacking() -> str | None:
    """Why there can be no such server here; None where there can."""
    if not BUILT.is_dir():
        return f"no native libraries of k-NN in {BUILT}"
    missing = [name for name in _NEEDED if find_library(name) is None]
    return f"Faiss needs the system's lib{', lib'.join(missing)}" if missing else None


class _Node(Node):
    """A node that finds the libraries in its own folder."""

    @property
    def libraries(self) -> Path:
        """Where they are, for its user to read."""
        return self.folder / "native"

    def command(self, java: Java) -> list[str]:
        program, *options = super().command(java)
        return [program, f"-Djava.library.path={self.libraries}", *options]


class FaissServer:
    """One node with Faiss.

    Attributes:
        url: its address.

    Args:
        home: a langshift home, of which it takes the distribution and the plugins, and in which its files are.
        quick_java: within its context servers start that live for the tests only.
    """

    def __init__(self, home: Path, quick_java: Callable[[], AbstractContextManager[None]]) -> None:
        place = ServerHome.of(home)
        self._node = _Node(place.base)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        distribution, java = prepared(place), choose_java(place.account)
        settings = {name: value for name, value in COMMON.items() if name != "node.attr.langshift_native"}
        settings |= {"cluster.name": "faiss", "node.name": "faiss", "discovery.type": "single-node", "http.port": port}
        # The libraries are those for any processor alone.
        settings |= {f"knn.faiss.{kind}.disabled": True for kind in ("avx2", "avx512", "avx512_spr")}
        self._node.lay_out(distribution, settings, place.account)
        shutil.copytree(BUILT, self._node.libraries)
        for path in (self._node.libraries, *self._node.libraries.iterdir()):
            path.chmod(0o755)
        with quick_java():
            self._process: psutil.Process = launch(self._node, java, place.account)
        self._wait()

    def stop(self) -> None:
        """Stop the node."""
        terminate(self._process)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        with OpenSearch(self.url, timeout=10) as client:
            while True:
                assert is_alive(self._process), log_end(self._node)
                assert time.monotonic() < deadline, log_end(self._node)
                try:
                    client.cluster.health()
                except OpenSearchException:
                    time.sleep(0.5)
                else:
                    return
