"""A real OpenSearch that is put together of compiled parts: k-NN with Faiss, and the newest that the plugin is for."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes.util import find_library
from pathlib import Path

import psutil
import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.embedded import artifacts
from langshift.embedded.cluster import launch, log_end, prepared, terminate
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import COMMON, Node, ServerHome
from langshift.embedded.state import is_alive

ROOT = Path(__file__).parents[2]
_SERVERS = ROOT.parent / "shared" / "servers"
#: The libraries; beside the project, as they are no part of it.
BUILT = _SERVERS / "faiss"
#: k-NN for the newest server, likewise.
NEWEST_KNN = _SERVERS / "knn-3.8.0" / "opensearch-knn"
# What they are linked with, of the system's own.
_NEEDED = ("openblas", "gomp", "gfortran")
START_SECONDS = 300


def lacking() -> str | None:
    """Why there can be no server with Faiss here; None where there can."""
    if not BUILT.is_dir():
        return f"no native libraries of k-NN in {BUILT}"
    missing = [name for name in _NEEDED if find_library(name) is None]
    return f"Faiss needs the system's lib{', lib'.join(missing)}" if missing else None


def newest_lock() -> artifacts.ArtifactLock:
    """The files of the newest server, but for k-NN."""
    return artifacts.parse_lock((Path(__file__).parent / "opensearch-server.lock.json").read_bytes())


def newest_of(place: ServerHome) -> Path:
    """The distribution of the newest server, put together in a langshift home."""
    lock = newest_lock()
    folder = place.base / f"opensearch-{lock.version}"
    if not artifacts.is_assembled(lock, folder):
        with pytest.MonkeyPatch.context() as patch:
            # Not all of it is published, and the k-NN that was compiled does without it.
            patch.delitem(artifacts.MODULES, "transport-grpc")
            artifacts.assemble(lock, artifacts.download(lock, place.home / "downloads"), folder)
        shutil.copytree(NEWEST_KNN, folder / "plugins" / NEWEST_KNN.name)
        _open(folder / "plugins")
    return folder


def _open(folder: Path) -> None:
    """Have every user read a folder."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)


class _Node(Node):
    """A node that finds the libraries, where it is to have them, in its own folder."""

    @property
    def libraries(self) -> Path:
        """Where they are, for its user to read."""
        return self.folder / "native"

    def command(self, java: Java) -> list[str]:
        program, *options = super().command(java)
        return [program, f"-Djava.library.path={self.libraries}", *options]


class BuiltServer:
    """One node.

    Attributes:
        url: its address.

    Args:
        home: a langshift home, of which it takes the distribution and the plugins, and in which its files are: also
            those of a server before it, whose data it opens then.
        quick_java: within its context servers start that live for the tests only.
        faiss: whether it has Faiss.
        newest: whether it is of the newest version, or else of the embedded one.
    """

    def __init__(
        self,
        home: Path,
        quick_java: Callable[[], AbstractContextManager[None]],
        *,
        faiss: bool = True,
        newest: bool = False,
    ) -> None:
        place = ServerHome.of(home)
        self._node = _Node(place.base)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        distribution, java = newest_of(place) if newest else prepared(place), choose_java(place.account)
        settings = {name: value for name, value in COMMON.items() if not faiss or name != "node.attr.langshift_native"}
        settings |= {"cluster.name": "built", "node.name": "built", "discovery.type": "single-node", "http.port": port}
        # The libraries are those for any processor alone.
        settings |= {f"knn.faiss.{kind}.disabled": True for kind in ("avx2", "avx512", "avx512_spr")}
        self._node.lay_out(distribution, settings, place.account)
        if faiss:
            shutil.copytree(BUILT, self._node.libraries, dirs_exist_ok=True)
            _open(self._node.libraries)
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
