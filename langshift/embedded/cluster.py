"""Up, down and status: one cluster per home, whatever state the last one was left in."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from langshift.embedded import Server
from langshift.embedded.artifacts import assemble, is_assembled, read_lock
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import Node, ServerHome, apart, check_folder, member_settings, single_node_settings
from langshift.embedded.process import launch, log_end, terminate
from langshift.embedded.state import ServerState, find_server, is_alive
from langshift.errors import ClusterError, UsageError
from langshift.files import ensure_folder
from langshift.output import err, note
from langshift.wording import join_words

START_SECONDS = 180
MORE_SECONDS = 60  # for each further node: they share the processor
# A shard that is on no node makes the health red for good; nothing is waited for then.
RED_SECONDS = 10


class NodeRecord(NamedTuple):
    """A node as a command finds or starts it: what is remembered of it, and its process where it runs."""

    node: Node
    state: ServerState
    process: psutil.Process | None


def wait_until_healthy(nodes: Sequence[NodeRecord]) -> list[ServerState]:
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
        for record in nodes:
            if record.process is None or not is_alive(record.process):
                message = f"{_named(record, nodes)} exited while starting; the end of its log:"
                raise ClusterError(message, log=log_end(record.node))
        states = [_with_ports(record) for record in nodes]
        if len(nodes) > 1:
            known_ports = _announce_ports(nodes, states, known_ports)
        health = [_health(state, len(nodes)) for state in states]
        if all(one["status"] in ("yellow", "green") for one in health):
            return states
        if len(nodes) == 1 or not all(map(_is_red_and_idle, health)):
            red_since = None
        elif time.monotonic() - (red_since := red_since or time.monotonic()) > RED_SECONDS:
            note("The cluster's health is red: an index has a shard that is not assigned to any node.")
            return states
        time.sleep(0.2)
    late = next((record for record in nodes if not _with_ports(record).ready), nodes[0])
    message = f"{_named(late, nodes)} did not become healthy within {seconds} seconds; the end of its log:"
    raise ClusterError(message, log=log_end(late.node))


def serves(url: str) -> bool:
    """Whether the server at the address answers and is part of a cluster that can work."""
    health = _get(int(url.rpartition(":")[2]), "/_cluster/health?local=true")
    return health is not None and bool(health.get("discovered_cluster_manager"))


def _announce_ports(nodes: Sequence[NodeRecord], states: Sequence[ServerState], known_ports: list[int]) -> list[int]:
    """Tell all nodes where the others listen, where that is news; returns what they know now."""
    ports = [state.transport for state in states if state.ready and state.transport]
    if ports and ports != known_ports:
        for record in nodes:
            record.node.write_seed_hosts(ports)
    return ports


def _health(state: ServerState, nodes: int) -> Mapping[str, Any]:
    """The cluster's health as a node tells it that sees as many nodes; else with the status "apart"."""
    wanted = f"wait_for_status=yellow&wait_for_nodes=ge({nodes})&timeout=2s&cluster_manager_timeout=2s"
    health = _get(state.port, f"/_cluster/health?{wanted}", 408) if state.ready and state.port else None
    return health if health and health.get("number_of_nodes", 0) >= nodes else {"status": "apart"}


def _is_red_and_idle(health: Mapping[str, Any]) -> bool:
    """Whether the health is red and nothing is under way that could end it."""
    busy = ("initializing_shards", "number_of_in_flight_fetch", "number_of_pending_tasks")
    return health["status"] == "red" and not any(health[name] for name in busy)


def _with_ports(record: NodeRecord) -> ServerState:
    """The node's state, ready as soon as both of its ports are known."""
    port, transport = (_port(record.node.logs / f"{name}.ports") for name in ("http", "transport"))
    if port is None or transport is None:
        return replace(record.state, ready=False)
    return replace(record.state, ready=True, port=port, transport=transport)


def _named(record: NodeRecord, nodes: Sequence[NodeRecord]) -> str:
    return "OpenSearch" if len(nodes) == 1 else f"OpenSearch node {record.node.name}"


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


def start(place: ServerHome, found: Sequence[NodeRecord], settings: Mapping[str, Any]) -> None:
    """Start what does not run and wait until all is healthy; what was started here is stopped again if not.

    Args:
        place: the home.
        found: all its nodes.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError, LangshiftError: as ``up``.
    """
    missing = [record for record in found if record.process is None]
    begun: list[NodeRecord] = []
    try:
        launches = _launches(place, found, settings) if missing else iter(())
        with _spinner(_starting(found, missing)):
            for record in launches:
                begun.append(record)
                record.state.write(record.node.state_file)
            running = [record for record in found if record.process is not None]
            nodes = sorted([*running, *begun], key=lambda record: record.node.number)
            states = wait_until_healthy(nodes)
    except BaseException:  # Ctrl-C included
        _stop(begun)
        raise
    for record, state in zip(nodes, states, strict=True):
        state.write(record.node.state_file)


def prepared(place: ServerHome) -> Path:
    """The assembled distribution, where the server's user can read it."""
    lock, folder = read_lock(), _distribution(place)
    reachable = place.account is None or (folder.exists() and place.account.reaches(folder))
    if not (reachable and is_assembled(lock, folder)):
        # Slow to load, and needed once in a home's life.
        from langshift.embedded.artifacts import download

        downloads = place.home / "downloads"
        ensure_folder(downloads)
        assemble(lock, download(lock, downloads), folder)
    return folder.resolve()


def _distribution(place: ServerHome) -> Path:
    return place.base / f"opensearch-{read_lock().version}"


def _launches(place: ServerHome, found: Sequence[NodeRecord], settings: Mapping[str, Any]) -> Iterator[NodeRecord]:
    """Make the folders of the nodes that do not run; then start one process after the other."""
    check_folder(found[-1].node.folder)
    if place.account and place.base != place.home.resolve():
        note(
            f"OpenSearch cannot run as root, and the user {place.account.name} cannot access {place.home}: "
            f"its files, including the data, are in {place.base}."
        )
    distribution, java = prepared(place), choose_java(place.account)
    missing = [record for record in found if record.process is None]
    for record, ours in zip(missing, _settings(place, found), strict=True):
        record.node.lay_out(distribution, {**ours, **settings}, place.account)
    return (_launch(place, record, java, len(found)) for record in missing)


def _settings(place: ServerHome, found: Sequence[NodeRecord]) -> Iterator[dict[str, Any]]:
    """Our settings of each node that does not run."""
    if len(found) == 1:
        yield single_node_settings(found[0].state.port, found[0].state.transport)
        return
    # One that was healthy once was part of a cluster.
    forming = not any(record.state.port for record in found[1:])
    ports = apart([record.state.port for record in found], 9200)
    transports = apart([record.state.transport for record in found], 9300)
    for record, port, transport in zip(found, ports, transports, strict=True):
        if record.process is None:
            yield member_settings(record.node.name, place.base, port, transport, forming=forming)


def _launch(place: ServerHome, record: NodeRecord, java: Java, nodes: int) -> NodeRecord:
    """Start one node's process."""
    process = launch(record.node, java, place.account, nodes)
    runtime, version = str(java.program), read_lock().version
    begun = process.create_time()
    state = replace(record.state, pid=process.pid, created=begun, ready=False, java=runtime, version=version)
    return NodeRecord(record.node, state, process)


def _starting(found: Sequence[NodeRecord], missing: Sequence[NodeRecord]) -> str:
    version = read_lock().version
    if len(found) == 1:
        return f"Starting OpenSearch {version} ..."
    if len(missing) in (0, len(found)):
        return f"Starting OpenSearch {version} on {len(found)} nodes ..."
    nodes, are, them = ("node", "is", "it") if len(missing) == 1 else ("nodes", "are", "them")
    names = " and ".join(record.node.name for record in missing)
    return f"OpenSearch {nodes} {names} {are} not running; restarting {them} ..."


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
            is restarted with its data, and so is one of an earlier langshift. Nodes of it that died are started again.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError: a node died or did not become healthy; the end of its log follows.
        LangshiftError: a download or the home's folder failed.
        UsageError: the home's nodes are more than those.
    """
    place = ServerHome.of(home)
    size = _wanted(place, nodes)
    outdated = not is_assembled(read_lock(), _distribution(place))
    if not outdated and size == place.size and (server := place.server()) is not None:
        urls = [node.url for node in server.nodes] or [server.url]
        if all(url is not None and serves(url) for url in urls):
            return server
    with place.alone():
        size = _wanted(place, nodes)  # another langshift may have been at work
        outdated = outdated and not is_assembled(read_lock(), _distribution(place))
        if (outdated or size > place.size) and _stop([_find(node) for node in place.nodes()]):
            reason = "because this langshift brings another one" if outdated else "so that other nodes can join it"
            note(f"Restarting OpenSearch {reason}; its data is preserved.")
        start(place, [_find(node) for node in place.nodes(size)], settings or {})
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
    if not any(node.folder.is_dir() for node in place.nodes()):
        return False
    with place.alone():
        return _stop([_find(node) for node in place.nodes()])


def status(home: Path) -> Server | None:
    """Return the running, once healthy OpenSearch of ``home`` by its first node that runs, or None.

    Nothing is started or changed.
    """
    return ServerHome.of(home).server()


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server, with the end of the log where one died."""
    begun = [node for node in ServerHome.of(home).nodes() if node.state().pid is not None]
    alive = [node for node in begun if node.state().process(node.folder) is not None]
    if not begun:
        return "The embedded OpenSearch is not running; start it with `langshift up`."
    if alive:
        return f"The embedded OpenSearch is starting ({_processes(alive)})."
    message = (
        f"The embedded OpenSearch is not running: its {_processes(begun)} ended unexpectedly; "
        "start it again with `langshift up`; the end of its log:"
    )
    return "\n".join((message, *log_end(begun[0])))


def places(home: Path) -> dict[str, Any]:
    """What ``Server.to_dict`` gives, as far as it is known while no server runs."""
    place = ServerHome.of(home)
    nodes = place.nodes()
    return {
        "url": None,
        "pid": None,
        "version": read_lock().version,
        "home": str(place.base),
        "data": str(nodes[0].data),
        "log": str(nodes[0].log),
        "java": None,
    } | ({"nodes": [asdict(node.status()) for node in nodes]} if len(nodes) > 1 else {})


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
            f"The OpenSearch in {place.base} has its data spread over {place.size} nodes and cannot be reduced "
            f"to {nodes}: start it with `langshift up`, or set LANGSHIFT_HOME to another folder."
        )
    return nodes or place.size


def _find(node: Node) -> NodeRecord:
    """A node with its process, be it one that the state file does not know, and the state that fits it."""
    state = node.state()
    process = state.process(node.folder)
    if process is None and (found := find_server(node.folder)) is not None:
        # The file was lost, or langshift was killed before it could write it.
        state = replace(found, version=read_lock().version)
        process = state.process(node.folder)
    return NodeRecord(node, state, process)


def _stop(nodes: Sequence[NodeRecord]) -> bool:
    """Stop the nodes that run, all at once; whether one ran."""
    processes = [record.process for record in nodes if record.process is not None]
    terminate(*processes)
    for record in nodes:
        record.state.stopped().write(record.node.state_file)
    return bool(processes)


def _processes(nodes: Sequence[Node]) -> str:
    """``process 12``, ``processes 12, 13 and 14``."""
    pids = [str(node.state().pid) for node in nodes]
    return f"process{'es' if len(pids) > 1 else ''} {join_words(pids)}"
