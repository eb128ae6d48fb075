"""The cluster that the tests use: OPENSEARCH_URL, else a container where Docker answers, else the embedded one."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opensearchpy import OpenSearch
from three_nodes import ThreeNodes

from langshift import embedded
from langshift.cluster import make_client
from langshift.errors import LangshiftError
from langshift.settings import Settings

IMAGE = "opensearchproject/opensearch:3"
# Downloads are shared with the user; journals, dead letters and logs of the tests' loads are not.
REAL_HOME = Settings.from_env().home


@pytest.fixture(scope="session", autouse=True)
def _home_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A langshift home of the tests' own, also for the commands that they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGSHIFT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def cluster_url(new_home: Callable[..., Path]) -> Iterator[str]:
    """Address of a real OpenSearch; one of ours is stopped and removed at the end."""
    if url := Settings.from_env().url:
        yield url
    elif _docker_answers():
        with _container() as url:
            yield url
    else:
        yield embedded.up(new_home()).url


@pytest.fixture(scope="session")
def client(cluster_url: str) -> Iterator[OpenSearch]:
    """A client of the cluster, made as langshift makes its own."""
    with make_client(Settings.from_env(), cluster_url) as opened:
        yield opened


@pytest.fixture
def cluster_env(cluster_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address, also as OPENSEARCH_URL, for a test that calls the command line."""
    if not Settings.from_env().url:
        monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    return cluster_url


@pytest.fixture
def index_name(client: OpenSearch) -> Iterator[str]:
    """A name that no other test uses; every index whose name begins with it is removed afterwards."""
    name = f"langshift-test-{uuid.uuid4().hex[:8]}"
    yield name
    for index in client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}):
        client.indices.delete(index=index)


@pytest.fixture(scope="session")
def new_home() -> Iterator[Callable[..., Path]]:
    """A function that makes a langshift home which shares the user's downloads and distribution.

    A first run downloads them there. The home's path has a space and an umlaut; it is where any user
    can reach it, or in the folder that is given. At the end its server is stopped and all is removed.
    """
    homes: list[Path] = []

    def make(parent: Path | None = None) -> Path:
        distribution = _distribution(REAL_HOME)
        home = Path(tempfile.mkdtemp(prefix="langshift tést ", dir=parent))
        homes.append(home)
        if parent is None:
            home.chmod(0o755)
        (home / "downloads").symlink_to((REAL_HOME / "downloads").resolve())
        (home / distribution.name).symlink_to(distribution)
        return home

    yield make
    for made in homes:
        home, base = made.resolve(), Path(str(embedded.places(made)["home"]))
        embedded.down(home)
        for folder in {folder for folder in (home, base) if folder.is_dir()}:
            shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _three_nodes(new_home: Callable[..., Path]) -> ThreeNodes:
    return ThreeNodes(new_home())


@pytest.fixture
def three_nodes(_three_nodes: ThreeNodes) -> ThreeNodes:
    """A cluster of three nodes, all of them up; one cluster serves every test, as forming it takes a minute."""
    _three_nodes.up()
    return _three_nodes


def _distribution(home: Path) -> Path:
    """The assembled OpenSearch; where it cannot be had, say without a network, skip, but fail in CI."""
    try:
        return embedded.prepare(home)
    except LangshiftError as error:
        reason = f"no OpenSearch to test against: {error}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _docker_answers() -> bool:
    try:
        import docker
    except ImportError:
        return False
    with warnings.catch_warnings():
        # A failed try leaves a socket to the garbage collector, who would report it.
        warnings.simplefilter("ignore")
        try:
            engine = docker.from_env(timeout=3)
        except docker.errors.DockerException:
            return False
        finally:
            gc.collect()
        try:
            return bool(engine.ping())
        except docker.errors.APIError:
            return False
        finally:
            engine.close()


@contextmanager
def _container() -> Iterator[str]:
    try:
        from testcontainers.community.opensearch import OpenSearchContainer
    except ImportError:  # before testcontainers 4.15
        from testcontainers.opensearch import OpenSearchContainer
    container = OpenSearchContainer(IMAGE, security_enabled=False)
    # The image would otherwise prepare demo certificates, and refuse the container's default password.
    container.with_env("DISABLE_INSTALL_DEMO_CONFIG", "true")
    with container:
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(9200)}"
