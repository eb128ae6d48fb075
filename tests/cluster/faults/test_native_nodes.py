"""The plugin on three nodes, of which one may lack it: a search is refused, or finds what one node finds."""

import time

import pytest
from filtered_index import ENCODER, QUERY, FilteredIndex, drawn_filters, questions
from native_agreement import Agreement
from native_plugin import packed_plugin
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError
from three_nodes import NAMES, running_with

from langshift.plugin import native
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

WITHOUT = NAMES[2]
VECTOR = ENCODER.encode_queries([QUERY])[0].tolist()
LONGEST = 20  # seconds
SEARCHES = 150
LACKS = (
    "[langshift] Nodes that hold a part of {} lack the plugin langshift, or have another version of it: {}. "
    "Install the same version on every node."
)


@pytest.fixture(scope="module")
def nodes(new_home, quick_java, pytestconfig):
    home = new_home()
    packed = packed_plugin(home, pytestconfig.cache.mkdir("langshift")).whole
    with running_with(packed, home, quick_java, *(name for name in NAMES if name != WITHOUT)) as made:
        yield made, packed


def ask(client, index, mode):
    asked = {"text": QUERY, "vector": VECTOR, "language": "en", "mode": mode}
    return client.search(index=index.name, body={"query": {"langshift": asked}, "_source": False})


def refusal(client, index, mode):
    """Status and all that is said."""
    begin = time.monotonic()
    with pytest.raises(TransportError) as refused:
        ask(client, index, mode)
    assert time.monotonic() - begin < LONGEST
    return refused.value.status_code, str(refused.value.info)


def test_a_node_without_it_is_an_error_and_with_it_all_agree(nodes):
    three, packed = nodes
    with OpenSearch(three.url(NAMES[0]), timeout=60) as client, OpenSearch(three.url(WITHOUT), timeout=60) as other:
        index = FilteredIndex(client, chunked=False, shards=3)
        assert {one["node"] for one in client.cat.shards(index=index.name, params={"format": "json"})} == set(NAMES)
        status, said = refusal(other, index, "dense")
        assert (status, "unknown query [langshift]" in said) == (400, True)
        for mode in ("anchored", "balanced", "dense"):
            status, said = refusal(client, index, mode)
            assert (status, LACKS.format(f"{index.name}-v0001", WITHOUT) in said) == (400, True)
        three.kill(WITHOUT)
        native.unpack(packed, three.plugins(WITHOUT))
        three.up()
        client.cluster.health(params={"wait_for_status": "green", "timeout": "60s", "request_timeout": 90})
        searcher = Searcher(client, index.name, opened={"toy": ENCODER})
        for mode in ("dense", "balanced", "anchored"):
            wanted = searcher.search(QUERY, SearchSettings(mode), language="en").hits
            for one in (client, OpenSearch(three.url(WITHOUT), timeout=60)):
                found = [(hit["_id"], hit["_score"]) for hit in ask(one, index, mode)["hits"]["hits"]]
                assert [name for name, _ in found] == [hit.id for hit in wanted]
                assert [score for _, score in found] == pytest.approx([hit.score for hit in wanted], abs=1e-6)
        agreement = Agreement(client, index.name, questions(), drawn_filters, opened={"toy": ENCODER})
        agreement.compare(SEARCHES)
        assert agreement.apart == []
