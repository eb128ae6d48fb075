"""One node that becomes three, and a forming that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from command_line import langshift
from opensearchpy import OpenSearch
from three_nodes import long_form

from langshift import embedded
from langshift.embedded import cluster
from langshift.embedded.state import find_server
from langshift.errors import ClusterError

NewHome = Callable[..., Path]
pytestmark = long_form


def test_one_node_becomes_three_with_its_data(new_home: NewHome) -> None:
    home = new_home()
    before = embedded.up(home)
    assert before.nodes == ()
    with OpenSearch(before.url, timeout=60) as client:
        client.index(index="kept", id="1", body={"n": 1})
        uuid = client.info()["cluster_uuid"]
    done = langshift("up", "--nodes", "3", LANGSHIFT_HOME=str(home))
    assert done.returncode == 0, done
    assert [line for line in done.stderr.splitlines() if not line.startswith("OPENSEARCH_URL")] == [
        "Restarting OpenSearch so that other nodes can join it; its data is preserved.",
        "Starting OpenSearch 3.6.0 on 3 nodes ...",
    ]
    assert not psutil.pid_exists(before.pid) or psutil.Process(before.pid).status() == psutil.STATUS_ZOMBIE
    after = embedded.status(home)
    assert after is not None
    assert after.url == before.url
    assert after.data == before.data
    for node in after.nodes:
        with OpenSearch(str(node.url), timeout=60) as client:
            assert client.info()["cluster_uuid"] == uuid
            assert client.get(index="kept", id="1")["_source"] == {"n": 1}
            assert client.cluster.health()["number_of_nodes"] == 3
    embedded.down(home)


def test_of_a_forming_that_fails_no_process_stays(new_home: NewHome) -> None:
    home = new_home()
    with pytest.raises(ClusterError) as caught:
        cluster.up(home, 3, {"no.such.setting": 1})
    sentence, _, log = str(caught.value).partition("\n")
    names = ("langshift", "langshift-2", "langshift-3")
    assert sentence in {f"OpenSearch node {name} exited while starting; the end of its log:" for name in names}
    assert "unknown setting [no.such.setting]" in log
    assert embedded.status(home) is None
    base = Path(embedded.places(home)["home"])
    assert [find_server(base / folder) for folder in ("node", "node-2", "node-3")] == [None, None, None]
