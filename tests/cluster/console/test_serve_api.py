"""The interface of ``langshift serve --api``: the same answers as the command's, errors as JSON, tokens, metrics."""

import base64
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import repeat

import httpx
import msgspec
import numpy as np
import pytest
from console_process import serving, serving_here
from embeddings_server import embeddings_server
from fault_proxy import fault_proxy
from faults import delayed, whole
from model_http import cut
from opensearchpy.exceptions import TransportError
from reranking_server import reranking_server
from same_answer import require_same
from searched import TEXTS, an_index, documents
from searched_index import WITHOUT_WEIGHTS
from server_words import Refusal, pressed

from langshift.debias.detector import open_detector
from langshift.debias.encoders import embeddings_api, open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin.inventory import searchable, versions_of
from langshift.retrieval.request import SearchSettings, read_arguments
from langshift.retrieval.searcher import Searcher
from langshift.web.api.contract import ErrorAnswer, IndicesAnswer, SearchAnswer
from langshift.web.api.errors import STATUS
from langshift.web.api.service import AT_ONCE

WORDS = "why does the sea rise"
# That a test waits at most.
SECONDS = 60
SETTING = ("mode", "prefer_language", "one_per_group", "rerank")


@pytest.fixture(scope="module")
def index(client, tmp_path_factory):
    with an_index(client, tmp_path_factory.mktemp("corpus")) as name:
        yield name


@pytest.fixture(scope="module")
def api(cluster_url, tmp_path_factory):
    """A client of the interface."""
    home = tmp_path_factory.mktemp("home")
    with serving_here("--api", "--metrics", url=cluster_url, home=home) as console, console.client() as asking:
        yield asking


def problem(answer):
    """The status and the code of an error, which has a sentence and names its request."""
    error = msgspec.json.decode(answer.content, type=ErrorAnswer).error
    assert answer.headers["content-type"] == "application/json"
    assert error.message.endswith(".")
    assert error.request_id == answer.headers["x-request-id"]
    assert answer.status_code == STATUS[error.code]
    return answer.status_code, error.code


CASES = [{"mode": mode} for mode in WITHOUT_WEIGHTS] + [
    {"mode": "hybrid", "prefer_language": 0.02, "explain": True},
    {"one_per_group": True, "filters": {"year": {"gte": 1990, "lt": 1995}, "language": ["en", "th"]}},
    {"mode": "lexical", "sort": "year:desc", "facets": ["language", "year"], "size": 3},
    {"dsl_filter": {"range": {"year": {"lt": 1993}}}, "fields": ["year"], "snippets": True, "language": "en-GB"},
    {"rerank": "features", "size": 4},
]


@pytest.mark.parametrize("case", CASES, ids=json.dumps)
def test_a_search_answers_as_the_command_does(client, api, index, case):
    setting = read_arguments(SearchSettings, **{name: value for name, value in case.items() if name in SETTING})
    rest = {name: value for name, value in case.items() if name not in SETTING}
    wanted = json.loads(json.dumps(Searcher(client, index).search(WORDS, setting, **rest).to_dict()))
    answer = api.post("/api/search", json={"index": index, "query": WORDS, **case})
    assert answer.status_code == 200, answer.text
    # Nothing is left out of the description, and nothing is in it that is not answered.
    read = msgspec.json.decode(answer.content, type=SearchAnswer)
    assert msgspec.json.decode(msgspec.json.encode(read)) == answer.json()
    # Another process has encoded the query: a reranker multiplies what its cosines differ by.
    require_same(answer.json() | {"took": 0}, wanted | {"took": 0}, within=1e-4 if "rerank" in case else 1e-6)


def test_a_vector_is_searched_with_as_it_is_given(client, api, index):
    vector = open_encoder("use-m").encode_queries(["how is bread baked"])[0].tolist()
    asked = {"index": index, "query": WORDS, "mode": "dense", "vector": vector, "explain": True}
    answer = api.post("/api/search", json=asked)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    wanted = Searcher(client, index).search("how is bread baked", read_arguments(SearchSettings, mode="dense"))
    assert [hit["id"] for hit in found["hits"]] == [hit.id for hit in wanted.hits]
    assert "dimension 3" in api.post("/api/search", json=asked | {"vector": [1, 2, 3]}).json()["error"]["message"]


def test_pages_follow_each_other(api, index):
    first = api.post("/api/search", json={"index": index, "query": WORDS, "from": 0, "size": 4}).json()
    rest = {"from": 4, "point_in_time": first["point_in_time"]}
    second = api.post("/api/search", json={"index": index, "query": WORDS, "size": 4, **rest}).json()
    assert sorted(hit["id"] for page in (first, second) for hit in page["hits"]) == sorted(TEXTS)


def test_indices_are_listed(api, index):
    listed = msgspec.json.decode(api.get("/api/indices").content, type=IndicesAnswer).indices
    (found,) = (one for one in listed if one.name == index)
    assert (found.version, found.documents, found.encoder) == (f"{index}-v0001", 6, "use-m")
    assert found.languages == {"en": 2, "de": 2, "th": 2}


def test_one_that_cannot_be_searched_keeps_no_other_from_the_list(client, api, index):
    broken, closed, live = f"{index}-broken", f"{index}-closed", client.indices.get(index=index)[f"{index}-v0001"]
    versions = [f"{broken}-v0001", f"{broken}-v0002", f"{closed}-v0001"]
    settings = {"knn": True, "analysis": live["settings"]["index"]["analysis"]}
    try:
        for version in versions:
            body = {"mappings": live["mappings"], "settings": {"index": settings}}
            client.indices.create(index=version, body=body | {"aliases": {version.rpartition("-")[0]: {}}})
        assert names(api) & {index, broken, closed} == {index, closed}
        client.indices.close(index=versions[-1])
        assert names(api) & {index, broken, closed} == {index}
    finally:
        client.indices.delete(index=versions, params={"ignore_unavailable": "true"})


def names(api):
    """Those of the indices that are listed."""
    return {one["name"] for one in api.get("/api/indices").json()["indices"]}


def test_shards_that_are_away_shorten_the_list_and_a_cluster_that_has_too_much_ends_it(client, proxy, through, index):
    away = Refusal(503, {"type": "search_phase_execution_exception", "reason": "all shards failed"})
    proxy.inject(f"{index}-v0001/_search", [whole(away), whole(away), whole(pressed())])
    versions = versions_of(client, index)
    assert searchable(through, versions) == []
    with pytest.raises(TransportError, match="429"):
        searchable(through, versions)
    assert [one.name for one in searchable(through, versions)] == [index]


@pytest.mark.parametrize("of", ["use-m", "index"])
def test_embeddings_are_what_a_plain_request_searches_with(client, api, index, of):
    texts = [WORDS, "Warum steigt das Meer?", WORDS]
    body = {"model": index if of == "index" else of, "input": texts}
    answer = api.post("/v1/embeddings", json=body).json()
    given = np.array([one["embedding"] for one in answer["data"]], np.float32)
    assert np.allclose(given, open_encoder("use-m").encode_queries(texts), atol=1e-6)
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    packed = api.post("/v1/embeddings", json=body | {"encoding_format": "base64", "input": WORDS}).json()["data"]
    assert (np.frombuffer(base64.b64decode(packed[0]["embedding"]), "<f4") == given[0]).all()
    query = {"knn": {"embedding": {"vector": given[0].tolist(), "k": 100}}}
    plain = client.search(index=index, body={"size": 6, "query": query})["hits"]["hits"]
    dense = Searcher(client, index).search(WORDS, read_arguments(SearchSettings, mode="dense"), size=6)
    assert [hit["_id"] for hit in plain] == [hit.id for hit in dense.hits]


def test_rerankers_that_were_named_may_be_asked_for(cluster_url, index, tmp_path):
    with (
        reranking_server() as server,
        serving_here("--api", "--reranker", server.name, url=cluster_url, home=tmp_path) as console,
        console.client() as asking,
    ):
        texts = ["the moon", {"text": WORDS}, "bread"]
        body = {"model": server.name, "query": WORDS, "documents": texts, "top_n": 2, "return_documents": True}
        found = asking.post("/v1/rerank", json=body).json()["results"]
        assert [one["index"] for one in found] == [1, 0]
        assert found[0]["relevance_score"] > found[1]["relevance_score"]
        assert [one["document"]["text"] for one in found] == [WORDS, "the moon"]
        searched = asking.post("/api/search", json={"index": index, "query": WORDS, "rerank": server.name})
        assert searched.json()["rerank"] == server.name
        other = asking.post("/api/search", json={"index": index, "query": WORDS, "rerank": "st:/etc"})
        assert problem(other) == (400, "invalid_request")
        assert problem(asking.post("/v1/rerank", json=body | {"model": "st:/etc"})) == (404, "not_found")


REFUSED = {
    "not JSON": ({"content": b"{", "headers": {"content-type": "application/json"}}, 400, "is not JSON"),
    "another type": ({"content": b"{}", "headers": {"content-type": "text/plain"}}, 415, "application/json"),
    "no query": ({"json": {"index": "x"}}, 400, "`query`"),
    "unknown argument": ({"json": {"index": "x", "query": "y", "betta": 1}}, 400, "`betta`"),
    "wrong type": ({"json": {"index": "x", "query": "y", "size": "ten"}}, 400, "`size`"),
    "no index": ({"json": {"index": "langshift-test-none", "query": "y"}}, 404, "There is no index"),
    "no index's name": ({"json": {"index": "A,b", "query": "y"}}, 400, "A,b"),
    "empty": ({"json": {"index": "INDEX", "query": " "}}, 400, "empty"),
    "long": ({"json": {"index": "INDEX", "query": "word " * 20_000}}, 400, "100,000 characters"),
    "field": ({"json": {"index": "INDEX", "query": "y", "filters": {"colour": "red"}}}, 400, "colour"),
    "excluded": ({"json": {"index": "INDEX", "query": "y", "prefer_language": 0.1, "spread": 0.1}}, 400, "exclusive"),
    "too large": ({"json": {"index": "INDEX", "query": "y" * (9 << 20)}}, 413, "MiB"),
    "script": ({"json": {"index": "INDEX", "query": "y", "dsl_filter": {"script": {}}}}, 400, "may not use 'script'"),
    "another index": (
        {
            "json": {
                "index": "INDEX",
                "query": "y",
                "dsl_filter": {"terms": {"year": {"index": "x", "id": "1", "path": "y"}}},
            }
        },
        400,
        "terms takes a list of values",
    ),
    "stars": ({"json": {"index": "INDEX", "query": "y", "fields": ["*a*b*c*"]}}, 400, "one * at most"),
    "many names": ({"json": {"index": "INDEX", "query": "y", "fields": ["a"] * 100_000}}, 400, "at most 100 names"),
    "long name": ({"json": {"index": "INDEX", "query": "y", "sort": "y" * 5000}}, 400, "has no field 'yyyy"),
    "point in time": ({"json": {"index": "INDEX", "query": "y", "from": 0, "point_in_time": "x"}}, 400, "has expired"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_searched_for_is_refused_as_json(api, index, case):
    how, status, said = REFUSED[case]
    if "INDEX" in str(how)[:60]:
        how = {"json": how["json"] | {"index": index}}
    answer = api.post("/api/search", **how)
    assert problem(answer)[0] == status
    assert said in answer.json()["error"]["message"]


def test_an_index_of_somebody_else_is_as_one_that_is_missing(client, api, index_name):
    client.indices.create(index=index_name, body={"aliases": {f"{index_name}-alias": {}}})
    for name in (index_name, f"{index_name}-alias", f"{index_name}-none"):
        said = f"There is no index {name}: choose one from the list of indices."
        for path, body in (("search", {"index": name, "query": "x"}), ("embeddings", {"model": name, "input": "x"})):
            answer = api.post(f"/{'api' if path == 'search' else 'v1'}/{path}", json=body)
            assert problem(answer) == (404, "not_found")
            assert answer.json()["error"]["message"] == said


def test_it_is_described_with_what_it_refuses(api):
    described = api.get("/api/openapi.json").json()
    statuses = {"200", *map(str, STATUS.values())} - {"405"}
    for methods in described["paths"].values():
        for operation in methods.values():
            assert operation["responses"].keys() == statuses
            assert "security" not in operation


def test_other_addresses_and_sites_are_refused_as_json(api):
    assert problem(api.get("/api/nothing")) == (404, "not_found")
    assert problem(api.get("/api/search")) == (405, "method_not_allowed")
    assert problem(api.get("/api/indices", headers={"origin": "http://example.org"})) == (403, "forbidden")
    assert problem(api.get("/api/indices", headers={"host": "example.org"})) == (421, "misdirected")
    assert problem(api.post("/v1/embeddings", json={"model": "st:/etc", "input": "x"})) == (400, "invalid_request")
    assert problem(api.post("/v1/embeddings", json={"model": "use-m", "input": ["x", " "]})) == (400, "invalid_request")
    assert problem(api.post("/v1/embeddings", json={"model": "use-m", "input": "x", "dimensions": 2}))[0] == 400
    # The pages are there as ever.
    assert api.get("/search").headers["content-type"].startswith("text/html")


def test_tokens_say_who_asks(cluster_url, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("# who may ask\nweb-shop 0123456789abcdef\nagents fedcba9876543210\n")
    options = ("--api", "--tokens", tokens, "--allow-origin", "https://shop.example", "--json-log", "--metrics")
    with serving(*options, url=cluster_url, home=tmp_path) as console, console.client() as asking:
        assert problem(asking.get("/api/indices")) == (401, "unauthorized")
        wrong = {"authorization": "Bearer 0123456789abcdeF"}
        assert problem(asking.get("/api/indices", headers=wrong)) == (401, "unauthorized")
        assert problem(asking.get("/metrics")) == (401, "unauthorized")
        right = {"authorization": "Bearer fedcba9876543210", "x-request-id": "mine-1"}
        answer = asking.get(
            "/api/indices", headers=right | {"origin": "https://shop.example", "host": "search.example"}
        )
        assert (answer.status_code, answer.headers["x-request-id"]) == (200, "mine-1")
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        described = asking.get("/api/openapi.json", headers=right).json()["paths"]
        assert described["/api/search"]["post"]["security"] == [{"token": []}]
        assert asking.get("/health").json() == {"live": True, "ready": True}
        _, said = console.stop()
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [(one["path"], one.get("client"), one["status"]) for one in lines] == [
        ("/api/indices", None, 401),
        ("/api/indices", None, 401),
        ("/metrics", None, 401),
        ("/api/indices", "agents", 200),
        ("/api/openapi.json", "agents", 200),
        ("/health", None, 200),
    ]
    assert lines[3]["request_id"] == "mine-1"
    assert "fedcba9876543210" not in said


def test_metrics_count_searches_and_the_languages_of_hits(api, index):
    before = _figures(api)
    api.post("/api/search", json={"index": index, "query": WORDS, "mode": "dense", "size": 6})
    api.post("/api/search", json={"index": index, "query": " "})
    after = _figures(api)
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown[f'langshift_searches_total{{index="{index}",mode="dense",query_language="en"}}'] == 1
    for language in ("en", "de", "th"):
        assert grown[f'langshift_hits_total{{hit_language="{language}",index="{index}"}}'] == 2
    assert grown['langshift_errors_total{code="invalid_request"}'] == 1
    assert grown['langshift_request_seconds_count{path="/api/search"}'] == 2


def _figures(api):
    text = api.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(langshift_\S+) (\S+)$", text, re.MULTILINE)}


def test_a_cluster_that_is_away_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with serving("--api", url=away, home=tmp_path) as console, console.client() as asking:
        answer = asking.post("/api/search", json={"index": "news", "query": WORDS})
        assert problem(answer) == (503, "unavailable")
        assert int(answer.headers["retry-after"]) > 0
        assert asking.get("/health").json() == {"live": True, "ready": False}
        assert asking.get("/health/ready").status_code == 503


def test_without_it_there_is_nothing_of_it(cluster_url, tmp_path):
    with serving_here(url=cluster_url, home=tmp_path) as console, console.client() as asking:
        for path in ("/api/indices", "/health", "/metrics", "/v1/embeddings"):
            assert asking.get(path).status_code == 404


def test_a_slow_cluster_a_client_that_leaves_and_a_full_queue(cluster_url, index, tmp_path):
    """Nobody waits longer than the setting allows, and who comes afterwards is answered."""
    with (
        fault_proxy(cluster_url) as proxy,
        serving("--api", "--queue-seconds", 0.5, url=proxy.url, home=tmp_path, OPENSEARCH_TIMEOUT="2") as console,
        console.client() as asking,
    ):
        body = {"index": index, "query": WORDS}
        assert asking.post("/api/search", json=body).status_code == 200
        proxy.inject("_search", repeat(delayed(20)))
        assert problem(asking.post("/api/search", json=body)) == (503, "unavailable")
        # More than are worked on at once: each takes a turn that is kept until the cluster's time is up.
        enough = threading.Event()
        with ThreadPoolExecutor(2 * AT_ONCE) as clients:
            leaving = [clients.submit(_leave, console, body, enough) for _ in range(2 * AT_ONCE)]
            try:
                until(lambda: problem_of(asking.post("/api/search", json=body)) == "busy")
                answer = asking.post("/api/search", json=body)
                assert answer.status_code == 503 or int(answer.headers["retry-after"]) == 1
                assert asking.get("/health").json()["live"]
            finally:
                enough.set()
            for one in leaving:
                one.result()
        proxy.clear()
        until(lambda: asking.post("/api/search", json=body).status_code == 200)


def _leave(console, body, enough):
    """Ask, and leave before a search is answered, time and again."""
    with console.client() as leaving:
        while not enough.is_set():
            with suppress(httpx.ReadTimeout):
                assert problem(leaving.post("/api/search", json=body, timeout=1)) == (429, "busy")


def problem_of(answer):
    """The code of an answer's error; None where it is none."""
    return answer.json().get("error", {}).get("code")


def until(holds):
    stop = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < stop
        time.sleep(0.1)


def test_an_encoder_whose_server_has_gone_is_said(client, cluster_url, index_name, tmp_path, monkeypatch):
    # Each question would wait 15 seconds for a server that may be starting again.
    monkeypatch.setattr(embeddings_api, "PATIENT", embeddings_api.PATIENT.new(total=1))
    with embeddings_server() as server:
        make_http_index(client, tmp_path / "corpus.jsonl", index_name, server)
        trusted = {"LANGSHIFT_TRUSTED_HOSTS": server.url}
        with serving_here("--api", url=cluster_url, home=tmp_path, **trusted) as console, console.client() as asking:
            body = {"index": index_name, "query": WORDS}
            assert asking.post("/api/search", json=body).status_code == 200
            # A connection that is kept open ends, too.
            server.always = cut
            server.shutdown()
            server.server_close()
            assert problem(asking.post("/api/search", json=body | {"query": "bread"})) == (502, "model_failed")
            assert problem(asking.post("/v1/embeddings", json={"model": index_name, "input": "x"}))[1] == "model_failed"
            # Words need no vector.
            assert asking.post("/api/search", json=body | {"mode": "lexical"}).status_code == 200


def make_http_index(client, path, name, server):
    path.write_text("".join(json.dumps(line) + "\n" for line in documents()), encoding="utf-8")
    load(client, str(path), name, build_pipeline(open_encoder(server.name), open_detector(), None, 0))
