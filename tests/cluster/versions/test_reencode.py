"""The texts of an index encoded by another model, while people search and write; and taken back again."""

import threading

import numpy as np
import pytest
from adopted_index import adopted
from busy_index import busy
from embeddings_server import DIMENSION, embeddings_server, vector
from fault_proxy import passed
from faults import cut_after, cut_before, cut_midway, page, whole
from given_data import run, write_lines
from old_index import raw_documents
from opensearchpy.exceptions import AuthorizationException
from reencoded_index import (
    NEW,
    PROBES,
    SAMPLE,
    EncodingWriter,
    Once,
    require_encoded,
    texts_encoded,
    vectors_of,
    write_texts,
)
from retuned_index import live, require_tidy
from server_words import Refusal
from shifted_index import language_vectors, printed, refused, saved, sources

import langshift
from langshift.errors import ClusterError
from langshift.ingest.config import PipelineOptions
from langshift.ingest.reencode import reencode
from langshift.plugin import metadata, versions

pytestmark = pytest.mark.usefixtures("cluster_env")
COUNT = 90
# How a node answers that has been started again since a point in time was made.
GONE = Refusal(404, {"type": "search_context_missing_exception", "reason": "No search context found for id [7]"})


@pytest.fixture
def old():
    with embeddings_server() as server:
        yield server


@pytest.fixture
def new():
    with embeddings_server() as server:
        server.dimension = NEW
        yield server


@pytest.fixture
def documents(old, new, pipelines, cluster_env, monkeypatch, tmp_path):  # noqa: ARG001 - the address of the cluster
    """What an index holds that the former server has encoded; both servers are trusted."""
    monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", f"{old.url},{new.url}")
    corpus, made = write_texts(tmp_path / "corpus.jsonl", COUNT)
    vectors = saved(tmp_path, vectors_of(old), "old.safetensors")
    printed(run("ingest", corpus, "--index", pipelines, "--encoder", old.name, "--vectors", vectors, "--json"))
    return made


@pytest.fixture
def vectors(new, tmp_path):
    """A file of the new encoder's language vectors."""
    return saved(tmp_path, vectors_of(new, 2), "new.safetensors")


@pytest.fixture
def command(pipelines, new, vectors):
    return "reencode", pipelines, "--encoder", new.name, "--vectors", vectors, "--alpha", 0.5


def test_nothing_written_is_lost_and_no_search_fails(client, pipelines, documents, new, vectors):
    name = pipelines
    assert run("pipeline", "install", name).exit_code == 0
    # A document that is deleted and made anew begins with version 1 again at once, and not after a minute.
    client.indices.put_settings(index=name, body={"index": {"gc_deletes": "0s"}})
    writers = [EncodingWriter(client, name, number, DIMENSION) for number in range(3)]
    searched = set()
    new.pause = 0.02
    with langshift.open_index(name) as index:

        def search():
            found = index.search("Title 7 Text 7", size=3)
            assert len(found.hits) == 3
            searched.add(found.index)

        with busy(search, *(writer.write for writer in writers)):
            made = reencode(client, name, PipelineOptions(new.name, vectors=vectors, alpha=0.5))
    done = made.done
    assert (done.index, done.before, done.kind) == (f"{name}-v0002", f"{name}-v0001", "reencode")
    assert searched == {done.index, done.before}
    assert made.notes == [f"Clients that write vectors to {name} must now send those of {new.name}."]
    held = {one: document for writer in writers for one, document in writer.held.items()}
    require_encoded(client, name, documents | held, vectors_of(new, 2), 0.5)
    assert done.caught_up
    assert all(writer.confirmed for writer in writers)
    client.indices.put_settings(index=name, body={"index": {"gc_deletes": None}})
    require_tidy(client, name)
    assert live(client, name) == done.index
    origin = metadata.read_origin(client, done.index)
    assert (origin.kind, origin.version) == ("reencode", done.before)
    assert run("pipeline", "verify", name).exit_code == 0
    assert f"{done.index} is the version that {name} points to, created by a reencode of {done.before}." in (
        run("index", "describe", name).stdout
    )
    print(f"\n{done.caught_up} caught up; writes blocked for {done.blocked:.2f} s of {done.seconds:.2f} s")


def write_since(client, name, documents):
    """A document written anew, one with another text, one with another field and one deleted; and all of them since."""
    now = dict(documents)
    now["new"] = {"text": "A new one", "language": "de"}
    now["d3"] = {"text": "Title 3 Another text", "language": "th"}
    now["d1"] = {**documents["d1"], "seen": 7}
    del now["d2"]
    client.index(index=name, id="new", body={"text": {"de": "A new one"}, "language": "de"})
    client.update(index=name, id="d3", body={"doc": {"text": {"th": "Another text"}}})
    client.update(index=name, id="d1", body={"doc": {"seen": 7}})
    client.delete(index=name, id="d2")
    return now


def test_what_was_written_since_is_not_lost_on_the_way_back(client, pipelines, documents, old, new, command):
    name, known, kept = pipelines, vectors_of(old), f"{pipelines}-v0001"
    done = run(*command)
    assert (done.exit_code, done.stderr) == (0, ""), done.exception
    assert done.stdout == (
        f"{name} now points to {name}-v0002, encoded with {new.name} and alpha 0.5: 90 documents, 0 caught up, "
        f"checked. The previous version, {kept}, is kept: `langshift rollback {name}` returns to it.\n"
    )
    assert texts_encoded(new) == COUNT + PROBES + SAMPLE
    require_encoded(client, name, documents, vectors_of(new, 2), 0.5)
    now = write_since(client, name, documents)
    before = texts_encoded(old)
    # What the former encoder has encoded is not encoded anew.
    back = run("rollback", name)
    assert (back.exit_code, back.stderr) == (0, ""), back.exception
    assert back.stdout == (
        f"{name} points to {kept} again: 90 documents, 3 carried over and 1 deleted since {name}-v0002 replaced it. "
        f"{name}-v0002 is kept.\n"
    )
    require_encoded(client, name, now, known, 1.0)
    assert texts_encoded(old) == before + 2 + PROBES
    assert list(versions.versions_of(client, name)) == [kept, f"{name}-v0002"]
    require_tidy(client, name)


def test_a_way_back_whose_encoder_is_gone(client, pipelines, documents, old, command):
    name = pipelines
    printed(run(*command, "--json"))
    client.update(index=name, id="d1", body={"doc": {"seen": 7}})
    client.delete(index=name, id="d2")
    held = {**documents, "d1": {**documents["d1"], "seen": 7}}
    del held["d2"]
    old.shutdown()
    old.server_close()
    # Where no text was changed, nothing is encoded.
    assert printed(run("rollback", name, "--json"))["kind"] == "reencode"
    require_encoded(client, name, held, vectors_of(old), 1.0)
    printed(run(*command, "--json"))
    assert live(client, name) == f"{name}-v0003"
    client.index(index=name, id="new", body={"text": {"de": "A new one"}, "language": "de"}, refresh=True)
    stored = sources(client, f"{name}-v0001")
    sentence, code = refused(run("rollback", name))
    assert (sentence, code) == (
        f"What was written to {name}-v0003 must be encoded with {old.name} for {name}-v0001, so nothing was changed: "
        f"The embedding server at {old.url} cannot be reached: check that it is running and that this is its address.",
        1,
    )
    assert live(client, name) == f"{name}-v0003"
    assert sources(client, f"{name}-v0001") == stored
    with pytest.raises(AuthorizationException):
        client.index(index=f"{name}-v0001", id="x", body={})
    client.index(index=name, id="newer", body={"language": "de"})


def test_an_adopted_index_stays_as_it_is_but_for_its_vectors(client, index_name, new, cluster_env, tmp_path):
    with adopted(client, cluster_env, index_name, tmp_path) as name:
        before = raw_documents(cluster_env, f"{name}-v0001", 2)
        done = printed(run("reencode", name, "--encoder", new.name, "--alpha", 0, "--json"))
        assert (done["encoder"], done["alpha"], done["without_vector"]) == (new.name, 0, 0)
        after = raw_documents(cluster_env, done["index"], 2)
        assert after.keys() == before.keys()
        for identifier, now in after.items():
            then = before[identifier]
            assert (now.routing, now.version) == (then.routing, then.version)
            others = [{**one.source, "vec": None, "shift": None} for one in (now, then)]
            assert others[0] == others[1]
            assert now.source["shift"]["page"] == identifier
            text = " ".join([now.source["headline"], *now.source["body"]])
            stored = np.array(now.source["vec"], np.float64)
            assert np.abs(stored - vector(text, dimension=NEW)).max() < 1e-6
        # These had no vector before. Vectors that came with the data cannot be made here.
        client.index(index=name, id="new", body={"headline": "A new one"}, refresh=True)
        sentence, code = refused(run("rollback", name))
        assert (sentence, code) == (
            f"What was written to {done['index']} must be encoded with given for {name}-v0001, but these vectors came "
            "with the data, and nothing here can make them: use `langshift reencode` with an encoder that can.",
            2,
        )
        assert live(client, name) == done["index"]


def test_a_document_without_text_has_no_vector(client, index_name, new, tmp_path):
    texts = {
        "de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond am Wasser zieht.",
        "said": "The sea rises.",
    }
    rows = [{"_id": one, "text": text, "embedding": [1.0, 2.0]} for one, text in texts.items()]
    rows[1]["language"] = "th"
    corpus = write_lines(tmp_path / "corpus.jsonl", rows)
    given = saved(tmp_path, language_vectors(dimension=2), "given.safetensors")
    options = "--encoder", "given", "--vectors", given, "--json"
    printed(run("ingest", corpus, "--index", index_name, *options))
    # No load writes such a document, but any client may.
    source = sources(client, index_name)["de"]
    client.index(index=index_name, id="empty", body={**source, "text": {"de": " "}})
    known = vectors_of(new, 2)
    options = "--vectors", saved(tmp_path, known), "--max-refused", "0.4", "--json"
    done = printed(run("reencode", index_name, "--encoder", new.name, *options))
    assert done["without_vector"] == 1
    stored = sources(client, index_name)
    assert stored["empty"] == {name: source[name] for name in ("language", "language_confidence")} | {
        "text": {"de": " "}
    }
    for one, tag in (("de", "de"), ("said", "th")):
        shifted = vector(texts[one], dimension=NEW) - known.vectors[tag]
        assert np.abs(np.array(stored[one]["embedding"]) - shifted).max() < 1e-5


def test_the_same_encoder_has_nothing_to_do(client, pipelines, documents, old, tmp_path):
    name = pipelines
    metadata.change(client, f"{name}-v0001", {metadata.ANCHORS: {"spread": 0.1}})
    encoded = texts_encoded(old)
    same = "reencode", name, "--encoder", old.name, "--vectors", tmp_path / "old.safetensors"
    done = run(*same)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"{name} ({name}-v0001) is already encoded with {old.name}, with the same shift: nothing was changed.\n"
    )
    assert texts_encoded(old) == encoded + PROBES
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]
    # Another alpha makes other vectors, to which the calibration does not belong.
    done = run(*same, "--alpha", 0.25)
    assert done.stderr == ""
    require_encoded(client, name, documents, vectors_of(old), 0.25)
    assert metadata.ANCHORS not in metadata.read_metadata(client, f"{name}-v0002")


@pytest.mark.usefixtures("documents")
def test_what_cannot_be_encoded_with_is_refused(client, pipelines, new, vectors):
    name = pipelines
    assert refused(run("reencode", name, "--encoder", "given")) == (
        "The encoder given encodes no texts: name the one that the new version is to have, such as e5-small, "
        "st:NAME_OR_PATH or http:URL#MODEL.",
        2,
    )
    assert refused(run("reencode", name, "--encoder", new.name)) == (
        f"There are no language vectors for the encoder {new.name}: give some with --vectors, or --alpha 0 to index "
        "without a shift.",
        2,
    )
    client.indices.put_settings(index=name, body={"index": {"blocks.read_only": True}})
    sentence, code = refused(run("reencode", name, "--encoder", new.name, "--vectors", vectors))
    client.indices.put_settings(index=name, body={"index": {"blocks.read_only": None}})
    assert (sentence.partition(":")[0], code) == (
        f"Index {name}-v0001 has the block index.blocks.read_only, with which a reencode cannot hold back the last "
        "writes",
        1,
    )
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]


def test_what_the_cluster_refuses_for_a_while_is_sent_again(client, pipelines, documents, new, vectors):
    name, block = pipelines, "index.blocks.write"

    def refuse():
        client.indices.put_settings(index=f"{name}-v0002", body={block: True})
        threading.Timer(
            1, client.indices.put_settings, kwargs={"index": f"{name}-v0002", "body": {block: None}}
        ).start()

    request = PipelineOptions(new.name, vectors=vectors, alpha=0.5)
    reencode(client, name, request, watch=Once("copying", refuse))
    require_encoded(client, name, documents, vectors_of(new, 2), 0.5)
    assert texts_encoded(new) == COUNT + PROBES + SAMPLE


def test_answers_that_are_lost_and_a_point_in_time_that_is_gone(
    client, through, proxy, pipelines, documents, new, vectors
):
    name, request = pipelines, PipelineOptions(new.name, vectors=vectors, alpha=0.5)
    searches = iter([page(503), cut_before, passed, whole(GONE)])

    def disturb():
        proxy.inject("/_bulk", [cut_after, page(503), cut_before])
        proxy.inject("/_mget", [page(503), cut_midway])
        proxy.inject("/_search/point_in_time", [page(503)])
        proxy.inject("/_search", searches)

    done = reencode(through, name, request, watch=Once("copying", disturb)).done
    assert done.documents == COUNT
    require_encoded(client, name, documents, vectors_of(new, 2), 0.5)
    require_tidy(client, name)
    assert next(searches, None) is None
    # Documents of the first page may have been on their way when the point in time was gone.
    assert texts_encoded(new) <= 2 * COUNT + PROBES + SAMPLE


@pytest.mark.usefixtures("documents")
def test_what_the_cluster_refuses_for_good_ends_it(client, pipelines, new, vectors):
    name, request = pipelines, PipelineOptions(new.name, vectors=vectors, alpha=0.5)
    limit = {"index.mapping.nested_objects.limit": 2}

    def refuse():
        client.indices.put_settings(index=f"{name}-v0002", body=limit)

    client.indices.put_mapping(index=name, body={"properties": {"parts": {"type": "nested"}}})
    client.index(index=name, id="many", body={"text": {"de": "x"}, "language": "de", "parts": [{"n": 1}] * 3})
    with pytest.raises(ClusterError) as raised:
        reencode(client, name, request, watch=Once("copying", refuse))
    assert str(raised.value) == (
        "Document many cannot be copied: The number of nested documents has exceeded the allowed limit of [2]. This "
        "limit can be set by changing the [index.mapping.nested_objects.limit] index level setting."
    )
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]
    client.index(index=name, id="x", body={"language": "de"})


@pytest.mark.usefixtures("documents")
def test_an_encoder_that_gives_other_vectors_each_time_is_refused(client, pipelines, new, vectors):
    name, request = pipelines, PipelineOptions(new.name, vectors=vectors, alpha=0.5)

    def drift(handler, usual):
        for one in usual["data"]:
            one["embedding"] = one["embedding"][::-1]
        handler.send(200, usual)

    def change():
        new.always = drift

    with pytest.raises(ClusterError) as raised:
        reencode(client, name, request, watch=Once("checking", change))
    sentence = str(raised.value)
    assert sentence.startswith("The vector of document d")
    assert sentence.endswith(
        f" in {name}-v0002 is not the one that {new.name} gives for its text, so {name} still points to {name}-v0001: "
        "check that the encoder always gives the same vector for the same text, then run the command again."
    )
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]


def test_another_run_takes_over(client, pipelines, documents, new, vectors):
    name, request = pipelines, PipelineOptions(new.name, vectors=vectors, alpha=0.5)
    with pytest.raises(langshift.LangshiftError, match="Another "):
        reencode(client, name, request, watch=Once("copying", lambda: reencode(client, name, request)))
    require_encoded(client, name, documents, vectors_of(new, 2), 0.5)
    assert live(client, name) == f"{name}-v0002"
    require_tidy(client, name)


def test_an_encoder_that_fails_leaves_what_was_encoded(client, pipelines, documents, new, vectors, command):
    name = pipelines

    def fail():
        new.key = "secret"

    request = PipelineOptions(new.name, vectors=vectors, alpha=0.5)
    with pytest.raises(langshift.LangshiftError, match="requires a key"):
        reencode(client, name, request, watch=Once("copying", fail))
    listed = printed(run("index", "list", "--json"))["versions"]
    (found,) = [one for one in listed if one["version"] == f"{name}-v0002"]
    assert (found["state"], found["unfinished"], found["origin"]["kind"]) == ("unfinished", "reencode", "reencode")
    new.key = None
    printed(run(*command, "--json"))
    require_encoded(client, name, documents, vectors_of(new, 2), 0.5)
