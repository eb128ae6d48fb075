"""Where the files of one home are, and the lock by which commands take turns there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from langshift.console import note
from langshift.embedded import Server
from langshift.embedded.account import Account, make_folder, reachable_base, server_account
from langshift.embedded.node import Node
from langshift.embedded.state import State
from langshift.errors import LangshiftError


@dataclass(frozen=True)
class Place:
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
    def of(cls, home: Path) -> Place:
        """Look at the home; nothing is made."""
        account = server_account()
        home = home.absolute()
        return cls(home, reachable_base(home, account), account)

    @property
    def node(self) -> Node:
        """The server's own folder."""
        return Node(self.base / "node")

    @property
    def console(self) -> Path:
        """What the server printed before its log was open."""
        return self.base / "console.log"

    @property
    def state_file(self) -> Path:
        """What is remembered of the server; out of the server's own reach."""
        return self.base / "server.json"

    def state(self) -> State:
        """What is remembered now."""
        return State.read(self.state_file)

    def server(self, state: State) -> Server:
        """The running server that a state describes."""
        return Server(
            url=f"http://127.0.0.1:{state.port}",
            pid=state.pid or 0,
            version=state.version or "",
            home=self.base,
            data=self.node.data,
            log=self.node.log,
            java=state.java or "",
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the home's lock: two commands at once take turns.

        Raises:
            LangshiftError: a file or folder of the home cannot be written.
        """
        try:
            make_folder(self.base, self.account)
            lock = FileLock(self.base / "langshift.lock")
            try:
                lock.acquire(timeout=1)
            except Timeout:
                note(f"Waiting for another langshift that is at work in {self.base} ...")
                lock.acquire()
            try:
                yield
            finally:
                lock.release()
        except OSError as error:
            raise LangshiftError(
                f"langshift cannot keep its files in {self.home}: {error.strerror or error}"
                f"{f' ({error.filename})' if error.filename else ''}; "
                "set LANGSHIFT_HOME to a folder that you may write in."
            ) from None
