"""Watch starting nodes until they serve, and ask running ones whether they do."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from langshift.console import note
from langshift.embedded.place import Member
from langshift.embedded.process import log_end
from langshift.embedded.state import State, is_alive
from langshift.errors import ClusterError

START_SECONDS = 180
MORE_SECONDS = 60  # for each further node: they share the processor
# A shard that is on no node makes the health red for good; nothing is waited for then.
SETTLED_SECONDS = 10


@dataclass(frozen=True)
class Running:
    """A node whose process runs, healthy or not yet."""

    member: Member
    state: State
    process: psutil.Process


def wait_until_healthy(nodes: Sequence[Running]) -> list[State]:
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
    told: list[int] = []
    settled: float | None = None
    while time.monotonic() < deadline:
        for node in nodes:
            if not is_alive(node.process):
                raise ClusterError(f"{_named(node, nodes)} died while starting; {_end_of_log(node)}")
        states = [_with_ports(node) for node in nodes]
        if len(nodes) > 1:
            told = _tell(nodes, states, told)
        health = [_health(state, len(nodes)) for state in states]
        if all(one["status"] in ("yellow", "green") for one in health):
            return states
        if len(nodes) == 1 or not all(map(_is_settled, health)):
            settled = None
        elif time.monotonic() - (settled := settled or time.monotonic()) > SETTLED_SECONDS:
            note("The cluster's health is red: an index has a shard that is on none of the nodes.")
            return states
        time.sleep(0.2)
    late = next((node for node in nodes if not _with_ports(node).ready), nodes[0])
    raise ClusterError(f"{_named(late, nodes)} did not become healthy within {seconds} seconds; {_end_of_log(late)}")


def serves(url: str) -> bool:
    """Whether the server at the address answers and is part of a cluster that can work."""
    health = _get(int(url.rpartition(":")[2]), "/_cluster/health?local=true")
    return health is not None and bool(health.get("discovered_cluster_manager"))


def _tell(nodes: Sequence[Running], states: Sequence[State], told: list[int]) -> list[int]:
    """Tell all nodes where the others listen, where that is news; returns what they know now."""
    ports = [state.transport for state in states if state.ready and state.transport]
    if ports and ports != told:
        for node in nodes:
            node.member.node.tell_others(ports)
    return ports


def _health(state: State, nodes: int) -> Mapping[str, Any]:
    """The cluster's health as a node tells it that sees as many nodes; else with the status "apart"."""
    wanted = f"wait_for_status=yellow&wait_for_nodes=ge({nodes})&timeout=2s&cluster_manager_timeout=2s"
    health = _get(state.port, f"/_cluster/health?{wanted}", 408) if state.ready and state.port else None
    if health is None or health.get("number_of_nodes", 0) < nodes:
        return {"status": "apart"}
    return health


def _is_settled(health: Mapping[str, Any]) -> bool:
    """Whether the health is red and nothing is under way that could end it."""
    busy = ("initializing_shards", "number_of_in_flight_fetch", "number_of_pending_tasks")
    return health["status"] == "red" and not any(health[name] for name in busy)


def _with_ports(node: Running) -> State:
    """The node's state, ready as soon as both of its ports are known."""
    logs = node.member.node.logs
    port, transport = _port(logs / "http.ports"), _port(logs / "transport.ports")
    if port is None or transport is None:
        return replace(node.state, ready=False)
    return replace(node.state, ready=True, port=port, transport=transport)


def _named(node: Running, nodes: Sequence[Running]) -> str:
    return "OpenSearch" if len(nodes) == 1 else f"OpenSearch's node {node.member.name}"


def _end_of_log(node: Running) -> str:
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
