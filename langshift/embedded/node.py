"""One node: its folder, its settings and ports, its command line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from langshift.embedded import NodeStatus, Server
from langshift.embedded.artifacts import PARTS
from langshift.embedded.java import VECTOR, Java
from langshift.embedded.state import (
    MAIN_CLASS,
    Account,
    ServerState,
    path_home_option,
    reachable_base,
    server_account,
)
from langshift.errors import LangshiftError, UsageError
from langshift.files import PASSABLE, PRIVATE, ensure_folder
from langshift.output import note

GIB = 1 << 30
FIRST = "langshift"  # the name of a home's first node

COMMON = {
    "network.host": "127.0.0.1",
    # The server takes a free port itself, so that nobody can come between, and writes which.
    "node.portsfile": True,
    # The native libraries of faiss are in no package registry, and an index that needs them ends the node.
    "node.attr.langshift_native": "false",
    # By default a disk that is nine tenths full takes no new index, however much is free on it.
    "cluster.routing.allocation.disk.watermark.low": "2gb",
    "cluster.routing.allocation.disk.watermark.high": "1gb",
    "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
}


def single_node_settings(port: int | None, transport: int | None) -> dict[str, Any]:
    """Settings of a node of its own that listens on this machine only.

    Args:
        port: HTTP port to prefer, or None; where it is taken, the first free one from 9200.
        transport: transport port to prefer, or None; likewise from 9300.
    """
    return {
        "cluster.name": "langshift",
        "node.name": FIRST,
        "discovery.type": "single-node",
        "http.port": port_range(port, 9200),
        "transport.port": port_range(transport, 9300),
        **COMMON,
    }


def member_settings(name: str, base: Path, port: int | None, transport: int | None, *, forming: bool) -> dict[str, Any]:
    """Settings of one node of several that listen on this machine only.

    Args:
        name: the node's name.
        base: the folder of all nodes.
        port: HTTP port to prefer, or None; as for a single node.
        transport: transport port to prefer, or None; likewise.
        forming: whether no other node was ever part of the cluster. The first node, and it alone, then
            begins one if its folder holds none, so that two can never be begun; the others join it.
    """
    return {
        # Another home's nodes may listen where ours did: the name keeps the clusters apart.
        "cluster.name": f"langshift-{hashlib.sha256(os.fsencode(base)).hexdigest()[:12]}",
        "node.name": name,
        # Which ports the others got is known only once they run: it is read from a file again and again.
        "discovery.seed_hosts": [],
        "discovery.seed_providers": ["file"],
        # Those ports are written once this wait for the others is over: none.
        "discovery.initial_state_timeout": "0s",
        **({"cluster.initial_cluster_manager_nodes": [FIRST]} if forming and name == FIRST else {}),
        "http.port": port_range(port, 9200),
        "transport.port": port_range(transport, 9300),
        **COMMON,
    }


def heap(memory: int, nodes: int = 1) -> tuple[int, int]:
    """Smallest and largest heap of a node in MiB.

    Args:
        memory: of the machine, in bytes.
        nodes: how many share the machine. One has an eighth of it, 0.5 to 2 GiB; each of several has a
            twelfth, 384 to 700 MiB.
    """
    if nodes == 1:
        return 512, min(max(memory // 8, GIB // 2), 2 * GIB) >> 20
    high = min(max((memory // 12) >> 20, 384), 700)
    return min(512, high), high


def apart(last: Sequence[int | None], first: int) -> list[int | None]:
    """Ports for nodes to prefer that start at once: they would take each other's if all began at the first.

    Args:
        last: the port that each node had; None where it had none.
        first: the first of a hundred ports.

    Returns:
        For each node the one that it had, or a free one that is no other's; None where all are taken.
    """
    chosen: list[int | None] = []
    for port in last:
        free = (p for p in range(first, first + 100) if p not in last and p not in chosen and _is_free(p))
        chosen.append(port if port is not None and _is_free(port) else next(free, None))
    return chosen


def port_range(preferred: int | None, first: int) -> str:
    """The ports that a server may take, in their order: a hundred, beginning at the preferred one if free."""
    last = first + 99
    if preferred is None or not first <= preferred <= last or not _is_free(preferred):
        preferred = first
    return f"{preferred}-{last}"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does: connections of the last one that still linger do not hinder.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Node:
    """One node of a home: where its files are, apart from the distribution, which several nodes may share.

    Attributes:
        number: from 1.
        name: its name in its cluster.
        console: what the server printed before its log was open.
        state_file: what is remembered of the server; out of the server's own reach.
        folder: the node's own.
        config: folder of its configuration, written anew at each start.
        data: folder of its indices.
        logs: folder of its log.
        log: its log file.
        temporary: folder for the server's temporary files, where it also loads native code from.
    """

    def __init__(self, base: Path, number: int = 1) -> None:
        suffix = "" if number == 1 else f"-{number}"
        self.number, self.name = number, f"{FIRST}{suffix}"
        self.console, self.state_file = base / f"console{suffix}.log", base / f"server{suffix}.json"
        self.folder = base / f"node{suffix}"
        self.config, self.data, self.logs = self.folder / "config", self.folder / "data", self.folder / "logs"
        self.log, self.temporary = self.logs / "server.log", self.folder / "tmp"

    def state(self) -> ServerState:
        """What is remembered now."""
        return ServerState.read(self.state_file)

    def status(self) -> NodeStatus:
        """Whether the node's server runs and was healthy, and where."""
        state = self.state()
        if not state.ready or state.process(self.folder) is None:
            return NodeStatus(self.name, None, None, running=False)
        return NodeStatus(self.name, f"http://127.0.0.1:{state.port}", state.pid, running=True)

    def lay_out(self, distribution: Path, settings: Mapping[str, Any], account: Account | None) -> None:
        """Make the node's folders, links and configuration, ready for a start.

        Args:
            distribution: the assembled distribution.
            settings: content of ``opensearch.yml``.
            account: the user who will own what the server writes; None for the present one.
        """
        shutil.rmtree(self.temporary, ignore_errors=True)
        # OpenSearch insists on a bin/, be it empty.
        ensure_folder(self.folder / "bin", PASSABLE if account else PRIVATE)
        for folder in (self.config, self.data, self.logs, self.temporary):
            ensure_folder(folder)
            folder.chmod(PRIVATE)  # also where an earlier langshift made it
        for part in PARTS:
            link = self.folder / part
            if link.is_symlink():
                link.unlink()
            link.symlink_to(distribution / part, target_is_directory=True)
        # JSON is YAML, and needs no thought about quoting a path.
        self._write("opensearch.yml", json.dumps(settings, indent=1).encode())
        assets = files("langshift.embedded") / "assets"
        self._write("log4j2.properties", (assets / "log4j2.properties").read_bytes())
        self._write("jvm.options", b"")
        if account is not None:
            for folder in (self.config, self.data, self.logs, self.temporary):
                account.own(folder)

    def write_seed_hosts(self, ports: Iterable[int]) -> None:
        """Write where the cluster's nodes listen for each other; a running node looks again every second."""
        self._write("unicast_hosts.txt", "".join(f"127.0.0.1:{port}\n" for port in ports).encode())

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.config / f".{name}.new"
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as stream:  # never through a link that the server's user put there
            stream.write(content)
            os.fchmod(stream.fileno(), 0o644)  # its folder keeps it from all but the server's user
        temporary.replace(self.config / name)

    def command(self, java: Java, nodes: int = 1) -> list[str]:
        """The command line that starts this node, one of ``nodes``, to be run in its folder."""
        agent = next((self.folder / "agent").glob("opensearch-agent-[0-9]*.jar"))
        low, high = heap(psutil.virtual_memory().total, nodes)
        return [
            str(java.program),
            f"-Xms{low}m",
            f"-Xmx{high}m",
            "-XX:+UseG1GC",
            "-Xss1m",
            *([f"--add-modules={VECTOR}"] if java.vector else []),
            "--add-opens=java.base/java.nio.file=ALL-UNNAMED",
            "--enable-native-access=ALL-UNNAMED",
            "-Djava.locale.providers=SPI,CLDR",
            "-Djava.awt.headless=true",
            "-Dfile.encoding=UTF-8",
            f"-Djava.io.tmpdir={self.temporary}",
            "-Djna.nosys=true",
            "-Dlog4j2.disable.jmx=true",
            "-XX:-HeapDumpOnOutOfMemoryError",
            f"-XX:ErrorFile={self.logs / 'jvm-crash.log'}",
            # Relative to the node, where it is started: "=" and ":" in a path mean something here.
            f"-javaagent:agent/{agent.name}",
            path_home_option(self.folder),
            f"-Dopensearch.path.conf={self.config}",
            "-Dopensearch.distribution.type=tar",
            "-Dopensearch.bundled_jdk=false",
            "-cp",
            "lib/*",
            MAIN_CLASS,
        ]


def check_folder(folder: Path) -> None:
    """Refuse a folder in which the server cannot run.

    Raises:
        UsageError: its path has a character at which Java's class path or OpenSearch's policies break.
    """
    if found := sorted(set(":+") & set(str(folder))):
        raise UsageError(
            f"OpenSearch cannot run in {folder}, because that path contains {' and '.join(found)}; "
            "set LANGSHIFT_HOME to another folder."
        )


SIZES = (1, 3)  # with two nodes a majority is both: either one's death would stop the cluster


@dataclass(frozen=True)
class ServerHome:
    """Where the files of one home are.

    Attributes:
        home: langshift's folder, as it was given.
        base: the folder of the server's files: the same, or one that its user can reach.
        account: the user whom the server runs as; None for the present one.
    """

    home: Path
    base: Path
    account: Account | None

    @classmethod
    def of(cls, home: Path) -> ServerHome:
        """Look at the home; nothing is made."""
        account = server_account()
        home = home.absolute()
        return cls(home, reachable_base(home, account), account)

    @property
    def size(self) -> int:
        """How many nodes the home has; 1 where it has none yet."""
        return SIZES[any(node.folder.is_dir() for node in self.nodes(SIZES[1])[1:])]

    def nodes(self, size: int | None = None) -> list[Node]:
        """The nodes of the home, or those that it would have with ``size`` nodes."""
        return [Node(self.base, number) for number in range(1, (size or self.size) + 1)]

    def server(self, suits: Callable[[str], bool] = lambda _: True) -> Server | None:
        """The cluster by its first node that runs and whose address ``suits``, or None."""
        nodes = self.nodes()
        found = tuple(node.status() for node in nodes)
        for node, status in zip(nodes, found, strict=True):
            if status.url is not None and status.pid is not None and suits(status.url):
                state = node.state()
                return Server(
                    url=status.url,
                    pid=status.pid,
                    version=state.version or "",
                    home=self.base,
                    data=node.data,
                    log=node.log,
                    java=state.java or "",
                    nodes=found if len(found) > 1 else (),
                )
        return None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the home's lock: two commands at once take turns.

        Raises:
            LangshiftError: a file or folder of the home cannot be written.
        """
        try:
            ensure_folder(self.base, PASSABLE if self.account else PRIVATE)
            lock = FileLock(self.base / "langshift.lock", mode=0o600)
            try:
                lock.acquire(timeout=1)
            except Timeout:
                note(f"Waiting for another langshift process that is using {self.base} ...")
                lock.acquire()
            try:
                yield
            finally:
                lock.release()
        except OSError as error:
            raise LangshiftError(
                f"langshift cannot store its files in {self.home}: {error.strerror or error}"
                f"{f' ({error.filename})' if error.filename else ''}; "
                "set LANGSHIFT_HOME to a writable folder."
            ) from None
