"""Texts in NFD and the like, from every side: loaded, updated, adopted, encoded again, sent by others, asked for."""

import json
import unicodedata
from pathlib import Path

import pytest
from command_line import langshift
from embeddings_server import embeddings_server, vector
from given_data import write_lines

from langshift.ingest.config import PipelineOptions
from langshift.ingest.reencode import reencode
from langshift.plugin import metadata
from langshift.plugin.pipelines import body
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

TEXT = "Die Tram in Zürich fährt über die Brücke zum Bahnhof."
# As macOS, PDF files and typesetters have it.
OTHER = unicodedata.normalize("NFD", TEXT).replace("Bru\u0308cke", "Bru\u0308\u00adcke") + "\u200f"
NORMAL = unicodedata.normalize("NFC", TEXT)
CITY = "Zu\u0308rich"


@pytest.fixture
def server(monkeypatch):
    with embeddings_server() as running:
        monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", running.url)
        yield running


def ingest(url, path, index, encoder, *more):
    done = langshift("ingest", path, "--index", index, "--encoder", encoder, "--alpha", 0, *more, url=url)
    assert done.returncode == 0, done
    return done


def found(client, index, words, mode="lexical", **how):
    hits = Searcher(client, index).search(words, SearchSettings(mode=mode), **how).hits
    return sorted(hit.id for hit in hits)


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def test_a_load_an_update_and_a_search_have_one_form(client, cluster_url, pipelines, server, tmp_path):
    rows = [
        {"_id": "nfc", "text": NORMAL, "language": "de", "city": "Zürich"},
        {"_id": "nfd", "text": OTHER, "language": "de", "city": CITY},
        {"_id": "dead", "text": OTHER, "language": "de", "embedding": [1], "city": CITY},
    ]
    path = write_lines(tmp_path / "corpus.jsonl", rows)
    done = langshift("ingest", path, "--index", pipelines, "--encoder", server.name, "--alpha", 0, url=cluster_url)
    assert done.returncode == 3
    nfc, nfd = (source(client, pipelines, name) for name in ("nfc", "nfd"))
    assert nfd["text"] == nfc["text"] == {"de": NORMAL}
    assert nfd["embedding"] == nfc["embedding"] == pytest.approx(vector(NORMAL).tolist())
    # All else comes back as it was sent, and so do dead letters.
    assert nfd["city"] == CITY
    listed = langshift("dead-letters", "list", "--index", pipelines, "--json", url=cluster_url).stdout
    (file,) = json.loads(listed)["files"]
    (letter,) = map(json.loads, Path(file).read_text(encoding="utf-8").splitlines())
    assert json.loads(letter["document"]) == rows[2]
    for words in ("Brücke", unicodedata.normalize("NFD", "Brücke"), "Brü\u00adcke", "Bahnhof"):
        for mode in ("lexical", "hybrid"):
            assert found(client, pipelines, words, mode) == ["nfc", "nfd"]
        assert found(client, pipelines, words, filters={"city": ["Zürich"]}) == ["nfc", "nfd"]
    same = [{"_op": "update", "_id": "nfd", "text": OTHER}, {"_op": "update", "_id": "nfc", "text": OTHER}]
    before = len(server.asked)
    ingest(cluster_url, write_lines(tmp_path / "same.jsonl", same), pipelines, server.name, "--if-exists", "append")
    assert client.get(index=pipelines, id="nfc")["_source"] == nfc
    assert not any(NORMAL in texts for texts in server.asked[before:])


def test_so_have_an_adopted_index_and_what_is_written_there_before_the_normal_form(
    client, cluster_url, pipelines, server, monkeypatch
):
    vec = {
        "type": "knn_vector",
        "dimension": 12,
        "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
    }
    old = f"{pipelines}-old"
    mappings = {"properties": {"vec": vec, "body": {"type": "text"}, "city": {"type": "keyword"}}}
    client.indices.create(index=old, body={"settings": {"index.knn": True}, "mappings": mappings})
    for name, text in (("nfc", NORMAL), ("nfd", OTHER)):
        made = {"body": [text], "city": CITY, "vec": vector(NORMAL).tolist(), "n": 1.0}
        client.index(index=old, id=name, body=made, params={"refresh": "true"})
    options = ["--vector-field", "vec", "--text-field", "body", "--encoder", server.name, "--alpha", 0]
    done = langshift("adopt", old, "--name", pipelines, *options, url=cluster_url)
    assert done.returncode == 0, done
    assert source(client, pipelines, "nfd")["body"] == [NORMAL]
    assert source(client, pipelines, "nfd")["city"] == CITY
    assert found(client, pipelines, unicodedata.normalize("NFD", "Brücke")) == ["nfc", "nfd"]
    # What was written by an earlier langshift is put into that form when it is encoded again, and left by a retune.
    version = f"{pipelines}-v0001"
    client.index(
        index=version, id="nfd", body=source(client, version, "nfd") | {"body": OTHER}, params={"refresh": "true"}
    )
    assert found(client, pipelines, "Brücke") == ["nfc"]
    server.dimension = 8
    monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    reencode(client, pipelines, PipelineOptions(server.name, alpha=0.0))
    assert source(client, pipelines, "nfd")["body"] == NORMAL
    client.indices.refresh(index=pipelines)
    assert found(client, pipelines, "Brücke") == ["nfc", "nfd"]


@pytest.mark.parametrize(
    ("fields", "document", "expected"),
    [
        (
            metadata.USUAL,
            {"title": OTHER, "text": CITY, "city": CITY},
            {"title": NORMAL, "text": "Zürich", "city": CITY},
        ),
        (metadata.USUAL, {"text": {"de": OTHER}}, {"text": {"de": NORMAL}}),
        # A loop over characters would be broken off.
        (metadata.USUAL, {"text": CITY * 500_000}, {"text": "Zürich" * 500_000}),
        (
            metadata.FieldNames(texts=("parts.body", "head")),
            {"parts": [{"body": OTHER, "city": CITY}, {"body": [CITY]}], "parts.body": "ﬁnden"},
            {"parts": [{"body": NORMAL, "city": CITY}, {"body": ["Zürich"]}], "parts.body": "finden"},
        ),
        (
            metadata.FieldNames(texts=("parts.body",)),
            {"parts": {"body": None, "n": 1}},
            {"parts": {"body": None, "n": 1}},
        ),
    ],
)
def test_the_pipeline_makes_the_same_of_what_other_clients_send(client, fields, document, expected):
    processors = body("news-v0001", StoredShift(None, "en", {}, 0.0, {}), fields, None)["processors"][:1]
    (made,) = client.ingest.simulate(body={"pipeline": {"processors": processors}, "docs": [{"_source": document}]})[
        "docs"
    ]
    assert made["doc"]["_source"] == expected
