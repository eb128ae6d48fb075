"""Searches by weights of tokens from the outside: in Python, by the command line, and replayed."""

import json

import pytest
from given_data import run, write_lines
from planted_sparse import PlantedSparse, weights
from searched import a_name, drop
from shifted_index import refused

import langshift
from langshift.errors import ClusterError, UsageError
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

TEXTS = {
    "tides": ("en", "The water rises twice each day because the Moon pulls at it"),
    "ebbe": ("de", "Das Wasser steigt zweimal am Tag weil der Mond daran zieht"),
    "bread": ("en", "Yeast makes dough rise before bread goes into the oven"),
}
QUERY = "Wasser Moon water"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weighed")
    lines = [
        {"_id": name, "text": text, "language": tag, "embedding": [1.0, at], "sparse_embedding": weights(text)}
        for at, (name, (tag, text)) in enumerate(TEXTS.items())
    ]
    return write_lines(folder / "corpus.jsonl", lines)


@pytest.fixture(scope="module")
def index(client, corpus, cluster_url):
    name = a_name()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        load = ("--encoder", "given", "--alpha", "0", "--sparse", "given")
        done = run("ingest", corpus, "--index", name, *load)
        assert done.exit_code == 0, done.output
    yield name
    drop(client, name)


@pytest.fixture(autouse=True)
def _cluster(cluster_env):
    """Commands find it."""


def refusal(*command):
    """The sentence with which a command refuses."""
    return refused(run(*command))[0]


def test_a_client_brings_the_weights_of_its_query(index):
    asked = weights(QUERY)
    with langshift.open_index(index) as opened:
        found = opened.search(QUERY, mode="sparse", sparse_embedding=asked, language="de").hits
        wanted = {
            name: sum(weight * asked.get(token, 0) for token, weight in weights(text).items())
            for name, (_, text) in TEXTS.items()
        }
        assert {hit.id: hit.score for hit in found} == {
            name: pytest.approx(score, rel=1 / 256) for name, score in wanted.items() if score
        }
        assert all("sparse_embedding" not in hit.source for hit in found)
        both = {"vector": [1.0, 0.5], "sparse_embedding": asked, "language": "de"}
        fused = opened.search(QUERY, mode="hybrid", sparse_weight=0.5, explain=True, **both)
        assert {"dense", "lexical", "sparse"} <= {leg for hit in fused.hits for leg in hit.legs}
        with pytest.raises(UsageError, match="has the weight 'x' for 'moon'"):
            opened.search(QUERY, mode="sparse", sparse_embedding={"moon": "x"})
        with pytest.raises(UsageError, match="given"):
            opened.search(QUERY, mode="sparse")


def test_queries_of_a_dataset_bring_theirs(index, corpus, tmp_path):
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(corpus.read_bytes())
    query = {"_id": "q", "text": QUERY, "language": "de", "embedding": [1.0, 0.5]}
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ttides\t1\n")
    settings = ("--setting", "sparse", "--setting", "hybrid --sparse-weight .5", "--setting", "dense")
    replay = ("evaluate", "replay", folder, "--index", index, *settings, "--output", tmp_path / "out")
    write_lines(folder / "queries.jsonl", [query])
    assert "Query 'q' has no 'sparse_embedding'" in refusal(*replay)
    write_lines(folder / "queries.jsonl", [query | {"sparse_embedding": [1]}])
    assert "queries.jsonl, line 1: the field 'sparse_embedding' must be an object" in refusal(*replay)
    write_lines(folder / "queries.jsonl", [query | {"sparse_embedding": weights(QUERY)}])
    done = run(*replay)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "out" / "sparse" / "result.json").read_bytes())
    assert result["setting"]["mode"] == "sparse"
    # It has two words of the query, the German one has one.
    assert result["measures"]["nDCG@20"] == 1


def test_an_index_without_weights_and_a_cluster_without_the_plugin_are_told_apart(client, index, corpus, monkeypatch):
    searcher = Searcher(client, index)
    monkeypatch.setattr("langshift.retrieval.searcher.plugins", lambda _: {"opensearch-knn"})
    with pytest.raises(ClusterError, match="searched by the plugin opensearch-neural-search: install it"):
        searcher.search(QUERY, SearchSettings("sparse"), sparse_embedding={"moon": 1.0})
    name = a_name()
    try:
        assert run("ingest", corpus, "--index", name, "--encoder", "given", "--alpha", "0").exit_code == 0
        assert f"{name} has no weights of tokens" in refusal("search", name, QUERY, "--mode", "sparse")
    finally:
        drop(client, name)


def test_queries_are_encoded_by_the_encoder_of_the_index(index, monkeypatch):
    monkeypatch.setattr("langshift.retrieval.searcher.open_sparse", lambda *_, **__: PlantedSparse("st:one"))
    said = refusal("search", index, QUERY, "--mode", "sparse")
    assert "were made with given" in said
    assert "reencode" in said
