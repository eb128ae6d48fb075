"""The cluster that the tests use: OPENSEARCH_URL, else a container where Docker answers, else the embedded one.

Tests may run in several processes at once (pytest-xdist): those of a file in one, all against one cluster.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

# Of the tests' processes, each has a processor of its own; with more threads than processors, NumPy and the encoder
# get ten times slower. To be said before NumPy is loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[_name] = "1"
    # The run tells them a width, which no command of a test is to have unasked.
    os.environ.pop("COLUMNS", None)

import hypothesis
import pytest
from filelock import FileLock
from known_vectors import KnownVectors
from native_cases import NativeCases
from native_plugin import install_plugin, packed_plugin
from opensearchpy import OpenSearch
from plugin_installer import PluginInstaller
from three_nodes import ThreeNodes

from langshift import credentials, embedded, output, parameters, progress_display
from langshift.client import make_client
from langshift.debias.encoders import UseM
from langshift.embedded.java import Java
from langshift.embedded.node import Node
from langshift.errors import LangshiftError
from langshift.plugin.native import Packed
from langshift.reporting import report_to
from langshift.settings import Settings

# A busy machine takes longer over an example than one that is free.
hypothesis.settings.register_profile("langshift", deadline=None)
hypothesis.settings.load_profile("langshift")

pytest_plugins = ["cluster_fixtures"]

IMAGE = "opensearchproject/opensearch:3"
# Downloads are shared with the user; journals, dead letters and logs of the tests' loads are not.
REAL_HOME = Settings.from_env().home
#: The folder of the run's cluster, which all processes of the run share.
SHARED = pytest.StashKey[Path]()
QuickJava = Callable[..., AbstractContextManager[None]]
LEAST_MEMORY = 8 << 30  # bytes
MOST_PROCESSES = 4
#: What would be written with every change of an index, for the case that a node comes back without its cluster's state.
UNWATCHED = {"gateway.write_dangling_indices_info": False}
#: Groups of tests, in the order in which they begin: what takes minutes one after the other comes first, lest the other
#: processes wait for it at the end, and what takes least comes last.
NODES, BROWSER, LONG, OTHERS, UNIT = range(5)
#: Of those that take minutes, what takes most, in this order.
LONGEST = [
    "test_reproduction.py",
    "test_reproduction_use_m.py",
    "test_anchored_xquad.py",
    "test_blocks.py",
    "test_anchors.py",
]


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of the cluster of this run; a process that the run has started is told it."""
    # In the background of a script an interrupt is ignored, and by all that is started there: tests interrupt commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told = getattr(config, "workerinput", None)
    # Under nohup a hangup is, which tests send, too: what is started there is to hear it, and the run itself is not.
    if told or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    config.stash[SHARED] = Path(told["shared"]) if told else _new_folder()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are processors, as many tests mostly wait; four at most."""
    return min(MOST_PROCESSES, (os.cpu_count() or 1) + 2)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tell a process that is to run tests where the cluster of this run is."""
    node.workerinput["shared"] = str(node.config.stash[SHARED])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop and remove what the run has started, once all of its processes have ended."""
    if hasattr(config, "workerinput"):
        return
    shared = config.stash[SHARED]
    with suppress(FileNotFoundError):
        _remove_container((shared / "container").read_text())
    if (shared / "downloads").exists():
        _remove(shared)
    else:
        shutil.rmtree(shared)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Keep the tests of a file in one process; likewise those with servers of their own, and those with a browser.

    A file may name a group, too: torch, which takes long to load, is loaded by one process, and one has Ray's machines.
    """
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        of = _group(item)
        item.add_marker(pytest.mark.xdist_group(item.path.name if of in (LONG, OTHERS, UNIT) else str(of)))
    yield  # in random order, and with the group in their names
    items.sort(key=lambda item: (_group(item), *(item.path.name != name for name in LONGEST)))


def _group(item: pytest.Item) -> int:
    if "new_home" in getattr(item, "fixturenames", ()):
        return NODES  # or another's server would take the port that one of theirs had before
    if item.path.name.startswith("test_reproduction") or item.path.name in LONGEST or _named(item) in ("torch", "ray"):
        return LONG
    return {"browser": BROWSER, "unit": UNIT}.get(item.path.parent.name, OTHERS)


def _named(item: pytest.Item) -> str | None:
    """The group that a file names for its tests."""
    mark = item.get_closest_marker("xdist_group")
    return None if mark is None else mark.args[0]


@pytest.fixture(scope="session", autouse=True)
def _told() -> Iterator[None]:
    """What lower rooms tell is shown as a command shows it, also where a test calls them without one."""
    with report_to(output.TerminalReporter()):
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_lines_of_progress() -> Iterator[None]:
    """A command that a busy machine takes ten seconds over says no more than elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress_display, "EVERY", 600.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def known_vectors(pytestconfig: pytest.Config) -> Iterator[KnownVectors]:
    """The encoder use-m, which encodes each text once; ``real_encoder`` goes without."""
    known = KnownVectors(pytestconfig.cache.mkdir("langshift"), UseM, "encode_documents")
    with pytest.MonkeyPatch.context() as patch:
        known.install(patch)
        yield known


@pytest.fixture
def real_encoder(known_vectors: KnownVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the encoder use-m encode every text anew."""
    known_vectors.remove(monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def _quick_encoder() -> Iterator[Callable[[], str]]:
    """Where no encoder is named, take the one that is ten times as fast: few tests are about which it is."""
    usual = parameters.default_encoder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "default_encoder", lambda: "use-m")
        yield usual


@pytest.fixture(scope="module")
def usual_encoder(_quick_encoder: Callable[[], str]) -> Iterator[None]:
    """Where no encoder is named, take the one that langshift takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "default_encoder", _quick_encoder)
        yield


@pytest.fixture(scope="session", autouse=True)
def _home_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A langshift home of the tests' own, also for the commands that they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGSHIFT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_calibration() -> Iterator[None]:
    """Loads do not calibrate what they have made, also in processes of their own: tests of that ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGSHIFT_NO_CALIBRATION", "1")
        yield


@pytest.fixture(autouse=True)
def _passwords_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what passwords a test had, as the process of a command would: one may be a usual word."""
    monkeypatch.setattr(credentials, "_secrets", dict(credentials._secrets))


@pytest.fixture(scope="session")
def quick_java() -> QuickJava:
    """A function that gives a context in which servers start that live for the tests only.

    They compile their code once, and not again for speed: most of what tests run is run a few times, and a server of a
    minute would spend half of its processor time on it, that of a whole run a quarter.
    Nor, unless it is asked for, does OpenSearch's agent look at the whole stack whenever a file is opened or deleted:
    of making and dropping a small index, a third.
    """

    @contextmanager
    def quickly(*, agent: bool = False) -> Iterator[None]:
        usual = Node.command

        def command(node: Node, java: Java) -> list[str]:
            program, *options = usual(node, java)
            if not agent:
                # The server needs its classes all the same.
                options = [one for one in options if not one.startswith("-javaagent:")]
                options[options.index("lib/*")] = f"lib/*{os.pathsep}agent/*"
            options[options.index("-XX:+UseG1GC")] = "-XX:+UseSerialGC"
            return [program, "-XX:TieredStopAtLevel=1", *options]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Node, "command", command)
            yield

    return quickly


@pytest.fixture(scope="session")
def cluster_url(pytestconfig: pytest.Config, quick_java: QuickJava) -> str:
    """Address of a real OpenSearch, the same for all processes of this run; one of ours is removed at its end."""
    if url := Settings.from_env().url:
        return url
    shared = pytestconfig.stash[SHARED]
    with FileLock(shared / "lock"):
        if (shared / "url").exists():
            return (shared / "url").read_text()
        if _docker_answers():
            url = _container(shared)
        else:
            _share_downloads(shared)
            install_plugin(shared, pytestconfig.cache.mkdir("langshift"))
            with quick_java():
                url = embedded.up(shared, UNWATCHED).url
        (shared / "url").write_text(url)
    return url


@pytest.fixture(scope="session")
def client(cluster_url: str) -> Iterator[OpenSearch]:
    """A client of the cluster, made as langshift makes its own."""
    with make_client(Settings.from_env(), cluster_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def native_cases(pytestconfig: pytest.Config) -> NativeCases:
    """The rules of the OpenSearch plugin that need no server, as they are in Java."""
    return NativeCases(_distribution(REAL_HOME), REAL_HOME, pytestconfig.cache.mkdir("langshift"))


@pytest.fixture(scope="session")
def plugin_zip(pytestconfig: pytest.Config) -> Packed:
    """The OpenSearch plugin as it is built: its zips."""
    _distribution(REAL_HOME)  # with what it is compiled against
    return packed_plugin(REAL_HOME, pytestconfig.cache.mkdir("langshift"))


@pytest.fixture
def plugin_installer(tmp_path: Path) -> PluginInstaller:
    """The real ``bin/opensearch-plugin``, in a home without plugins."""
    return PluginInstaller(_distribution(REAL_HOME), REAL_HOME / "downloads", tmp_path / "opensearch")


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
    names_alone = {"expand_wildcards": "all", "filter_path": "*.settings.index.uuid"}
    if made := ",".join(client.indices.get(index=f"{name}*", params=names_alone)):
        client.indices.delete(index=made)


@pytest.fixture(scope="session")
def new_home() -> Iterator[Callable[..., Path]]:
    """A function that makes a langshift home which shares the user's downloads and distribution.

    A first run downloads them there. The home's path has a space and an umlaut; it is where any user
    can reach it, or in the folder that is given. At the end its server is stopped and all is removed.
    """
    homes: list[Path] = []

    def make(parent: Path | None = None) -> Path:
        home = _new_folder(parent)
        homes.append(home)
        _share_downloads(home, reachable=parent is None)
        return home

    yield make
    for home in homes:
        _remove(home)


@pytest.fixture(scope="session")
def _three_nodes(new_home: Callable[..., Path], quick_java: QuickJava) -> Iterator[ThreeNodes]:
    nodes = ThreeNodes(new_home(), quick_java)
    yield nodes
    nodes.stop()


@pytest.fixture
def three_nodes(_three_nodes: ThreeNodes) -> ThreeNodes:
    """A cluster of three nodes, all of them up; one cluster serves every test, as forming it takes a minute."""
    _three_nodes.up()
    return _three_nodes


def _new_folder(parent: Path | None = None) -> Path:
    """A folder for a server, in memory where there is room for it: whatever changes an index waits for the disk."""
    memory = Path("/dev/shm")
    if parent is None and memory.is_dir() and os.access(memory, os.W_OK):
        found = os.statvfs(memory)
        # Where nothing may be executed, Java does not start.
        if found.f_bavail * found.f_frsize >= LEAST_MEMORY and not found.f_flag & os.ST_NOEXEC:
            parent = memory
    return Path(tempfile.mkdtemp(prefix="langshift tést ", dir=parent))


def _share_downloads(home: Path, *, reachable: bool = True) -> None:
    """Let a langshift home have the user's downloads and distribution."""
    distribution = _distribution(REAL_HOME)
    if reachable:
        home.chmod(0o755)
    (home / "downloads").symlink_to((REAL_HOME / "downloads").resolve())
    (home / distribution.name).symlink_to(distribution)


def _remove(made: Path) -> None:
    """Stop the server of a langshift home, where it has one, and remove the home."""
    home, base = made.resolve(), Path(str(embedded.places(made)["home"]))
    embedded.down(home)
    for folder in {folder for folder in (home, base) if folder.is_dir()}:
        shutil.rmtree(folder)


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


def _container(shared: Path) -> str:
    """Start a container that outlives this process, and note which: the run removes it at its end."""
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"  # it would remove the container as soon as this process ends
    try:
        from testcontainers.community.opensearch import OpenSearchContainer
    except ImportError:  # before testcontainers 4.15
        from testcontainers.opensearch import OpenSearchContainer
    container = OpenSearchContainer(IMAGE, security_enabled=False)
    # The image would otherwise prepare demo certificates, and refuse the container's default password.
    container.with_env("DISABLE_INSTALL_DEMO_CONFIG", "true")
    container.start()
    (shared / "container").write_text(container.get_wrapped_container().id)
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(9200)}"


def _remove_container(name: str) -> None:
    import docker

    with closing(docker.from_env()) as engine:
        engine.containers.get(name).remove(force=True, v=True)
