"""A node of three dies while people search and a retune is under way; the index has a replica.

Whoever searches knows all three nodes and asks another where one does not answer, as client libraries do by themselves.
The retune talks to one node.
"""

import pytest
from busy_index import Searcher, busy
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from retuned_index import live, require_tidy
from shifted_index import Corpus, language_vectors, require_vectors, saved
from three_nodes import NAMES

from langshift.client import make_client
from langshift.errors import LangshiftError
from langshift.plugin.retune import RetuneRequest, retune
from langshift.plugin.transfer import reindex_tasks
from langshift.settings import Settings

INDEX = "retuned"
NEAR, FAR, AWAY = NAMES  # the one that the retune talks to, and those that hold the index
KNOWN = language_vectors()
EACH = 100  # documents of each of eight languages
SLOW = 50  # documents a second, so that a node dies in the middle of it
PATIENCE, SHORT = 120, 5


@pytest.fixture
def service(three_nodes):
    """A client as a service has it: all nodes, and another one where one does not answer."""
    with OpenSearch(
        [three_nodes.url(name) for name in NAMES], timeout=60, retry_on_timeout=True, max_retries=5
    ) as made:
        yield made


def wait_for_replicas(client, index):
    """Until each copy of an index is where it belongs: whoever loses the only one has to wait for its node."""
    params = {"wait_for_status": "green", "wait_for_no_relocating_shards": "true", "timeout": "60s"}
    # The client takes a parameter of that name for its own, unless it has another.
    assert not client.cluster.health(index=index, params={**params, "request_timeout": 70})["timed_out"]


@pytest.fixture
def corpus(three_nodes, service, tmp_path, monkeypatch):
    """An index with a replica on two of the nodes."""
    monkeypatch.setenv("OPENSEARCH_URL", three_nodes.url(NEAR))
    made = Corpus(tmp_path, EACH)
    try:
        made.ingest(INDEX, "--vectors", saved(tmp_path, KNOWN), "--alpha", 0.5)
        settings = {
            "auto_expand_replicas": "false",
            "number_of_replicas": 1,
            "routing.allocation.include._name": f"{FAR},{AWAY}",
            # Not to wait a minute for a node that is gone.
            "unassigned.node_left.delayed_timeout": "0s",
        }
        service.indices.put_settings(index=INDEX, body={"index": settings})
        wait_for_replicas(service, INDEX)
        yield made
    finally:
        three_nodes.up()
        service.indices.delete(index=f"{INDEX}-v*", params={"expand_wildcards": "all"})


class Kill:
    """A watch that kills a node when a part is copied."""

    def __init__(self, three_nodes, which):
        self._three_nodes, self._which, self.killed = three_nodes, which, None

    def __call__(self, progress):
        if self.killed is None and progress.stage == "copying" and progress.done:
            self.killed = self._which()
            self._three_nodes.kill(self.killed)


def begin(url, watch, patience):
    with make_client(Settings.from_env(), url) as client:
        return retune(client, INDEX, RetuneRequest(alpha=1.0), throttle=SLOW, patience=patience, watch=watch)


@pytest.mark.parametrize("index", [f"{INDEX}-v0001", f"{INDEX}-v0002"], ids=["live version", "new version"])
def test_a_node_dies_that_holds_the_primary_of_either_version(three_nodes, service, corpus, index):
    searchers = [Searcher(service, INDEX, number) for number in range(3)]

    def holder():
        # Of both versions, as the node may hold the primary of either.
        wait_for_replicas(service, f"{INDEX}-v*")
        return three_nodes.holder(service, index)

    kill = Kill(three_nodes, holder)
    with busy(*(one.search for one in searchers)):
        done = begin(three_nodes.url(NEAR), kill, PATIENCE)
    assert kill.killed in (FAR, AWAY)
    assert done.index == live(service, INDEX) == f"{INDEX}-v0002"
    require_vectors(service, INDEX, corpus, KNOWN, 1.0)
    require_tidy(service, INDEX)
    assert all(one.versions == {f"{INDEX}-v0001", f"{INDEX}-v0002"} for one in searchers)
    print(f"\n{sum(one.answers for one in searchers):,} searches; blocked for {done.blocked:.2f} s")


def test_the_node_dies_that_the_retune_talks_to_and_that_copies(three_nodes, service, corpus):
    searchers = [Searcher(service, INDEX, number) for number in range(3)]

    def copier():
        (task,) = reindex_tasks.running(service, f"{INDEX}-v0002")
        return service.nodes.info(node_id=task.partition(":")[0])["nodes"][task.partition(":")[0]]["name"]

    kill = Kill(three_nodes, copier)
    with busy(*(one.search for one in searchers)):
        with pytest.raises((LangshiftError, OpenSearchException)):
            begin(three_nodes.url(NEAR), kill, SHORT)
        assert kill.killed == NEAR
        assert live(service, INDEX) == f"{INDEX}-v0001"
        require_vectors(service, INDEX, corpus, KNOWN, 0.5)
        # The same command to another node goes on.
        done = begin(three_nodes.url(FAR), lambda _: None, PATIENCE)
    assert done.index == live(service, INDEX) == f"{INDEX}-v0002"
    require_vectors(service, INDEX, corpus, KNOWN, 1.0)
    require_tidy(service, INDEX)
    print(f"\n{sum(one.answers for one in searchers):,} searches; blocked for {done.blocked:.2f} s")
