"""Any client's plain ``knn`` request with the encoder's own query vector finds what ``langshift search`` finds."""

import json
import uuid
from urllib.request import Request, urlopen

import pytest
from command_line import langshift

from langshift.debias.encoders import open_encoder
from langshift.evaluate.demo import FOLDER
from langshift.plugin import inventory
from langshift.retrieval.question import LEAST_CANDIDATES, SearchOptions
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

ENCODERS = {}
LANGUAGES = ("ar", "de", "en", "es", "ja", "ru", "tr", "zh")
QUERIES, SIZE = 40, 20
SHIFT = ("--alpha", "1", "--gamma", "0.97")


def lines(name, *languages):
    rows = map(json.loads, (FOLDER / name).read_text(encoding="utf-8").splitlines())
    # Documents of the demo name their language in their id alone.
    return [row for row in rows if not {*languages}.isdisjoint(row["_id"].split("-"))]


@pytest.fixture(scope="module")
def queries():
    """As many in each language, in the order of the languages."""
    every = {tag: lines("queries.jsonl", tag)[: QUERIES // len(LANGUAGES)] for tag in LANGUAGES}
    return [(row["text"], tag) for tag, rows in every.items() for row in rows]


@pytest.fixture(scope="module")
def vectors(queries):
    """Each query's vector as the encoder makes it."""
    return open_encoder("use-m").encode_queries([text for text, _ in queries])


@pytest.fixture(scope="module")
def indices(client, cluster_url, tmp_path_factory):
    """Names of an index that was loaded, one that was adopted, one that was retuned, and one that a client wrote."""
    folder, made = tmp_path_factory.mktemp("corpus"), f"langshift-test-{uuid.uuid4().hex[:8]}"
    corpus, few = folder / "corpus.jsonl", folder / "few.jsonl"
    documents = lines("corpus.jsonl", *LANGUAGES)
    for path, rows in ((corpus, documents), (few, documents[:30])):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def call(*command):
        done = langshift(*command, url=cluster_url)
        assert done.returncode == 0, done.stderr
        return done

    names = {kind: f"{made}-{kind}" for kind in ("new", "adopted", "retuned", "piped")}
    call("ingest", corpus, "--index", names["new"], "--encoder", "use-m", *SHIFT)
    call("ingest", corpus, "--index", names["retuned"], "--encoder", "use-m", "--alpha", 0)
    found = client.search(index=names["retuned"], body={"size": 1000})["hits"]["hits"]
    raw = {hit["_id"]: hit["_source"] for hit in found}
    call("retune", names["retuned"], *SHIFT)
    body = [line for name, one in raw.items() for line in ({"index": {"_id": name}}, theirs(one))]
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    knn = {"type": "knn_vector", "dimension": 512, "method": method}
    properties = {"embedding": knn, "words": {"type": "text"}, "lang": {"type": "keyword"}}
    old = {"settings": {"index": {"knn": True}}, "mappings": {"properties": properties}}
    client.indices.create(index=f"{made}-old", body=old)
    assert not client.bulk(index=f"{made}-old", body=body, params={"refresh": "true"})["errors"]
    given = ("--vector-field", "embedding", "--text-field", "words", "--language-field", "lang", "--encoder", "use-m")
    call("adopt", f"{made}-old", "--name", names["adopted"], *given, *SHIFT)
    call("ingest", few, "--index", names["piped"], "--encoder", "use-m", *SHIFT)
    call("pipeline", "install", names["piped"])
    written = [
        line
        for name, one in raw.items()
        for line in ({"index": {"_id": name}}, {field: one[field] for field in ("language", "embedding")})
    ]
    assert not client.bulk(index=names["piped"], body=written, params={"refresh": "true"})["errors"]
    yield names
    for name in names.values():
        inventory.drop_all(client, name)
    client.indices.delete(index=f"{made}*")


def theirs(source):
    """A document as another application holds it."""
    words = " ".join(source["text"].values())
    return {"embedding": source["embedding"], "words": words, "lang": source["language"]}


@pytest.mark.parametrize("kind", ["new", "adopted", "retuned", "piped"])
def test_plain_requests_bring_the_same_ids_in_the_same_order(client, cluster_url, indices, queries, vectors, kind):
    name = indices[kind]
    searcher = Searcher(client, name, SearchOptions(), ENCODERS)
    assert (searcher.index.fingerprint.alpha, searcher.index.fingerprint.gamma) == (1.0, 0.97)
    assert searcher.index.documents == len(lines("corpus.jsonl", *LANGUAGES))
    stamps = [one["_source"]["shift"] for one in client.search(index=name, body={"size": 1000})["hits"]["hits"]]
    assert {stamp["gamma"] for stamp in stamps} == {0.97}
    assert len({stamp.get("language") for stamp in stamps}) == len(LANGUAGES)
    for (text, language), vector in zip(queries, vectors, strict=True):
        found = searcher.search(text, SearchSettings("dense"), size=SIZE, language=language)
        expected = [hit.id for hit in found.hits]
        knn = {"embedding": {"vector": vector.tolist(), "k": max(SIZE, LEAST_CANDIDATES)}}
        body = {"size": SIZE, "_source": False, "query": {"knn": knn}}
        assert [hit["_id"] for hit in client.search(index=name, body=body)["hits"]["hits"]] == expected
        # As curl sends it.
        headers = {"Content-Type": "application/json"}
        sent = Request(f"{cluster_url}/{name}/_search", json.dumps(body).encode(), headers)
        with urlopen(sent) as answer:
            assert [hit["_id"] for hit in json.load(answer)["hits"]["hits"]] == expected
    text, language = queries[7]
    options = ("--mode", "dense", "--size", SIZE, "--language", language, "--json")
    done = langshift("search", name, text, *options, url=cluster_url)
    assert [hit["id"] for hit in json.loads(done.stdout)["hits"]] == [
        hit.id for hit in searcher.search(text, SearchSettings("dense"), size=SIZE, language=language).hits
    ]
