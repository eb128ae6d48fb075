"""Gamma and own on every way to the index: each vector is what NumPy makes of it, and is taken back."""

import numpy as np
import pytest
from embeddings_server import embeddings_server
from embeddings_server import vector as encoded
from given_data import run, write_lines
from old_index import OldIndex
from reencoded_index import vectors_of, write_texts
from shifted_index import preferring, printed, refused, saved, sources

from langshift.debias.debiaser import Debiaser, undo
from langshift.debias.vectors import LanguageVectors
from langshift.languages import text_language
from langshift.plugin.inventory import drop_all

pytestmark = pytest.mark.usefixtures("cluster_env")
COUNT, NEW = 27, 128


def require(stored, raw, known, alpha, gamma, own, field="embedding"):
    """Every stored vector is that of NumPy, and is undone by its stamp; ``raw``: id -> encoder's vector, language."""
    debias = Debiaser(known, alpha, gamma=gamma, own=own)
    assert stored.keys() == raw.keys()
    for name, (vector, language) in raw.items():
        (expected,) = debias.documents(vector[None], [language])
        there, stamp = np.float32(stored[name][field]), stored[name]["shift"]
        assert np.linalg.norm(there - expected) <= 1e-6 * np.linalg.norm(expected), name
        assert stamp["gamma"] == gamma
        assert stamp["own"]["weight"] == (debias.weight if text_language(language) in known.own_vectors else 0.0)
        back = undo(there, stamp, known)
        assert np.linalg.norm(back - vector) <= 1e-6 * np.linalg.norm(vector), name


def texts(documents, dimension):
    """Id -> what a server makes of each document, and its language."""
    return {name: (encoded(one["text"], dimension=dimension), one["language"]) for name, one in documents.items()}


@pytest.fixture
def servers(monkeypatch):
    """The address of one encoder and of another with another dimension, both trusted."""
    with embeddings_server() as old, embeddings_server() as new:
        # Of few dimensions, rounding to 32 bits would count for more.
        old.dimension, new.dimension = 96, NEW
        monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", f"{old.url},{new.url}")
        yield old, new


@pytest.mark.parametrize("chunk", ["off", "words:50"])
def test_load_append_update_reencode_and_back(client, pipelines, servers, tmp_path, chunk):
    name, (old, new) = pipelines, servers
    corpus, documents = write_texts(tmp_path / "corpus.jsonl", COUNT)
    known, other = (preferring(vectors_of(server)) for server in servers)
    files = saved(tmp_path, known, "old.safetensors"), saved(tmp_path, other, "new.safetensors")
    key = (lambda one: one) if chunk == "off" else (lambda one: f"{one}#0000")

    def held(dimension=96):
        return {key(one): value for one, value in texts(documents, dimension).items()}

    def load(path, *more):
        return run("ingest", path, "--index", name, "--encoder", old.name, "--chunk", chunk, *more)

    scales = "--vectors", files[0], "--alpha", 0.9
    printed(load(corpus, *scales, "--gamma", 0.97, "--own", 0.02, "--json"))
    require(sources(client, name), held(), known, 0.9, 0.97, 0.02)
    # What is added takes the shift that is there; a text, a language, both, and a title change.
    added = {"_id": "new", "text": "Something new", "language": "th"}
    changes = {"d0": {"text": "Another text"}, "d1": {"language": "th"}, "d2": {"text": "And", "language": "vi"}}
    changes |= {"d3": {"title": "Another"}, "d4": {"language": "und"}}
    documents["new"] = {name: added[name] for name in ("text", "language")}
    for one, change in changes.items():
        title = change.get("title", f"Title {one[1:]}")
        text = f"{title} {change.get('text', f'Text {one[1:]}')}"
        documents[one] = {**documents[one], **change, "text": text}
    rows = [added, *({"_op": "update", "_id": one, **change} for one, change in changes.items())]
    more = write_lines(tmp_path / "more.jsonl", rows)
    assert run("ingest", more, "--index", name, "--encoder", old.name, "--if-exists", "append").exit_code == 0
    require(sources(client, name), held(), known, 0.9, 0.97, 0.02)
    sentence, _ = refused(load(more, *scales, "--gamma", 0.9, "--own", 0.02, "--if-exists", "append"))
    assert sentence.startswith(f"Index {name} was built with gamma 0.97, not 0.9: ")
    options = "--vectors", files[1], "--alpha", 1, "--gamma", 0.93, "--own", 0.05, "--json"
    printed(run("reencode", name, "--encoder", new.name, *options))
    require(sources(client, name), held(NEW), other, 1.0, 0.93, 0.05)
    # Written since, and carried over into the version before.
    documents["d5"] = {**documents["d5"], "text": "Title 5 Later"}
    later = write_lines(tmp_path / "later.jsonl", [{"_op": "update", "_id": "d5", "text": "Later"}])
    assert run("ingest", later, "--index", name, "--encoder", new.name, "--if-exists", "append").exit_code == 0
    require(sources(client, name), held(NEW), other, 1.0, 0.93, 0.05)
    printed(run("rollback", name, "--json"))
    require(sources(client, name), held(), known, 0.9, 0.97, 0.02)


def test_an_adopted_index(client, cluster_url, index_name, tmp_path):
    old = OldIndex(cluster_url, index_name, documents=60)
    known = preferring(LanguageVectors.load(old.language_vectors(tmp_path / "planted.safetensors")))
    options = ["--vector-field", "vec", "--text-field", "body", "--encoder", "given", "--language-field", "meta.lang"]
    options += ["--vectors", saved(tmp_path, known), "--gamma", 0.97, "--alpha", 1, "--own", 0.1]
    try:
        printed(run("adopt", index_name, "--name", f"{index_name}-new", *options, "--json"))
        client.indices.refresh(index=f"{index_name}-new")
        hits = client.search(index=f"{index_name}-new", body={"size": 100})["hits"]["hits"]
        stored = {hit["_id"]: hit["_source"] for hit in hits if "vec" in hit["_source"]}
        raw = {name: (old.vectors[name], old.tags[name]) for name in old.vectors}
        require(stored, raw, known, 1.0, 0.97, 0.1, "vec")
    finally:
        old.close()
        drop_all(client, f"{index_name}-new")
