"""The embedded OpenSearch as a cluster of three nodes: formed, one node killed and brought back, stopped, refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from command_line import langshift, refusal
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError
from three_nodes import NAMES, ThreeNodes, long_form

from langshift import embedded
from langshift.client import embedded_url
from langshift.settings import Settings

pytestmark = long_form


@pytest.fixture
def opened(three_nodes: ThreeNodes) -> Iterator[OpenSearch]:
    """A client of the last node."""
    with OpenSearch(three_nodes.url(NAMES[2]), timeout=PATIENCE) as client:
        yield client


PATIENCE = 180  # seconds, for a machine with much else to do


def green(client: OpenSearch, **index: str) -> dict[str, Any]:
    """The cluster's or an index's health once it is green; the server itself waits no longer than half a minute."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found: dict[str, Any] = client.cluster.health(params={"wait_for_status": "green"}, **index)
        except TransportError as error:
            found = error.info
        if found["status"] == "green" or time.monotonic() > deadline:
            return found


def home(three_nodes: ThreeNodes) -> dict[str, str]:
    return {"LANGSHIFT_HOME": str(three_nodes.home)}


def settings(three_nodes: ThreeNodes) -> Settings:
    return Settings.from_env(home(three_nodes))


def test_three_processes_of_this_machine_are_one_cluster(three_nodes: ThreeNodes, opened: OpenSearch) -> None:
    server = embedded.status(three_nodes.home)
    assert server is not None
    assert [node.name for node in server.nodes] == list(NAMES)
    assert (server.url, server.pid) == (server.nodes[0].url, server.nodes[0].pid)
    assert len({node.pid for node in server.nodes}) == 3
    health = green(opened)
    assert (health["number_of_nodes"], health["status"]) == (3, "green")
    for node in server.nodes:
        listening = [c.laddr.ip for c in psutil.Process(node.pid).net_connections("tcp") if c.status == "LISTEN"]
        assert set(listening) <= {"127.0.0.1", "::ffff:127.0.0.1"}
    done = langshift("status", "--json", **home(three_nodes))
    assert json.loads(done.stdout) == {"running": True, **server.to_dict()}
    assert json.loads(done.stdout)["nodes"][1] == {
        "name": "langshift-2",
        "url": server.nodes[1].url,
        "pid": server.nodes[1].pid,
        "running": True,
    }
    urls = ", ".join(str(node.url) for node in server.nodes)
    for command in (("status",), ("up",), ("up", "--nodes", "3")):
        done = langshift(*command, **home(three_nodes))
        assert (done.returncode, done.stdout) == (0, f"OpenSearch 3.6.0 is running at {urls}\n")


def test_every_node_refuses_foreign_pages_and_keeps_its_files_to_itself(three_nodes: ThreeNodes) -> None:
    for name, node in three_nodes.nodes().items():
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            with pytest.raises(HTTPError) as caught:
                urlopen(Request(str(node.url), headers=headers), timeout=PATIENCE)
            assert caught.value.code == 403
            caught.value.close()
        folder = three_nodes.data(name).parent
        kept = [folder / one for one in ("config", "data", "logs", "tmp")]
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o700}
        assert not any(path.stat().st_mode & 0o077 for path in (folder / "logs").iterdir())


def test_it_cannot_be_made_one_of_another_size(three_nodes: ThreeNodes) -> None:
    done = langshift("up", "--nodes", "1", **home(three_nodes))
    assert done.returncode == 2
    assert refusal(done) == (
        f"The OpenSearch in {embedded.places(three_nodes.home)['home']} has its data spread over 3 nodes and "
        "cannot be reduced to 1: start it with `langshift up`, or set LANGSHIFT_HOME to another folder."
    )


def test_a_killed_node_leaves_the_others_serving_and_comes_back(
    three_nodes: ThreeNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    before = three_nodes.nodes()
    with OpenSearch(three_nodes.url(NAMES[0]), timeout=PATIENCE) as client:
        client.indices.create(index="kept", body={"settings": {"number_of_shards": 3, "number_of_replicas": 1}})
        green(client, index="kept")
        for number in range(20):
            client.index(index="kept", id=str(number), body={"n": number})
    three_nodes.kill(NAMES[0])

    # Other commands go to the first node that serves, and start nothing; of the two that are left, either may be the
    # first to know the new manager.
    assert embedded_url(settings(three_nodes)) in {before[name].url for name in NAMES[1:]}
    server = embedded.status(three_nodes.home)
    assert server is not None
    assert (server.url, server.pid) == (before[NAMES[1]].url, before[NAMES[1]].pid)
    assert [node.running for node in server.nodes] == [False, True, True]
    done = langshift("status", **home(three_nodes))
    assert done.stdout == (
        f"OpenSearch 3.6.0 is running at {before[NAMES[1]].url}, {before[NAMES[2]].url}, "
        "but its node langshift is not running: langshift up starts it again\n"
    )
    with OpenSearch(server.url, timeout=PATIENCE) as client:
        client.index(index="kept", id="20", body={"n": 20})
        client.indices.refresh(index="kept")
        assert client.count(index="kept")["count"] == 21

    done = langshift("up", **home(three_nodes))
    assert done.returncode == 0, done
    assert "OpenSearch node langshift is not running; restarting it ...\n" in done.stderr
    after = three_nodes.nodes()
    assert [after[name] for name in NAMES[1:]] == [before[name] for name in NAMES[1:]]
    assert after[NAMES[0]].pid != before[NAMES[0]].pid
    with OpenSearch(three_nodes.url(NAMES[0]), timeout=PATIENCE) as client:
        health = green(client, index="kept")
        assert (health["number_of_nodes"], health["status"]) == (3, "green")
        assert client.count(index="kept")["count"] == 21


def test_down_stops_all_and_the_data_stays(three_nodes: ThreeNodes, opened: OpenSearch) -> None:
    opened.index(index="stays", id="1", body={"n": 1})
    processes = [psutil.Process(node.pid) for node in three_nodes.nodes().values()]
    assert langshift("down", **home(three_nodes)).stdout == "OpenSearch is stopped. Its data is kept.\n"
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)
    done = langshift("status", "--json", **home(three_nodes))
    told = json.loads(done.stdout)
    assert (done.returncode, told["running"], told["url"]) == (1, False, None)
    assert told["nodes"] == [{"name": name, "url": None, "pid": None, "running": False} for name in NAMES]

    # Without the option: what is there is started.
    server = embedded.up(three_nodes.home)
    assert [node.running for node in server.nodes] == [True, True, True]
    with OpenSearch(server.url, timeout=PATIENCE) as client:
        assert client.get(index="stays", id="1")["_source"] == {"n": 1}
