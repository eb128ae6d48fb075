"""Text alone: the plugin asks the endpoint that the node's settings name for the vector of a query."""

import os
import re

import pytest
from documents import DOCS, blocks, in_shell, run
from embeddings_server import embeddings_server, vector
from model_http import reply
from native_plugin import encoder_port, hits_of, index_of_texts
from opensearchpy.exceptions import TransportError


@pytest.fixture(scope="module")
def server(client):
    port = encoder_port(client)
    if port is None:
        pytest.skip("the cluster does not have the plugin langshift with an endpoint of the tests")
    with embeddings_server(port) as running:
        yield running


@pytest.fixture(scope="module")
def index(client):
    with index_of_texts(client) as name:
        yield name


def search(client, index, **query):
    return client.search(index=index, body={"query": {"langshift": query}, "_source": False})


def test_text_alone_is_enough(client, index, server):
    given = hits_of(search(client, index, vector=vector("query: the tide").tolist()))
    assert hits_of(search(client, index, text="the tide")) == given
    assert server.asked[-1] == ["query: the tide"]
    asked = len(server.asked)
    assert hits_of(search(client, index, text="the tide", language="de", prefer_language=0.5)) != given
    assert len(server.asked) == asked


def whole_answer(client, index, **asked):
    """What the plugin's own search answers."""
    return client.transport.perform_request("POST", f"/_plugins/_langshift/{index}/search", body=asked)


def test_text_alone_is_enough_for_a_whole_answer(client, index, server):
    given = vector("query: the sea").tolist()
    how = {"text": "the sea", "mode": "hybrid", "explain": True}
    alone, beside = whole_answer(client, index, **how), whole_answer(client, index, vector=given, **how)
    assert alone | {"took": 0} == beside | {"took": 0}
    server.faults += [reply(500, {"error": "secret"})] * 4
    with pytest.raises(TransportError) as refused:
        whole_answer(client, index, text="an error of a whole answer")
    server.faults.clear()
    wanted = "[langshift] The endpoint of the encoder toy answered with status 500."
    assert (refused.value.status_code, refused.value.info["error"]["reason"]) == (502, wanted)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("kind", ["sh", "python", "js"])
def test_the_pages_clients_find_the_same_by_a_text_alone(client, cluster_env, index, tmp_path, kind):
    wanted = search(client, index, vector=vector("query: Warum steigt das Meer?").tolist())["hits"]["hits"][:5]
    if kind == "js":
        installed = in_shell("npm install --silent @opensearch-project/opensearch@3", tmp_path)
        if installed.returncode and "CI" not in os.environ:
            pytest.skip(f"OpenSearch's client for Node cannot be installed here: {installed.stderr}")
    (shown,) = (block.text for block in blocks(DOCS / "plugin.md") if block.kind == kind)
    printed = run(kind, re.sub(r"\bnews\b", index, shown), tmp_path, OPENSEARCH_URL=cluster_env)
    assert re.findall(r"\bd\d+\b", printed) == [hit["_id"] for hit in wanted]


def cut(handler, _):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data":')
    handler.wfile.flush()
    handler.close_connection = True


def embedding(numbers):
    return reply(200, {"data": [{"index": 0, "embedding": numbers}]})


NO_VECTOR = "answered with something else than a vector of 12 finite numbers"
NO_ANSWER = "did not answer, or with more than 1 MB"
FAULTS = {
    "an error": (reply(500, {"error": "secret"}), "answered with status 500"),
    "a redirect": (reply(302, {}, Location="http://127.0.0.1:9/"), "answered with status 302"),
    "no JSON": (reply(200, b"secret"), NO_VECTOR),
    "no vector": (reply(200, {"data": []}), NO_VECTOR),
    "another dimension": (embedding([1.0] * 11), NO_VECTOR),
    "no numbers": (embedding(["secret"] * 12), NO_VECTOR),
    "too large numbers": (embedding([1e300] * 12), NO_VECTOR),
    "too much": (reply(200, b" " * (2 << 20)), NO_ANSWER),
    "a part": (cut, NO_ANSWER),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_endpoint_that_fails_is_a_bad_gateway(client, index, server, fault):
    answer, wanted = FAULTS[fault]
    # The client asks again after such an answer.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "always", answer)
        assert refusal(client, index, fault) == (502, f"[langshift] The endpoint of the encoder toy {wanted}.")
    assert search(client, index, text=fault)["hits"]["hits"]


def test_an_endpoint_that_hangs_is_not_waited_for(client, index, server, monkeypatch):
    monkeypatch.setattr(server, "pause", 4)
    wanted = "[langshift] The endpoint of the encoder toy did not answer within 2s."
    assert refusal(client, index, "hangs") == (502, wanted)


def test_a_vector_of_zeros_is_near_nothing(client, index, server):
    server.faults.append(embedding([0.0] * 12))
    wanted = "[langshift] The vector of the query is all zeros, so no document is near it."
    assert refusal(client, index, "nothing") == (400, wanted)


def refusal(client, index, text):
    """Status and sentence."""
    with pytest.raises(TransportError) as refused:
        client.transport.perform_request(
            "POST", f"/{index}/_search", body={"query": {"langshift": {"text": text}}}, params={"request_timeout": 20}
        )
    return refused.value.status_code, refused.value.info["error"]["root_cause"][0]["reason"]
