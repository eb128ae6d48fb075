"""Fault 11: nodes are killed and restarted in the middle of a load, and a primary is lost that has no replica."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest
from fault_proxy import FaultProxy, fault_proxy
from faulty_load import FaultyLoad
from http_exchange import Exchange, Reply
from nothing_lost import write_corpus
from opensearchpy import OpenSearch
from three_nodes import NAMES, ThreeNodes

from langshift.plugin.versions import unfinished

INDEX = "news"
COUNT = 5000
PASSED = 2  # bulk requests, before something is killed
PATIENCE = 120  # seconds
NEAR, FAR, AWAY = NAMES  # the one that the load talks to, one that it does not, and one that no test kills


class Gate:
    """Lets so many bulk requests pass, and holds all others back until it is opened."""

    def __init__(self, requests: int) -> None:
        self._left, self._opened = requests, threading.Event()

    def open(self) -> None:
        """Let all pass."""
        self._opened.set()

    async def bulk(self, exchange: Exchange) -> Reply:
        """For bulk requests."""
        self._left -= 1
        while self._left < 0 and not self._opened.is_set():
            await asyncio.sleep(0.02)
        return await exchange.forward()


@pytest.fixture
def proxy(three_nodes: ThreeNodes) -> Iterator[FaultProxy]:
    with fault_proxy(three_nodes.url(NEAR)) as proxy:
        yield proxy


@pytest.fixture
def gate(proxy: FaultProxy) -> Iterator[Gate]:
    gate = Gate(PASSED)
    proxy.inject("_bulk", repeat(gate.bulk))
    yield gate
    gate.open()


@pytest.fixture
def opened(three_nodes: ThreeNodes) -> Iterator[OpenSearch]:
    with OpenSearch(three_nodes.url(AWAY), timeout=60) as client:
        yield client
        client.indices.delete(index=f"{INDEX}-v*", params={"expand_wildcards": "all"})


@pytest.fixture
def load(opened: OpenSearch, proxy: FaultProxy, tmp_path: Path) -> FaultyLoad:
    load = FaultyLoad(opened, proxy, INDEX, tmp_path)
    write_corpus(load.corpus, COUNT)
    return load


@pytest.fixture
def _pinned(opened: OpenSearch) -> Iterator[None]:
    """The load's index comes to be on the node that is going to lose it."""
    template = {"settings": {"index.routing.allocation.include._name": FAR}}
    opened.indices.put_index_template(name="pinned", body={"index_patterns": [f"{INDEX}-v*"], "template": template})
    yield
    opened.indices.delete_index_template(name="pinned")


def confirmed(load: FaultyLoad) -> list[str]:
    """The ids that the cluster has confirmed; waits until they are those that the gate lets pass."""
    deadline = time.monotonic() + PATIENCE
    while len(bulks := [bulk for bulk in load.proxy.bulks if bulk.status == 200]) < PASSED:
        assert time.monotonic() < deadline, "the load stands still"
        time.sleep(0.02)
    return [one for bulk in bulks for one in bulk.ids]


def test_fault_11_nodes_killed_and_restarted_in_the_middle(
    three_nodes: ThreeNodes, opened: OpenSearch, load: FaultyLoad, gate: Gate
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load.run)
        before = confirmed(load)
        (index,) = unfinished(opened, INDEX)
        # The node that the load talks to and the one that its documents are on; with both gone, the third, which
        # may have a copy, is no majority and takes nothing either.
        three_nodes.kill(*{NEAR, three_nodes.holder(opened, index)} - {AWAY})
        gate.open()
        three_nodes.up()
        done = running.result()

    assert load.accounted_for(done) == []
    assert "The final check" not in done.stderr
    assert 0 < len(before) < COUNT
    assert set(before).isdisjoint(load.sent()[len(before) :]), "sent again what was confirmed"
    assert None in [bulk.status for bulk in load.proxy.bulks], "no request has met a dead node"


@pytest.mark.usefixtures("_pinned")
def test_fault_11_a_primary_lost_without_a_replica_is_found_named_and_repaired(
    three_nodes: ThreeNodes, opened: OpenSearch, load: FaultyLoad, gate: Gate
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load.run, "--fast-load")
        lost = confirmed(load)
        (index,) = unfinished(opened, INDEX)
        assert three_nodes.holder(opened, index) == FAR
        uuid = opened.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
        three_nodes.kill(FAR)
        shutil.rmtree(three_nodes.data(FAR) / "nodes" / "0" / "indices" / uuid)
        gate.open()
        three_nodes.up()
        empty = {"index": index, "shard": 0, "node": FAR, "accept_data_loss": True}
        opened.cluster.reroute(body={"commands": [{"allocate_empty_primary": empty}]})
        done = running.result()

    assert load.accounted_for(done) == []
    assert 0 < len(lost) < COUNT
    told = [line for line in done.stderr.splitlines() if line.startswith("The final check")]
    first = ", ".join(map(repr, sorted(lost)[:10]))
    assert told == [
        f"The final check found that the cluster has lost {len(lost):,} documents (_id {first}, ...) "
        "that it had confirmed: writing them again."
    ]
