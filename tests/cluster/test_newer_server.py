"""All that reads vectors, over a server that leaves them out of answers or writes them as base64."""

from itertools import repeat

import numpy as np
import pytest
from embeddings_server import embeddings_server
from given_data import run, write_lines
from newer_server import leaving_out, leaving_out_always, packed, packing
from old_index import OldIndex
from shifted_index import DIMENSION, Corpus, language_vectors, printed, refused, require_vectors, saved, sources
from small_dataset import index_of
from small_old_index import ADOPTED, VECTOR, old_index

from langshift.plugin.inventory import drop_all
from langshift.retrieval.calibration.questions import draw_passages
from langshift.retrieval.searcher import Searcher

ADOPT = ("--text-field", "headline", "--text-field", "body", "--language-field", "meta.lang")


@pytest.fixture(params=[leaving_out, packing])
def newer(request, proxy, monkeypatch):
    """A server that gives vectors in another way, and its address for commands."""
    proxy.inject("", repeat(request.param("vec", "embedding")))
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    return proxy


@pytest.fixture
def loaded(index_name, pipelines, cluster_env, tmp_path):  # noqa: ARG001 - what the tests install is removed
    """A shifted index of given vectors, its corpus and language vectors."""
    vectors, made = language_vectors(), Corpus(tmp_path)
    made.ingest(index_name, "--vectors", saved(tmp_path, vectors), "--alpha", 0.5)
    return made, vectors


@pytest.mark.usefixtures("newer")
def test_a_pipeline_is_verified_and_an_index_retuned_and_taken_back(client, index_name, loaded):
    made, vectors = loaded
    assert run("pipeline", "install", index_name).exit_code == 0
    compared = printed(run("pipeline", "verify", index_name, "--json"))
    assert (compared["wrong"], compared["compared"]["documents"]) == ([], len(made.languages))
    for command, alpha in ((("retune", index_name, "--alpha", 1), 1), (("rollback", index_name), 0.5)):
        assert run(*command).exit_code == 0
        require_vectors(client, index_name, made, vectors, alpha)


@pytest.mark.usefixtures("newer")
def test_an_index_is_adopted_and_audited(client, cluster_url, index_name, tmp_path):
    old = OldIndex(cluster_url, index_name, documents=120, shards=1)
    options = (*ADOPT, "--vector-field", "vec", "--encoder", "given", "--vectors", old.language_vectors(tmp_path / "v"))
    told = printed(run("index", "audit", index_name, *options, "--json"))
    assert sum(one["documents"] for one in told["languages"]) == len(old.vectors)
    name = f"{index_name}-new"
    assert run("adopt", index_name, "--name", name, *options, "--alpha", 1).exit_code == 0
    client.indices.put_settings(index=name, body={"index": {"max_result_window": 1000}})
    for one, source in sources(client, name).items():
        tag = old.tags[one]
        moved = {} if tag == "en" else old.offsets[tag] - old.offsets["en"]
        if one in old.vectors:
            assert np.allclose(source["vec"], old.vectors[one] - (moved if tag != "en" else 0), atol=1e-5)
    assert run("retune", name, "--alpha", 0).exit_code == 0
    for one, source in sources(client, name).items():
        assert one not in old.vectors or np.allclose(source["vec"], old.vectors[one], atol=1e-5)


@pytest.mark.usefixtures("newer")
def test_an_index_is_encoded_by_another_model_and_taken_back(client, index_name, loaded):
    made, vectors = loaded
    with embeddings_server() as server:
        assert run("reencode", index_name, "--encoder", server.name, "--alpha", 0).exit_code == 0
    assert run("rollback", index_name).exit_code == 0
    require_vectors(client, index_name, made, vectors, 0.5)


@pytest.mark.usefixtures("newer")
def test_searches_a_replay_and_a_calibration_find_what_they_find_otherwise(client, through, folder, proxy):
    name = index_of(client, folder, 1.0)
    try:
        found = {}
        for newer in (True, False):
            if not newer:
                proxy.clear()
            for mode in ("dense", "lexical", "hybrid", "anchored"):
                done = printed(run("search", name, "tides of the sea", "--mode", mode, "--json"))
                hits = [(hit["id"], hit["score"]) for hit in done["hits"]]
                assert found.setdefault(mode, hits) == hits
            replayed = printed(run("evaluate", "replay", folder, "--index", name, "--measures", "nDCG@10", "--json"))
            assert found.setdefault("replay", replayed["measures"]) == replayed["measures"]
            # What a calibration reads of documents; all else of it is searches.
            passages = draw_passages(Searcher(through, name), 12, 100, 0)
            vectors = {one.id: one.vector.tolist() for one in passages}
            assert found.setdefault("calibrate", vectors) == vectors
            assert len(vectors) == 12
            assert run("index", "describe", name).exit_code == 0
    finally:
        drop_all(client, name)


@pytest.mark.usefixtures("loaded")
def test_a_vector_that_is_never_in_an_answer_is_the_servers_fault(proxy, monkeypatch, index_name):
    monkeypatch.setenv("OPENSEARCH_URL", proxy.url)
    proxy.inject("", repeat(leaving_out_always("embedding")))
    said, code = refused(run("retune", index_name, "--alpha", 1))
    assert code == 1
    assert said.startswith(f"The server left the vectors in 'embedding' of {index_name}-v000")
    assert "knn_default_excludes_factory" in said


MIXED = {"bodyVec": VECTOR, "a": {"properties": {"embeddingVec": VECTOR}}, "body": {"type": "text"}}


@pytest.mark.parametrize("field", ["bodyVec", "a.embeddingVec"])
@pytest.mark.parametrize("audit", [True, False])
@pytest.mark.usefixtures("cluster_env")
def test_a_vector_field_with_capitals_is_the_servers_fault_too(client, index_name, field, audit):
    documents = {"1": {"bodyVec": [1, 2, 3, 4], "a": {"embeddingVec": [1, 2, 3, 4]}, "body": "The sea."}}
    with old_index(client, index_name, MIXED, documents):
        command = ("index", "audit", index_name) if audit else ("adopt", index_name, "--name", f"{index_name}-new")
        options = ("--vector-field", field, "--text-field", "body", "--encoder", "given", "--alpha", 0)
        assert refused(run(*command, *(options[:-2] if audit else options))) == (
            f"The documents of {index_name} do not hold {field!r} as one list of 4 numbers: OpenSearch before 3.7 "
            "returns 1 for a vector field with capital letters in its name where derived source is on (k-NN #3268): "
            "upgrade OpenSearch to 3.7 or later; or, here, load the documents from their original source, and set "
            '"index.knn.derived_source.enabled": false in an index of your own.',
            2,
        )


@pytest.mark.usefixtures("cluster_env")
def test_a_vector_field_with_capitals_that_comes_back_stays_so_in_the_new_version(client, index_name):
    body = {
        "settings": {"index": {"knn": True, "knn.derived_source.enabled": False}},
        "mappings": {"properties": MIXED},
    }
    client.indices.create(index=index_name, body=body)
    client.index(index=index_name, id="1", body={"bodyVec": [1, 2, 3, 4], "body": "Sea"}, params={"refresh": "true"})
    new = f"{index_name}-new"
    options = ("--text-field", "body", "--vector-field", "bodyVec", *ADOPTED[2:])
    assert run("adopt", index_name, "--name", new, *options).exit_code == 0
    assert sources(client, new)["1"]["bodyVec"] == [1, 2, 3, 4]


@pytest.mark.usefixtures("cluster_env")
def test_vectors_in_base64_are_read_by_a_load_and_by_the_pipeline(client, pipelines, tmp_path):
    index_name = pipelines
    made, vectors = Corpus(tmp_path), language_vectors()
    lines = [made.line(name) for name in made.languages]
    lines = [line | {"embedding": packed(line["embedding"])} for line in lines]
    bad = {"_id": "bad", "text": "Text", "embedding": "no vector"}
    made.path = write_lines(tmp_path / "packed.jsonl", [*lines[1:], bad])
    options = ("--vectors", saved(tmp_path, vectors), "--max-refused", 1)
    assert run("ingest", made.path, "--index", index_name, "--encoder", "given", *options).exit_code == 3
    letter = run("dead-letters", "list", "--index", index_name).output
    assert "is a string that is not base64 of little-endian 32-bit floats" in " ".join(letter.split())
    assert run("pipeline", "install", index_name).exit_code == 0
    client.index(index=index_name, id=lines[0].pop("_id"), body=lines[0])
    require_vectors(client, index_name, made, vectors, 1)
    none = {
        "no vector": "Document x has a string in embedding that is no base64 of little-endian 32-bit floats",
        packed([np.nan] * DIMENSION): "Document x has a number in embedding that is not finite",
        packed([1.0]): "Document x has a vector of dimension 1 in embedding",
    }
    for value, words in none.items():
        body = {"docs": [{"_id": "x", "_source": {"embedding": value}}]}
        (answer,) = client.ingest.simulate(id=f"langshift-{index_name}-v0001", body=body)["docs"]
        assert words in str(answer["error"])
