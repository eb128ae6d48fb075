"""Documents in a language that the encoder does not read: every command that shows the index says so."""

import json

import numpy as np
import pytest
from command_line import langshift
from opensearchpy import helpers

LANGUAGES = {"en": 2.0, "de": 2.0, "th": 0.1}
DOCUMENTS, DIMENSION = 30, 24
SAYS = "can be found by words only: the encoder given:made-up cannot read that language."


def documents(noises=LANGUAGES):
    rng = np.random.default_rng(5)
    for language, noise in noises.items():
        common = rng.standard_normal(DIMENSION)
        for row in range(DOCUMENTS):
            vector = common + noise * rng.standard_normal(DIMENSION)
            text = " ".join("".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(12))
            embedding = (vector / np.linalg.norm(vector)).round(5).tolist()
            yield {"_id": f"{language}-{row}", "text": text, "language": language, "embedding": embedding}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def ingest(cluster_env, index_name, tmp_path):
    def run(rows, *more):
        corpus = write(tmp_path / "data" / "corpus.jsonl", rows)
        done = langshift("ingest", corpus, "--index", index_name, "--alpha", "0", *more, url=cluster_env)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_every_place_that_shows_the_index_says_it(ingest, cluster_env, index_name, tmp_path):
    said = f"{DOCUMENTS} documents in th {SAYS}"
    rows = list(documents())
    assert said in ingest(rows, "--encoder", "given:made-up").stderr.replace("\n", " ")

    described = json.loads(langshift("index", "describe", index_name, "--json", url=cluster_env).stdout)
    assert described["unread"] == {"th": DOCUMENTS}
    assert said in described["remarks"]
    findings = json.loads(langshift("doctor", "--json", url=cluster_env).stdout)["findings"]
    (mine,) = [one for one in findings if one["name"] == f"index {index_name}"]
    assert mine["status"] == "warning"
    assert said in mine["remedy"]

    query = {"_id": "q", "text": "abc def", "language": "en", "embedding": rows[0]["embedding"]}
    write(tmp_path / "data" / "queries.jsonl", [query])
    (tmp_path / "data" / "qrels").mkdir()
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ten-0\t1\n")
    out = tmp_path / "run"
    replay = ("evaluate", "replay", tmp_path / "data", "--index", index_name, "--output", out)
    assert langshift(*replay, url=cluster_env).returncode == 0
    assert said in json.loads((out / "result.json").read_text())["warnings"]
    assert langshift("evaluate", "compare", out, "--report", out, url=cluster_env).returncode == 0
    assert said in (out / "report.html").read_text(encoding="utf-8")


def test_a_language_that_is_indexed_anew_by_readable_vectors_is_no_longer_named(ingest, cluster_env, index_name):
    assert SAYS in ingest(documents(), "--encoder", "given:made-up").stderr.replace("\n", " ")
    repaired = ingest(documents(dict.fromkeys(LANGUAGES, 2.0)), "--encoder", "given:made-up", "--if-exists", "append")
    assert "by words only" not in repaired.stderr
    described = json.loads(langshift("index", "describe", index_name, "--json", url=cluster_env).stdout)
    assert described["unread"] == {}


def test_an_audit_says_it_of_its_sample(client, cluster_env, index_name):
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    vector = {"type": "knn_vector", "dimension": DIMENSION, "method": method}
    properties = {"vec": vector, "body": {"type": "text"}, "lang": {"type": "keyword"}}
    body = {"settings": {"index.knn": True}, "mappings": {"properties": properties}}
    client.indices.create(index=index_name, body=body)
    rows = ({"vec": one["embedding"], "body": one["text"], "lang": one["language"]} for one in documents())
    helpers.bulk(client, rows, index=index_name, refresh=True)
    options = ("--vector-field", "vec", "--text-field", "body", "--language-field", "lang", "--alpha", "0")
    done = langshift("index", "audit", index_name, *options, "--encoder", "given:made-up", "--json", url=cluster_env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["unread"] == {"th": DOCUMENTS}
    assert f"Of the sample, {DOCUMENTS} documents in th {SAYS}" in [one["text"] for one in found["findings"]]


def test_the_bundled_model_and_hindi(ingest):
    rows = [
        {"_id": "hi", "text": "समुद्र दिन में दो बार बढ़ता और घटता है।", "language": "hi"},
        {"_id": "th", "text": "ทะเลขึ้นและลงวันละสองครั้ง", "language": "th"},
    ]
    said = ingest(rows, "--encoder", "use-m").stderr.replace("\n", " ")
    assert "1 document in hi can be found by words only: the encoder use-m cannot read that language." in said
    assert "th" not in said.partition("by words only")[0].rpartition(".")[2].split()
