"""Start the nodes of a home that do not run, and wait until all of them serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from langshift.console import err, note
from langshift.embedded.configuration import apart, member_settings, single_node_settings
from langshift.embedded.distribution import assemble, is_assembled
from langshift.embedded.health import Running, wait_until_healthy
from langshift.embedded.java import Java, choose_java
from langshift.embedded.lock import read_lock
from langshift.embedded.node import check_folder
from langshift.embedded.place import Member, Place
from langshift.embedded.process import launch, terminate
from langshift.embedded.state import State


class Found(NamedTuple):
    """A node as a command finds it: what is remembered of it, and its process where it runs."""

    member: Member
    state: State
    process: psutil.Process | None


def start(place: Place, found: Sequence[Found], settings: Mapping[str, Any]) -> None:
    """Start what does not run and wait until all is healthy; what was started here is stopped again if not.

    Args:
        place: the home.
        found: all its nodes.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError, LangshiftError: as :func:`langshift.embedded.up`.
    """
    running = [Running(member, state, process) for member, state, process in found if process is not None]
    missing = [node for node in found if node.process is None]
    begun: list[Running] = []
    try:
        launches = _launches(place, found, settings) if missing else iter(())
        with _spinner(_starting(found, missing)):
            for node in launches:
                begun.append(node)
                node.state.write(node.member.state_file)
            nodes = sorted([*running, *begun], key=lambda node: node.member.number)
            states = wait_until_healthy(nodes)
    except BaseException:  # Ctrl-C included
        terminate(*(node.process for node in begun))
        for node in begun:
            node.state.stopped().write(node.member.state_file)
        raise
    for node, state in zip(nodes, states, strict=True):
        state.write(node.member.state_file)


def prepared(place: Place) -> Path:
    """The assembled distribution, where the server's user can read it."""
    lock = read_lock()
    folder = place.base / f"opensearch-{lock.version}"
    reachable = place.account is None or (folder.exists() and place.account.reaches(folder))
    if not (reachable and is_assembled(lock, folder)):
        # Slow to load, and needed once in a home's life.
        from langshift.embedded.download import download

        assemble(lock, download(lock, place.home / "downloads"), folder)
    return folder.resolve()


def _launches(place: Place, found: Sequence[Found], settings: Mapping[str, Any]) -> Iterator[Running]:
    """Make the folders of the nodes that do not run; then start one process after the other."""
    check_folder(found[-1].member.node.folder)
    if place.account and place.base != place.home.resolve():
        note(
            f"OpenSearch cannot run as root, and the user {place.account.name} cannot reach {place.home}: "
            f"its files, the data included, are in {place.base}."
        )
    distribution, java = prepared(place), choose_java(place.account)
    missing = [node for node in found if node.process is None]
    for node, ours in zip(missing, _settings(place, found), strict=True):
        node.member.node.lay_out(distribution, {**ours, **settings}, place.account)
    return (_launch(place, member, state, java, len(found)) for member, state, _ in missing)


def _settings(place: Place, found: Sequence[Found]) -> Iterator[dict[str, Any]]:
    """Our settings of each node that does not run."""
    if len(found) == 1:
        yield single_node_settings(found[0].state.port, found[0].state.transport)
        return
    # One that was healthy once was part of a cluster.
    forming = not any(node.state.port for node in found[1:])
    ports = zip(
        apart([node.state.port for node in found], 9200),
        apart([node.state.transport for node in found], 9300),
        strict=True,
    )
    for node, (port, transport) in zip(found, ports, strict=True):
        if node.process is None:
            yield member_settings(node.member.name, place.base, port, transport, forming=forming)


def _launch(place: Place, member: Member, last: State, java: Java, nodes: int) -> Running:
    """Start one node's process."""
    process = launch(member.node, java, place.account, member.console, nodes)
    state = State(
        pid=process.pid,
        created=process.create_time(),
        port=last.port,
        transport=last.transport,
        java=str(java.program),
        version=read_lock().version,
    )
    return Running(member, state, process)


def _starting(found: Sequence[Found], missing: Sequence[Found]) -> str:
    version = read_lock().version
    if len(found) == 1:
        return f"Starting OpenSearch {version} ..."
    if len(missing) in (0, len(found)):
        return f"Starting OpenSearch {version} on {len(found)} nodes ..."
    names = " and ".join(node.member.name for node in missing)
    if len(missing) == 1:
        return f"OpenSearch's node {names} was not running; starting it again ..."
    return f"OpenSearch's nodes {names} were not running; starting them again ..."


@contextmanager
def _spinner(message: str) -> Iterator[None]:
    if err.is_terminal:
        with err.status(message):
            yield
    else:
        note(message)
        yield
