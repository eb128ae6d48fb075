"""What is remembered of a server's process between commands, and the user whose it is."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from langshift.errors import LangshiftError
from langshift.files import write_bytes

# Every user can reach it, which root's own home and its temporary folders often do not allow.
SHARED = Path("/var/lib/langshift")


@dataclass(frozen=True)
class Account:
    """Another user than the one who runs langshift."""

    name: str
    uid: int
    gid: int

    def reaches(self, path: Path) -> bool:
        """Whether this user may read ``path`` (and enter it, where it is a folder)."""
        path = path.resolve()
        if not all(self._may(folder, stat.S_IXOTH) for folder in path.parents):
            return False
        return self._may(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))

    def _may(self, path: Path, wanted: int) -> bool:
        """Whether the mode of ``path`` grants ``wanted`` (bits of "others") to this user."""
        state = path.stat()
        if state.st_uid == self.uid:
            wanted <<= 6
        elif state.st_gid == self.gid:
            wanted <<= 3
        return state.st_mode & wanted == wanted

    def own(self, folder: Path) -> None:
        """Make ``folder`` and all in it this user's; links are not followed."""
        for path in (folder, *folder.rglob("*")):
            if path.lstat().st_uid != self.uid:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def server_account() -> Account | None:
    """The user to start the server as; None where it can run as the present one.

    Raises:
        LangshiftError: langshift runs as root and the system has no ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise LangshiftError(
            "OpenSearch refuses to run as root, and this system has no user named nobody to run it as; "
            "run langshift as an ordinary user, or set OPENSEARCH_URL to your own cluster."
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def popen_options(account: Account | None) -> dict[str, Any]:
    """What ``subprocess`` is told so that a program runs as that user."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def reachable_base(home: Path, account: Account | None) -> Path:
    """The folder for the server's files: ``home`` resolved, or a shared one that the user can reach.

    Once made, the shared folder stays the one in use: the data is in it.
    """
    home = home.resolve()
    if account is None:
        return home
    shared = SHARED / hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    if shared.is_dir():
        return shared
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    return home if account.reaches(nearest) else shared


# The clock by which a process's start is told may be set between two looks at it.
CLOCK_SLACK = 5.0

MAIN_CLASS = "org.opensearch.bootstrap.OpenSearch"


@dataclass(frozen=True)
class ServerState:
    """One server's state, kept as JSON in the home.

    Attributes:
        pid: the process that was started last; None once it was stopped.
        created: when that process began, in seconds since 1970: a pid alone is used again.
        ready: whether that process was seen ready, so that the port is its own.
        port: HTTP port of the last ready server, which later starts prefer; None before there was one.
        java: the Java program.
        version: OpenSearch's version.
    """

    pid: int | None = None
    created: float | None = None
    ready: bool = False
    port: int | None = None
    java: str | None = None
    version: str | None = None

    @classmethod
    def read(cls, file: Path) -> ServerState:
        """Read a state file; one that is missing or was damaged is like none."""
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, RecursionError):
            return cls()

    def write(self, file: Path) -> None:
        """Replace the state file in one step."""
        write_bytes(file, json.dumps(asdict(self)).encode(), private=True)

    def stopped(self) -> ServerState:
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


def find_server(node: Path) -> ServerState | None:
    """Look through all processes for a server of this node; its state as far as it shows, or None."""
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if path_home_option(node) in command and command[-1] == MAIN_CLASS:
                return ServerState(pid=process.pid, created=process.create_time(), java=command[0])
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
