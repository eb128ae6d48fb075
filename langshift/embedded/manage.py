"""Up, down and status: one cluster per home, whatever state the last one was left in."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from langshift.console import note
from langshift.embedded import Server
from langshift.embedded.health import serves
from langshift.embedded.lock import read_lock
from langshift.embedded.place import Member, Place
from langshift.embedded.process import log_end, terminate
from langshift.embedded.start import Found, prepared, start
from langshift.embedded.state import find_server
from langshift.errors import ClusterError, UsageError

# What remains of a cluster whose manager died serves again when it has chosen another.
_ELECTION_SECONDS = 60


def up(home: Path, nodes: int | None = None, settings: Mapping[str, Any] | None = None) -> Server:
    """Return the running OpenSearch of ``home``, or start it; see :func:`langshift.embedded.up`.

    Args:
        home: langshift's folder.
        nodes: how many nodes it is to have; None for those that it has.
        settings: settings of OpenSearch beside our own; they win.
    """
    place = Place.of(home)
    size = _wanted(place, nodes)
    if size == place.size and (server := _complete(place)) is not None:
        return server
    with place.alone():
        size = _wanted(place, nodes)  # another langshift may have been at work
        if size > place.size and _stop([_find(member) for member in place.members()]):
            note("Restarting OpenSearch, so that other nodes can join it; its data stays.")
        start(place, [_find(member) for member in place.members(size)], settings or {})
        server = place.server()
        if server is None:
            raise ClusterError(why_not_running(home))
        return server


def any_node(home: Path) -> Server:
    """Return ``home``'s OpenSearch by a node that serves; see :func:`langshift.embedded.any_node`."""
    place = Place.of(home)
    deadline = time.monotonic() + _ELECTION_SECONDS
    while (server := place.server(serves)) is None:
        alive = place.server()
        majority = alive is not None and 2 * sum(node.running for node in alive.nodes) > len(alive.nodes) > 1
        if not majority or time.monotonic() > deadline:
            return up(home)
        time.sleep(0.2)
    return server


def down(home: Path) -> bool:
    """Stop all nodes of ``home``; whether one ran."""
    place = Place.of(home)
    if not any(member.node.folder.is_dir() for member in place.members()):
        return False
    with place.alone():
        return _stop([_find(member) for member in place.members()])


def status(home: Path) -> Server | None:
    """Return the running, once healthy OpenSearch of ``home`` by its first node that runs, or None."""
    return Place.of(home).server()


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server, with the end of the log where one died."""
    begun = [member for member in Place.of(home).members() if member.state().pid is not None]
    alive = [member for member in begun if member.state().process(member.node.folder) is not None]
    if not begun:
        return "The embedded OpenSearch is not running; langshift up starts it."
    if alive:
        return f"The embedded OpenSearch is starting ({_processes(alive)})."
    are, them = ("is", "it") if len(begun) == 1 else ("are", "them")
    return (
        f"The embedded OpenSearch is not running: its {_processes(begun)} {are} gone, though nobody stopped {them}; "
        f"langshift up starts {them} again; the end of its log:\n{log_end(begun[0].node, begun[0].console)}"
    )


def places(home: Path) -> dict[str, Any]:
    """Where the files of a server that does not run are."""
    place = Place.of(home)
    members = place.members()
    return {
        "url": None,
        "pid": None,
        "version": read_lock().version,
        "home": str(place.base),
        "data": str(members[0].node.data),
        "log": str(members[0].node.log),
        "java": None,
    } | ({"nodes": [asdict(member.status()) for member in members]} if len(members) > 1 else {})


def prepare(home: Path) -> Path:
    """Download and assemble for ``home``; the distribution's folder."""
    place = Place.of(home)
    with place.alone():
        return prepared(place)


def _wanted(place: Place, nodes: int | None) -> int:
    """How many nodes the home is to have.

    Raises:
        UsageError: fewer than it has.
    """
    if nodes is not None and nodes < place.size:
        raise UsageError(
            f"The OpenSearch in {place.base} has {place.size} nodes with its data spread over them, so it cannot "
            f"be made one of {nodes}: start it with langshift up, or set LANGSHIFT_HOME to another folder."
        )
    return nodes or place.size


def _complete(place: Place) -> Server | None:
    """The cluster where all its nodes run and serve."""
    server = place.server()
    if server is None:
        return None
    urls = [node.url for node in server.nodes] or [server.url]
    return server if all(url is not None and serves(url) for url in urls) else None


def _find(member: Member) -> Found:
    """A node with its process, be it one that the state file does not know, and the state that fits it."""
    state = member.state()
    process = state.process(member.node.folder)
    if process is None and (found := find_server(member.node.folder)) is not None:
        # The file was lost, or langshift was killed before it could write it.
        state = replace(found, version=read_lock().version)
        process = state.process(member.node.folder)
    return Found(member, state, process)


def _stop(nodes: Sequence[Found]) -> bool:
    """Stop the nodes that run, all at once; whether one ran."""
    processes = [node.process for node in nodes if node.process is not None]
    terminate(*processes)
    for member, state, _ in nodes:
        state.stopped().write(member.state_file)
    return bool(processes)


def _processes(members: Sequence[Member]) -> str:
    """``process 12``, ``processes 12, 13 and 14``."""
    pids = [str(member.state().pid) for member in members]
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(pids[:-1])} and {pids[-1]}"
