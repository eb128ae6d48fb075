"""One node: its folder, its settings and ports, its command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import psutil
import yaml
from filelock import FileLock, Timeout

from langshift.embedded.artifacts import PARTS, PLUGINS
from langshift.embedded.java import VECTOR, Java
from langshift.embedded.state import MAIN_CLASS, Account, ServerState, path_home_option, reachable_base, server_account
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.files import PASSABLE, PRIVATE, ensure_folder, text_lines
from langshift.reporting import note

GIB = 1 << 30

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

#: The file with the user's own settings, in langshift's folder.
OWN_SETTINGS: Final = "opensearch.yml"
# By these langshift finds the server and its files, and they keep it to this machine.
_OURS = re.compile(
    r"cluster\.name|node\.(name|portsfile|attr\.langshift_native)|path\.(data|home|logs)"
    r"|http\.((bind_|publish_)?host|(publish_)?port)|(discovery|network|transport)\..*"
)
_REASON = re.compile(r"Exception: (.*?)\.?$")


def node_settings(port: int | None) -> dict[str, Any]:
    """Settings of a server that listens on this machine only.

    Args:
        port: HTTP port to prefer, or None; where it is taken, the first free one from 9200.
    """
    return {
        "cluster.name": "langshift",
        "node.name": "langshift",
        "discovery.type": "single-node",
        "http.port": port_range(port, 9200),
        **COMMON,
    }


def read_settings(home: Path) -> dict[str, Any]:
    """The settings in the user's file, by their names with dots; none without a file.

    Raises:
        UsageError: it cannot be read, or has a setting that is langshift's own.
    """
    file = home / OWN_SETTINGS
    if not file.exists():
        return {}
    try:
        # Values are text, as they stand there, for the server to read.
        found = yaml.load("\n".join(text_lines(file)), yaml.BaseLoader)  # noqa: S506 - it makes nothing else
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        raise UsageError(f"{file}{f', line {place.line + 1},' if place else ''} is not YAML.") from None
    if not isinstance(found, dict | None):
        raise UsageError(f"{file} has no settings: write lines such as `http.max_content_length: 200mb`.")
    settings = dict(_flat(found or {}))
    for name, value in settings.items():
        if _OURS.fullmatch(name):
            raise UsageError(f"{file} has the setting {name}, which langshift sets itself: remove it there.")
        if isinstance(value, list) and not all(isinstance(one, str) for one in value):
            raise UsageError(f"{file} has a list within the setting {name} that is not of words or numbers alone.")
    return settings


def _flat(settings: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def refused(home: Path, settings: Mapping[str, Any], error: ClusterError) -> ClusterError:
    """The error of a start, in words that name the user's setting which the server refuses, where it does."""
    # What begins with a bracket is said in passing.
    told = [line for line in error.log if not line.startswith("[")]
    for name, value in settings.items():
        named = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.])|value \[{re.escape(str(value))}\]")
        reasons = [found[1] for line in told if (found := _REASON.search(line))]
        if reasons and any(map(named.search, told)):
            reason = next(filter(named.search, reasons), reasons[0])
            return ClusterError(f"OpenSearch refuses the setting {name} of {home / OWN_SETTINGS}: {reason}.")
    return error


def heap(memory: int) -> tuple[int, int]:
    """Smallest and largest heap in MiB: an eighth of the machine's ``memory``, in bytes, but 0.5 to 2 GiB."""
    return 512, min(max(memory // 8, GIB // 2), 2 * GIB) >> 20


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
    """The server of a home: where its files are, apart from the distribution, which several homes may share.

    Attributes:
        console: what the server printed before its log was open.
        state_file: what is remembered of the server; out of the server's own reach.
        folder: its own.
        config: folder of its configuration, written anew at each start.
        data: folder of its indices.
        logs: folder of its log.
        log: its log file.
        temporary: folder for the server's temporary files, where it also loads native code from.
        installed: folder of the plugins that were installed beside those of the distribution.
    """

    def __init__(self, base: Path) -> None:
        self.console, self.state_file, self.folder = base / "console.log", base / "server.json", base / "node"
        self.config, self.data, self.logs = self.folder / "config", self.folder / "data", self.folder / "logs"
        self.log, self.temporary = self.logs / "server.log", self.folder / "tmp"
        self.installed = base / "plugins"

    def state(self) -> ServerState:
        """What is remembered now."""
        return ServerState.read(self.state_file)

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
            elif link.is_dir():
                shutil.rmtree(link)
            if part != PLUGINS:
                link.symlink_to(distribution / part, target_is_directory=True)
        ensure_folder(self.folder / PLUGINS, PASSABLE)
        for plugins in (distribution / PLUGINS, self.installed):
            for plugin in plugins.iterdir() if plugins.is_dir() else ():
                (self.folder / PLUGINS / plugin.name).symlink_to(plugin, target_is_directory=True)
        # JSON is YAML, and needs no thought about quoting a path.
        self._write("opensearch.yml", json.dumps(settings, indent=1).encode())
        assets = files("langshift.embedded") / "assets"
        self._write("log4j2.properties", (assets / "log4j2.properties").read_bytes())
        self._write("jvm.options", b"")
        if account is not None:
            for folder in (self.config, self.data, self.logs, self.temporary):
                account.own(folder)

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.config / f".{name}.new"
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as stream:  # never through a link that the server's user put there
            stream.write(content)
            os.fchmod(stream.fileno(), 0o644)  # its folder keeps it from all but the server's user
        temporary.replace(self.config / name)

    def command(self, java: Java) -> list[str]:
        """The command line that starts the server, to be run in its folder."""
        agent = next((self.folder / "agent").glob("opensearch-agent-[0-9]*.jar"))
        low, high = heap(psutil.virtual_memory().total)
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


@dataclass(frozen=True)
class Server:
    """A running embedded OpenSearch.

    Attributes:
        url: its address on this machine.
        pid: its process.
        version: OpenSearch's version.
        home: the folder that all its files are in; another one than was asked for where that one
            is out of reach of the user whom root starts the server as.
        data: the folder of its indices, kept between starts.
        log: its log.
        java: the Java program that runs it.
    """

    url: str
    pid: int
    version: str
    home: Path
    data: Path
    log: Path
    java: str

    def __str__(self) -> str:
        return f"OpenSearch {self.version} is running at {self.url}"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {name: value if isinstance(value, int) else str(value) for name, value in vars(self).items()}


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
    def node(self) -> Node:
        """The server of the home."""
        return Node(self.base)

    def server(self) -> Server | None:
        """The server where it runs and was ready, or None."""
        node = self.node
        state = node.state()
        if not state.ready or state.pid is None or state.process(node.folder) is None:
            return None
        return Server(
            url=f"http://127.0.0.1:{state.port}",
            pid=state.pid,
            version=state.version or "",
            home=self.base,
            data=node.data,
            log=node.log,
            java=state.java or "",
        )

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
                held = lock.acquire(timeout=1)
            except Timeout:
                note(f"Waiting for another langshift process that is using {self.base} ...")
                held = lock.acquire()
            with held:
                yield
        except OSError as error:
            raise LangshiftError(
                f"langshift cannot store its files in {self.home}: {error.strerror or error}"
                f"{f' ({error.filename})' if error.filename else ''}; "
                "set LANGSHIFT_HOME to a writable folder."
            ) from None
