"""Real servers of each kind that there can be here, for the checks of ``server_checks``; each with the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from built_server import NEWEST_KNN, BuiltServer, lacking
from native_plugin import install_plugin
from secured_cluster import BUILT, SecuredCluster, documented_roles
from server_checks import CheckedServer, names_of
from tls_proxy import client_of

from langshift import embedded

LUCENE, FAISS = ("lucene",), ("faiss", "faiss-fp16", "faiss-on-disk")
#: Server -> the engines that it has.
ENGINES = {
    "3.6": LUCENE,
    "3.6 with Faiss": FAISS,
    "3.6 with security": LUCENE,
    "3.8": LUCENE,
    "3.8 with Faiss": FAISS,
}
#: A server of the newest version, with the data of the one before it.
UPGRADED = "3.8 on data of 3.6"


class Making(NamedTuple):
    """What servers are made with.

    Attributes:
        home: a function that makes a langshift home.
        quick_java: within its context servers start that live for the tests only.
        cache: the folder where the plugin is kept once it was built.
        folder: for certificates; empty.
    """

    home: Callable[[], Path]
    quick_java: Callable[..., AbstractContextManager[None]]
    cache: Path
    folder: Path

    def home_with_plugin(self) -> Path:
        """A home whose server has our plugin."""
        home = self.home()
        install_plugin(home, self.cache)
        return home

    def java(self) -> AbstractContextManager[None]:
        """As servers start elsewhere: OpenSearch's agent looks at what a plugin does."""
        return self.quick_java(agent=True)


def skip_without_parts(*, newest: bool = False, faiss: bool = False, security: bool = False) -> None:
    """Skip a test where parts of its server are not here."""
    if faiss and (reason := lacking()):
        pytest.skip(reason)
    for part, needed in ((NEWEST_KNN, newest), (BUILT, security)):
        if needed and not part.is_dir():
            pytest.skip(f"no plugin in {part}")


@contextmanager
def running(kind: str, making: Making) -> Iterator[CheckedServer]:
    """A server of a kind; the test is skipped where a part of it is not here."""
    newest, faiss, security = kind.startswith("3.8"), kind.endswith("Faiss"), kind.endswith("security")
    skip_without_parts(newest=newest, faiss=faiss, security=security)
    home = making.home_with_plugin()
    if kind == "3.6":
        with making.java():
            url = embedded.up(home).url
        try:
            with checked(url) as server:
                yield server
        finally:
            embedded.down(home)
    elif security:
        with secured(SecuredCluster(home, making.folder, making.java)) as server:
            yield server
    else:
        with built(making, home, newest=newest, faiss=faiss) as server:
            yield server


@contextmanager
def built(making: Making, home: Path, *, newest: bool, faiss: bool = True) -> Iterator[CheckedServer]:
    """A server that is put together of compiled parts, in a home that may have the data of another."""
    node = BuiltServer(home, making.java, newest=newest, faiss=faiss)
    try:
        with checked(node.url) as server:
            yield server
    finally:
        node.stop()


@contextmanager
def checked(url: str) -> Iterator[CheckedServer]:
    """A server of which everybody may do everything."""
    with client_of(url) as client:
        yield CheckedServer({"OPENSEARCH_URL": url}, client, client)


@contextmanager
def secured(cluster: SecuredCluster) -> Iterator[CheckedServer]:
    """A server whose user has the documented roles for the indices of the checks, and no others."""
    try:
        roles = [documented_roles(name) for name in names_of("lucene")]
        role = {
            "cluster_permissions": roles[0]["everything"]["cluster_permissions"],
            "index_permissions": [
                one
                for documented in roles
                for kind in ("everything", "listing")
                for one in documented[kind]["index_permissions"]
            ],
        }
        user = cluster.user_of(role)
        with ExitStack() as clients:
            mine, maker = (clients.enter_context(cluster.client(name)) for name in (user, "administrator"))
            yield CheckedServer(cluster.environment(user), mine, maker)
    finally:
        cluster.stop()
