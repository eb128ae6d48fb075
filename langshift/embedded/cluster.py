"""Up, down and status: one cluster per home, whatever state the last one was left in."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from langshift.embedded import Server
from langshift.embedded.artifacts import assemble, is_assembled, read_lock
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import (
    ClusterMember,
    ServerHome,
    apart,
    check_folder,
    member_settings,
    single_node_settings,
)
from langshift.embedded.process import launch, log_end, terminate
from langshift.embedded.state import ServerState, find_server, is_alive
from langshift.errors import ClusterError, UsageError
from langshift.output import err, join_words, note

START_SECONDS = 180
MORE_SECONDS = 60  # for each further node: they share the processor
# A shard that is on no node makes the health red for good; nothing is waited for then.
RED_SECONDS = 10


@dataclass(frozen=True)
class RunningNode:
    """A node whose process runs, healthy or not yet."""

    member: ClusterMember
    state: ServerState
    process: psutil.Process


def wait_until_healthy(nodes: Sequence[RunningNode]) -> list[ServerState]:
    """Wait until all nodes answer, see each other, and their cluster's health is at least yellow.

    Of several nodes that restart, one may come without the only copy of a shard: where all are together
    and nothing is under way any more, a red health is said and taken.

    Returns:
        The nodes' states with their ports.

    Raises:
        ClusterError: a process died, with the end of its log, or they did not become healthy in time.
    """
    seconds = START_SECONDS + MORE_SECONDS * (len(nodes) - 1)
    deadline = time.monotonic() + seconds
    known_ports: list[int] = []
    red_since: float | None = None
    while time.monotonic() < deadline:
        for node in nodes:
            if not is_alive(node.process):
                raise ClusterError(f"{_named(node, nodes)} died while starting; {_end_of_log(node)}")
        states = [_with_ports(node) for node in nodes]
        if len(nodes) > 1:
            known_ports = _announce_ports(nodes, states, known_ports)
        health = [_health(state, len(nodes)) for state in states]
        if all(one["status"] in ("yellow", "green") for one in health):
            return states
        if len(nodes) == 1 or not all(map(_is_red_and_idle, health)):
            red_since = None
        elif time.monotonic() - (red_since := red_since or time.monotonic()) > RED_SECONDS:
            note("The cluster's health is red: an index has a shard that is on none of the nodes.")
            return states
        time.sleep(0.2)
    late = next((node for node in nodes if not _with_ports(node).ready), nodes[0])
    raise ClusterError(f"{_named(late, nodes)} did not become healthy within {seconds} seconds; {_end_of_log(late)}")


def serves(url: str) -> bool:
    """Whether the server at the address answers and is part of a cluster that can work."""
    health = _get(int(url.rpartition(":")[2]), "/_cluster/health?local=true")
    return health is not None and bool(health.get("discovered_cluster_manager"))


def _announce_ports(nodes: Sequence[RunningNode], states: Sequence[ServerState], known_ports: list[int]) -> list[int]:
    """Tell all nodes where the others listen, where that is news; returns what they know now."""
    ports = [state.transport for state in states if state.ready and state.transport]
    if ports and ports != known_ports:
        for node in nodes:
            node.member.node.write_seed_hosts(ports)
    return ports


def _health(state: ServerState, nodes: int) -> Mapping[str, Any]:
    """The cluster's health as a node tells it that sees as many nodes; else with the status "apart"."""
    wanted = f"wait_for_status=yellow&wait_for_nodes=ge({nodes})&timeout=2s&cluster_manager_timeout=2s"
    health = _get(state.port, f"/_cluster/health?{wanted}", 408) if state.ready and state.port else None
    if health is None or health.get("number_of_nodes", 0) < nodes:
        return {"status": "apart"}
    return health


def _is_red_and_idle(health: Mapping[str, Any]) -> bool:
    """Whether the health is red and nothing is under way that could end it."""
    busy = ("initializing_shards", "number_of_in_flight_fetch", "number_of_pending_tasks")
    return health["status"] == "red" and not any(health[name] for name in busy)


def _with_ports(node: RunningNode) -> ServerState:
    """The node's state, ready as soon as both of its ports are known."""
    logs = node.member.node.logs
    port, transport = _port(logs / "http.ports"), _port(logs / "transport.ports")
    if port is None or transport is None:
        return replace(node.state, ready=False)
    return replace(node.state, ready=True, port=port, transport=transport)


def _named(node: RunningNode, nodes: Sequence[RunningNode]) -> str:
    return "OpenSearch" if len(nodes) == 1 else f"OpenSearch's node {node.member.name}"


def _end_of_log(node: RunningNode) -> str:
    return f"the end of its log:\n{log_end(node.member.node, node.member.console)}"


def _get(port: int, path: str, *taken: int) -> dict[str, Any] | None:
    """Ask the server on this machine, past any proxy; None where there is no good answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        document = json.loads(body) if answer.status in (200, *taken) else None
        return document if isinstance(document, dict) else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _port(file: Path) -> int | None:
    """The port in a file that the server wrote, one address a line; None while it is not there."""
    try:
        first = file.read_text(encoding="utf-8").split()[0]
        return int(first.rpartition(":")[2])
    except (OSError, IndexError, ValueError):
        return None


class NodeRecord(NamedTuple):
    """A node as a command finds it: what is remembered of it, and its process where it runs."""

    member: ClusterMember
    state: ServerState
    process: psutil.Process | None


def start(place: ServerHome, found: Sequence[NodeRecord], settings: Mapping[str, Any]) -> None:
    """Start what does not run and wait until all is healthy; what was started here is stopped again if not.

    Args:
        place: the home.
        found: all its nodes.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError, LangshiftError: as ``up``.
    """
    running = [RunningNode(member, state, process) for member, state, process in found if process is not None]
    missing = [node for node in found if node.process is None]
    begun: list[RunningNode] = []
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


def prepared(place: ServerHome) -> Path:
    """The assembled distribution, where the server's user can read it."""
    lock = read_lock()
    folder = place.base / f"opensearch-{lock.version}"
    reachable = place.account is None or (folder.exists() and place.account.reaches(folder))
    if not (reachable and is_assembled(lock, folder)):
        # Slow to load, and needed once in a home's life.
        from langshift.embedded.artifacts import download

        assemble(lock, download(lock, place.home / "downloads"), folder)
    return folder.resolve()


def _launches(place: ServerHome, found: Sequence[NodeRecord], settings: Mapping[str, Any]) -> Iterator[RunningNode]:
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


def _settings(place: ServerHome, found: Sequence[NodeRecord]) -> Iterator[dict[str, Any]]:
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


def _launch(place: ServerHome, member: ClusterMember, last: ServerState, java: Java, nodes: int) -> RunningNode:
    """Start one node's process."""
    process = launch(member.node, java, place.account, member.console, nodes)
    runtime, version = str(java.program), read_lock().version
    state = replace(last, pid=process.pid, created=process.create_time(), ready=False, java=runtime, version=version)
    return RunningNode(member, state, process)


def _starting(found: Sequence[NodeRecord], missing: Sequence[NodeRecord]) -> str:
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


# What remains of a cluster whose manager died serves again when it has chosen another.
_ELECTION_SECONDS = 60


def up(home: Path, nodes: int | None = None, settings: Mapping[str, Any] | None = None) -> Server:
    """Return the OpenSearch of ``home``, started and healthy; download and assemble it first if need be.

    Args:
        home: langshift's folder.
        nodes: 1 or 3; None for as many as the home has, 1 where it has none. A cluster of 1 that is to have 3
            is restarted with its data. Nodes of it that died are started again.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError: a node died or did not become healthy; the end of its log follows.
        LangshiftError: a download or the home's folder failed.
        UsageError: the home's nodes are more than those.
    """
    place = ServerHome.of(home)
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
    """Return the OpenSearch of ``home`` by its first node that serves; where none does, start them all.

    Raises:
        ClusterError, LangshiftError: as ``up``.
    """
    place = ServerHome.of(home)
    deadline = time.monotonic() + _ELECTION_SECONDS
    while (server := place.server(serves)) is None:
        alive = place.server()
        majority = alive is not None and 2 * sum(node.running for node in alive.nodes) > len(alive.nodes) > 1
        if not majority or time.monotonic() > deadline:
            return up(home)
        time.sleep(0.2)
    return server


def down(home: Path) -> bool:
    """Stop the OpenSearch of ``home``, all its nodes; its data stays.

    Returns:
        Whether one ran.
    """
    place = ServerHome.of(home)
    if not any(member.node.folder.is_dir() for member in place.members()):
        return False
    with place.alone():
        return _stop([_find(member) for member in place.members()])


def status(home: Path) -> Server | None:
    """Return the running, once healthy OpenSearch of ``home`` by its first node that runs, or None.

    Nothing is started or changed.
    """
    return ServerHome.of(home).server()


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server, with the end of the log where one died."""
    begun = [member for member in ServerHome.of(home).members() if member.state().pid is not None]
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
    """What ``Server.to_dict`` gives, as far as it is known while no server runs."""
    place = ServerHome.of(home)
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
    """Download and assemble for ``home``, without starting anything; return the distribution's folder."""
    place = ServerHome.of(home)
    with place.alone():
        return prepared(place)


def _wanted(place: ServerHome, nodes: int | None) -> int:
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


def _complete(place: ServerHome) -> Server | None:
    """The cluster where all its nodes run and serve."""
    server = place.server()
    if server is None:
        return None
    urls = [node.url for node in server.nodes] or [server.url]
    return server if all(url is not None and serves(url) for url in urls) else None


def _find(member: ClusterMember) -> NodeRecord:
    """A node with its process, be it one that the state file does not know, and the state that fits it."""
    state = member.state()
    process = state.process(member.node.folder)
    if process is None and (found := find_server(member.node.folder)) is not None:
        # The file was lost, or langshift was killed before it could write it.
        state = replace(found, version=read_lock().version)
        process = state.process(member.node.folder)
    return NodeRecord(member, state, process)


def _stop(nodes: Sequence[NodeRecord]) -> bool:
    """Stop the nodes that run, all at once; whether one ran."""
    processes = [node.process for node in nodes if node.process is not None]
    terminate(*processes)
    for member, state, _ in nodes:
        state.stopped().write(member.state_file)
    return bool(processes)


def _processes(members: Sequence[ClusterMember]) -> str:
    """``process 12``, ``processes 12, 13 and 14``."""
    pids = [str(member.state().pid) for member in members]
    return f"process{'es' if len(pids) > 1 else ''} {join_words(pids)}"
