"""What a node is told: its settings, its ports, its memory."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GIB = 1 << 30
FIRST = "langshift"  # the name of a home's first node

COMMON = {
    "network.host": "127.0.0.1",
    # The server takes a free port itself, so that nobody can come between, and writes which.
    "node.portsfile": True,
    # The native libraries of faiss are in no package registry, and an index that needs them ends the node.
    "node.attr.langshift_native": "false",
    # By default a disk that is nine tenths full takes no new index, however much is free on it.
    "cluster.routing.allocation.disk.watermark.low": "2gb",
    "cluster.routing.allocation.disk.watermark.high": "1gb",
    "cluster.routing.allocation.disk.watermark.flood_stage": "500mb",
}


def single_node_settings(port: int | None, transport: int | None) -> dict[str, Any]:
    """Settings of a node of its own that listens on this machine only.

    Args:
        port: HTTP port to prefer, or None; where it is taken, the first free one from 9200.
        transport: transport port to prefer, or None; likewise from 9300.
    """
    return {
        "cluster.name": "langshift",
        "node.name": FIRST,
        "discovery.type": "single-node",
        "http.port": port_range(port, 9200),
        "transport.port": port_range(transport, 9300),
        **COMMON,
    }


def member_settings(name: str, base: Path, port: int | None, transport: int | None, *, forming: bool) -> dict[str, Any]:
    """Settings of one node of several that listen on this machine only.

    Args:
        name: the node's name.
        base: the folder of all nodes.
        port: HTTP port to prefer, or None; as for a single node.
        transport: transport port to prefer, or None; likewise.
        forming: whether no other node was ever part of the cluster. The first node, and it alone, then
            begins one if its folder holds none, so that two can never be begun; the others join it.
    """
    return {
        # Another home's nodes may listen where ours did: the name keeps the clusters apart.
        "cluster.name": f"langshift-{hashlib.sha256(os.fsencode(base)).hexdigest()[:12]}",
        "node.name": name,
        # Which ports the others got is known only once they run: it is read from a file again and again.
        "discovery.seed_hosts": [],
        "discovery.seed_providers": ["file"],
        # Those ports are written once this wait for the others is over: none.
        "discovery.initial_state_timeout": "0s",
        **({"cluster.initial_cluster_manager_nodes": [FIRST]} if forming and name == FIRST else {}),
        "http.port": port_range(port, 9200),
        "transport.port": port_range(transport, 9300),
        **COMMON,
    }


def heap(memory: int, nodes: int = 1) -> tuple[int, int]:
    """Smallest and largest heap of a node in MiB.

    Args:
        memory: of the machine, in bytes.
        nodes: how many share the machine. One has an eighth of it, 0.5 to 2 GiB; each of several has a
            twelfth, 384 to 700 MiB.
    """
    if nodes == 1:
        return 512, min(max(memory // 8, GIB // 2), 2 * GIB) >> 20
    high = min(max((memory // 12) >> 20, 384), 700)
    return min(512, high), high


def apart(last: Sequence[int | None], first: int) -> list[int | None]:
    """Ports for nodes to prefer that start at once: they would take each other's if all began at the first.

    Args:
        last: the port that each node had; None where it had none.
        first: the first of a hundred ports.

    Returns:
        For each node the one that it had, or a free one that is no other's; None where all are taken.
    """
    chosen: list[int | None] = []
    for port in last:
        free = (p for p in range(first, first + 100) if p not in last and p not in chosen and _is_free(p))
        chosen.append(port if port is not None and _is_free(port) else next(free, None))
    return chosen


def port_range(preferred: int | None, first: int) -> str:
    """The ports that a server may take, in their order: a hundred, beginning at the preferred one if free."""
    last = first + 99
    if preferred is None or not first <= preferred <= last or not _is_free(preferred):
        preferred = first
    return f"{preferred}-{last}"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does: connections of the last one that still linger do not hinder.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
