"""What is remembered between commands: the server's process and its ports."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

# The clock by which a process's start is told may be set between two looks at it.
CLOCK_SLACK = 5.0

MAIN_CLASS = "org.opensearch.bootstrap.OpenSearch"


@dataclass(frozen=True)
class State:
    """One server's state, kept as JSON in the home.

    Attributes:
        pid: the process that was started last; None once it was stopped.
        created: when that process began, in seconds since 1970: a pid alone is used again.
        ready: whether that process was seen healthy, so that the ports are its own.
        port: HTTP port of the last healthy server, which later starts prefer; None before there was one.
        transport: transport port, likewise.
        java: the Java program.
        version: OpenSearch's version.
    """

    pid: int | None = None
    created: float | None = None
    ready: bool = False
    port: int | None = None
    transport: int | None = None
    java: str | None = None
    version: str | None = None

    @classmethod
    def read(cls, file: Path) -> State:
        """Read a state file; one that is missing or was damaged is like none."""
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            return cls(**document)
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return cls()

    def write(self, file: Path) -> None:
        """Replace the state file in one step."""
        temporary = file.with_name(f"{file.name}.new")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        temporary.replace(file)

    def stopped(self) -> State:
        """The same without a process: only what a later start prefers is kept."""
        return replace(self, pid=None, created=None, ready=False)

    def process(self, node: Path) -> psutil.Process | None:
        """The live process of this state; None where it is gone or its pid is another program's now.

        Args:
            node: the folder that the server's command line names.
        """
        if not isinstance(self.pid, int) or not isinstance(self.created, int | float):
            return None
        try:
            process = psutil.Process(self.pid)
            if not is_alive(process) or abs(process.create_time() - self.created) > CLOCK_SLACK:
                return None
            return process if path_home_option(node) in process.cmdline() else None
        except (psutil.Error, ValueError, OverflowError):
            return None


def find_server(node: Path) -> State | None:
    """Look through all processes for a server of this node; its state as far as it shows, or None."""
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if path_home_option(node) in command and command[-1] == MAIN_CLASS:
                return State(pid=process.pid, created=process.create_time(), java=command[0])
        except psutil.Error:
            continue
    return None


def path_home_option(node: Path) -> str:
    """The server's option that names its folder, and so tells our process from any other."""
    return f"-Dopensearch.path.home={node}"


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs; one that is dead but not yet collected by its parent does not."""
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.is_running()
    except psutil.NoSuchProcess:
        return False
    with suppress(ChildProcessError):  # where the parent is not us
        os.waitpid(process.pid, os.WNOHANG)
    return False
