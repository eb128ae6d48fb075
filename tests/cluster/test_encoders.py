"""Indices of vectors that come with the data, and of vectors that a server makes."""

import json

import numpy as np
import pytest
from embeddings_server import MODEL, embeddings_server, vector
from given_data import DIMENSION, Made, run, write_lines

from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, UsageError
from langshift.plugin.versions import live


def done(*arguments):
    """What a command printed as JSON."""
    ran = run(*arguments, "--json")
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return json.loads(ran.stdout)


def refused(kind, *arguments):
    ran = run(*arguments)
    assert type(ran.exception) is kind, (ran.output, ran.exception)
    return str(ran.exception)


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


@pytest.mark.usefixtures("cluster_env")
def test_given_vectors_are_shifted_indexed_and_asked_for(client, index_name, made):
    made.fit()
    corpus = made.data / "corpus.jsonl"
    ingest = ["ingest", corpus, "--index", index_name, "--encoder", "given", "--vectors", made.vectors]
    assert done(*ingest)["documents"] == len(made.documents)
    fingerprint = live(client, index_name).fingerprint
    assert (fingerprint.encoder, fingerprint.revision) == ("given", "")
    assert (fingerprint.dimension, fingerprint.normalised) == (DIMENSION, False)
    known = LanguageVectors.load(made.vectors)
    stored = client.get(index=index_name, id="2-th")["_source"]
    assert np.abs(stored["embedding"] - (made.documents["2-th"] - known.vectors["th"])).max() < 1e-5
    assert stored["shift"]["language"] == "th"
    # A replay asks with the queries' own vectors; exactly what offline evaluation finds.
    found = done("evaluate", "replay", made.data, "--index", index_name, "--measures", "R@3 nDCG@3")
    assert found["measures"] == {"R@3": 1, "nDCG@3": 1}
    assert found["errors"] == 0
    # What is asked in words has no vector.
    assert refused(UsageError, "search", index_name, "Document") == (
        "The encoder given does not encode queries, because its model is not available: search by words with "
        "--mode lexical, or replay a dataset whose queries have an 'embedding'."
    )
    client.indices.refresh(index=index_name)
    assert len(done("search", index_name, "Document", "--mode", "lexical", "--language", "en")["hits"]) > 0


@pytest.mark.usefixtures("cluster_env")
def test_given_vectors_of_another_model_are_kept_out(index_name, made, tmp_path):
    corpus = made.data / "corpus.jsonl"
    ingest = ["--index", index_name, "--encoder", "given", "--alpha", "0"]
    assert done("ingest", corpus, *ingest)["documents"] == len(made.documents)
    assert done("ingest", corpus, "--index", index_name, "--alpha", "0", "--if-exists", "append")["replaced"] > 0
    other = write_lines(tmp_path / "other.jsonl", [{"_id": "x", "text": "t", "embedding": [1.0] * 9}])
    assert refused(FingerprintError, "ingest", other, *ingest, "--if-exists", "append").startswith(
        f"Index {index_name} was built with dimension 8, not 9: "
    )
    named = ["--index", index_name, "--encoder", "given:mine", "--alpha", "0"]
    assert refused(FingerprintError, "ingest", corpus, *named, "--if-exists", "append").startswith(
        f"Index {index_name} was built with encoder given, not given:mine, revision '', not mine: "
    )
    made.bring("queries.jsonl", {name: [1.0] * 7 for name in made.queries})
    assert refused(UsageError, "evaluate", "replay", made.data, "--index", index_name) == (
        "Query 'q0' has an 'embedding' of 7 numbers, but 8 are needed: "
        "documents and queries must be encoded by the same model."
    )


@pytest.mark.usefixtures("cluster_env")
def test_an_index_by_a_server_that_moves(client, index_name, monkeypatch, tmp_path):
    corpus = write_lines(tmp_path / "c.jsonl", [{"_id": str(row), "text": f"Document {row}."} for row in range(70)])
    with embeddings_server() as server:
        monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", server.url)
        ingest = ["ingest", corpus, "--index", index_name, "--encoder", server.url, "--alpha", "0"]
        assert done(*ingest)["documents"] == 70
        fingerprint = live(client, index_name).fingerprint
        assert (fingerprint.encoder, fingerprint.revision) == (server.name, MODEL)
        assert len(done("search", index_name, "Document 7.")["hits"]) == 10
        # Without --encoder, documents that are added are encoded as those that are there.
        more = write_lines(tmp_path / "more.jsonl", [{"_id": "70", "text": "Document 70."}])
        added = done("ingest", more, "--index", index_name, "--alpha", "0", "--if-exists", "append")
        assert (added["documents"], server.asked[-1]) == (1, ["Document 70."])
        at_first = server.name
    stored = client.get(index=index_name, id="7")["_source"]["embedding"]
    assert np.abs(stored - vector("Document 7.")).max() < 1e-6
    with embeddings_server() as moved:
        assert at_first != moved.name
        (best, *_) = done("search", index_name, "Document 7.", "--encoder", moved.name)["hits"]
        assert (best["id"], best["score"]) == ("7", pytest.approx(1))
        moved.models[0]["root"] = "org/other"
        assert refused(FingerprintError, "search", index_name, "Document 7.", "--encoder", moved.name).startswith(
            f"Index {index_name} was built with encoder {at_first}, not {moved.name}, revision {MODEL}, not org/other: "
        )
