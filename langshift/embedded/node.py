"""One node: its folder with links to the shared distribution, its configuration, its command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil

from langshift.embedded.account import Account, make_folder
from langshift.embedded.configuration import heap
from langshift.embedded.distribution import PARTS
from langshift.embedded.java import VECTOR, Java
from langshift.embedded.state import MAIN_CLASS, path_home_option
from langshift.errors import UsageError


@dataclass(frozen=True)
class Node:
    """The folder of one server, apart from the distribution, which several nodes may share."""

    folder: Path

    @property
    def config(self) -> Path:
        """Folder of its configuration, written anew at each start."""
        return self.folder / "config"

    @property
    def data(self) -> Path:
        """Folder of its indices."""
        return self.folder / "data"

    @property
    def logs(self) -> Path:
        """Folder of its log."""
        return self.folder / "logs"

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.logs / "server.log"

    @property
    def temporary(self) -> Path:
        """Folder for the server's temporary files, where it also loads native code from."""
        return self.folder / "tmp"

    def lay_out(self, distribution: Path, settings: Mapping[str, Any], account: Account | None) -> None:
        """Make the node's folders, links and configuration, ready for a start.

        Args:
            distribution: the assembled distribution.
            settings: content of ``opensearch.yml``.
            account: the user who will own what the server writes; None for the present one.
        """
        shutil.rmtree(self.temporary, ignore_errors=True)
        # OpenSearch insists on a bin/, be it empty.
        for folder in (self.folder / "bin", self.config, self.data, self.logs, self.temporary):
            make_folder(folder, account)
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

    def tell_others(self, ports: Iterable[int]) -> None:
        """Write where the cluster's nodes listen for each other; a running node looks again every second."""
        self._write("unicast_hosts.txt", "".join(f"127.0.0.1:{port}\n" for port in ports).encode())

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.config / f".{name}.new"
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as stream:  # never through a link that the server's user put there
            stream.write(content)
        temporary.chmod(0o644)
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
            f"OpenSearch cannot run in {folder}: it trips over the {' and the '.join(found)} in that path; "
            "set LANGSHIFT_HOME to another folder."
        )
