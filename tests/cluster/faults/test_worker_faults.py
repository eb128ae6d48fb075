"""A load by the workers of a Ray cluster: killed anywhere, and without its store for a while."""

import itertools
import json
import os
import time

import pytest
from fault_proxy import fault_proxy
from faults import cut_before
from many_lines import write_many_lines
from parted import GIVEN, require_became
from ray_kills import ray_options, require_same_through_kills
from ray_nodes import Nodes, loading

from langshift.plugin.inventory import drop_all

pytestmark = pytest.mark.xdist_group("ray")
KILLS = int(os.environ.get("LANGSHIFT_KILLS", "2"))


@pytest.fixture(scope="module")
def nodes():
    made = Nodes()
    yield made
    made.close()


@pytest.fixture
def index(client, index_name):
    yield index_name
    drop_all(client, index_name)


def test_killed_at_random_it_becomes_what_a_plain_load_becomes(became, cluster_url, nodes, index, tmp_path):
    lines = 60_000 if KILLS >= 20 else 20_000
    with fault_proxy(cluster_url) as proxy:
        require_same_through_kills(became, proxy, nodes, index, tmp_path, min(KILLS, 20), lines)


def test_a_store_that_stays_away_for_a_while_is_waited_for(became, cluster_url, store, nodes, index, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 6000)
    plain, state = became(corpus, options=GIVEN), store.uri("state")
    back, seen = [0.0], set()

    async def away(exchange):
        for point in ("corpus.jsonl", "state/attempts", "state/parts/0", "state/parts/late", "state/making"):
            if point in exchange.path and point not in seen and exchange.method in ("GET", "PUT"):
                seen.add(point)
                back[0] = time.monotonic() + 10
        return await (cut_before(exchange) if time.monotonic() < back[0] else exchange.forward())

    store.put("corpus.jsonl", corpus.read_bytes())
    store.proxy.inject("", itertools.repeat(away))
    load = (store.uri("corpus.jsonl"), *ray_options(index, state, nodes))
    with loading(*load, OPENSEARCH_URL=cluster_url) as running:
        out, err = running.communicate(timeout=600)
    assert running.returncode == 3, err
    assert len(seen) == 5
    documents, letters, made = became.left(index, state)
    letters = [one._replace(corpus=str(corpus)) for one in letters]
    require_became(json.loads(out), (documents, letters, made), plain)
