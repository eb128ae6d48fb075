"""Where the files of one home are, and the lock by which commands take turns there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from langshift.console import note
from langshift.embedded import NodeStatus, Server
from langshift.embedded.account import Account, make_folder, reachable_base, server_account
from langshift.embedded.configuration import FIRST
from langshift.embedded.node import Node
from langshift.embedded.state import State
from langshift.errors import LangshiftError

SIZES = (1, 3)  # with two nodes a majority is both: either one's death would stop the cluster


@dataclass(frozen=True)
class Member:
    """One node of a home, and what is remembered of its server.

    Attributes:
        base: the folder that the files of all nodes are in.
        number: from 1.
    """

    base: Path
    number: int

    @property
    def name(self) -> str:
        """The node's name in its cluster."""
        return f"{FIRST}{self._suffix}"

    @property
    def node(self) -> Node:
        """The node's own folder."""
        return Node(self.base / f"node{self._suffix}")

    @property
    def console(self) -> Path:
        """What the server printed before its log was open."""
        return self.base / f"console{self._suffix}.log"

    @property
    def state_file(self) -> Path:
        """What is remembered of the server; out of the server's own reach."""
        return self.base / f"server{self._suffix}.json"

    @property
    def _suffix(self) -> str:
        return "" if self.number == 1 else f"-{self.number}"

    def state(self) -> State:
        """What is remembered now."""
        return State.read(self.state_file)

    def status(self) -> NodeStatus:
        """Whether the node's server runs and was healthy, and where."""
        state = self.state()
        if not state.ready or state.process(self.node.folder) is None:
            return NodeStatus(self.name, None, None, running=False)
        return NodeStatus(self.name, f"http://127.0.0.1:{state.port}", state.pid, running=True)


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
    def size(self) -> int:
        """How many nodes the home has; 1 where it has none yet."""
        return SIZES[any(member.node.folder.is_dir() for member in self.members(SIZES[1])[1:])]

    def members(self, size: int | None = None) -> list[Member]:
        """The nodes of the home, or those that it would have with ``size`` nodes."""
        return [Member(self.base, number) for number in range(1, (size or self.size) + 1)]

    def server(self, suits: Callable[[str], bool] = lambda _: True) -> Server | None:
        """The cluster by its first node that runs and whose address ``suits``, or None."""
        members = self.members()
        nodes = tuple(member.status() for member in members)
        for member, node in zip(members, nodes, strict=True):
            if node.url is not None and node.pid is not None and suits(node.url):
                state = member.state()
                return Server(
                    url=node.url,
                    pid=node.pid,
                    version=state.version or "",
                    home=self.base,
                    data=member.node.data,
                    log=member.node.log,
                    java=state.java or "",
                    nodes=nodes if len(nodes) > 1 else (),
                )
        return None

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
