"""What a load replaces stays until its own version is live and found; and the way to any version, with its writes."""

import numpy as np
import pytest
from embeddings_server import embeddings_server
from given_data import run, write_lines
from plain_index import PLAIN, made
from reencoded_index import NEW, require_encoded, vectors_of, write_texts
from shifted_index import Corpus, language_vectors, printed, require_vectors, saved, sources

from langshift.plugin import metadata, version_writer, versions
from langshift.plugin.retune import roll_back
from langshift.server_errors import Unreadable

KNOWN = language_vectors(alpha=0.75)


def replacing(client, name):
    """A version with documents that is to replace the live one."""
    target = version_writer.open_for_writing(client, name, PLAIN, if_exists="replace")
    client.index(index=target.index, id="new", body={"n": 1})
    return target


def published_but(monkeypatch, client, target, killed):
    """Publish, and die right before a function of the server's is called."""

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client.indices, killed, die)
        with pytest.raises(KeyboardInterrupt):
            version_writer.publish(client, target)


def test_a_version_that_searches_do_not_find_deletes_nothing(client, index_name, monkeypatch):
    old = made(client, index_name, 2)
    target = replacing(client, index_name)
    real = versions.move_alias

    def filtered(client, name, before, index):
        real(client, name, before, index, {"filter": {"term": {"n": 7}}})

    with monkeypatch.context() as patch:
        patch.setattr(versions, "move_alias", filtered)
        with pytest.raises(Unreadable, match="do not find the documents of"):
            version_writer.publish(client, target)
    assert client.count(index=old.index)["count"] == 2
    # Once that is mended, the same load goes on, and what it replaces goes.
    client.indices.delete_alias(index=target.index, name=index_name)
    client.indices.put_alias(index=target.index, name=index_name)
    version_writer.publish(client, version_writer.reopen(client, index_name, target.index, target.uuid))
    assert versions.versions_of(client, index_name) == [target.index]


@pytest.mark.parametrize("killed", ["delete"])
def test_after_a_kill_a_rollback_goes_to_what_was_to_be_replaced(client, index_name, monkeypatch, killed):
    old = made(client, index_name, 2)
    target = replacing(client, index_name)
    published_but(monkeypatch, client, target, killed)
    assert versions.version_behind(client, index_name) == target.index
    done = roll_back(client, index_name)
    assert (done.index, done.documents, done.kind) == (old.index, 2, "load")
    assert metadata.unfinished(client, target.index) is None


@pytest.mark.parametrize("if_exists", ["replace", "new-version"])
def test_after_a_kill_the_next_load_deletes_what_was_to_be_replaced(client, index_name, monkeypatch, if_exists):
    made(client, index_name, 2)
    target = replacing(client, index_name)
    published_but(monkeypatch, client, target, "delete")
    after = version_writer.open_for_writing(client, index_name, PLAIN, if_exists=if_exists)
    assert versions.versions_of(client, index_name) == [target.index, after.index]
    version_writer.publish(client, after)
    assert versions.version_behind(client, index_name) == after.index


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def name(cluster_env, index_name, corpus, tmp_path):  # noqa: ARG001 - the address of the cluster
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN))
    return index_name


def write(client, name, corpus, alpha, new, gone):
    """A document written anew and one deleted, as a client that knows the live version's shift does."""
    corpus.languages[new], corpus.raw[new] = "th", np.arange(1.0, 7.0) + len(corpus.raw)
    shifted = corpus.expected(new, KNOWN, alpha).tolist()
    client.index(index=name, id=new, body={**sources(client, name)["th-1"], "embedding": shifted})
    client.delete(index=name, id=gone)
    del corpus.languages[gone]


def test_versions_that_retunes_have_made_of_each_other_have_each_others_writes(client, name, corpus):
    for alpha in (1, 0.5):
        printed(run("retune", name, "--alpha", alpha, "--json"))
    write(client, name, corpus, 0.5, "new-3", "vi-0")
    # Over the version between them.
    shown = printed(run("rollback", name, "--to", 1, "--json"))
    assert (shown["index"], shown["kind"], shown["documents"]) == (f"{name}-v0001", "retune", len(corpus.languages))
    require_vectors(client, name, corpus, KNOWN, 0.75)
    write(client, name, corpus, 0.75, "new-1", "en-0")
    # Forward again, to a version that was made of it before.
    done = run("rollback", name, "--to", "v0002")
    assert done.exit_code == 0, done.exception
    assert f"{name} now points to {name}-v0002: {len(corpus.languages)} documents, " in done.stdout
    require_vectors(client, name, corpus, KNOWN, 1)
    write(client, name, corpus, 1, "new-2", "de-0")
    assert printed(run("rollback", name, "--json"))["index"] == f"{name}-v0001"
    require_vectors(client, name, corpus, KNOWN, 0.75)
    assert client.indices.get_settings(index=name)[f"{name}-v0001"]["settings"]["index"].get("blocks") is None


def test_a_version_that_a_retune_has_left_takes_writes_when_it_is_live_again(client, name, corpus, tmp_path):
    printed(run("retune", name, "--alpha", 1, "--json"))
    corpus.ingest(name, "--vectors", saved(tmp_path, KNOWN), "--if-exists", "new-version")
    assert "What was loaded into or written to" in run("rollback", name, "--to", 1).stdout
    client.update(index=name, id="de-1", body={"doc": {"seen": True}})
    client.index(index=name, id="more", body={"language": "en"})
    for version in ("v0003", "v0002", "v0001"):
        assert printed(run("rollback", name, "--json"))["index"] == f"{name}-{version}"
    # It has what the version has that was made of it, and nothing else.
    require_vectors(client, name, corpus, KNOWN, 0.75)
    assert "seen" not in sources(client, name)["de-1"]


def test_versions_that_a_reencode_has_made_of_each_other_have_each_others_writes(
    client,
    cluster_env,  # noqa: ARG001 - the address of the cluster
    index_name,
    tmp_path,
    monkeypatch,
):
    path, documents = write_texts(tmp_path / "corpus.jsonl", 9)
    with embeddings_server() as old, embeddings_server() as new:
        new.dimension = NEW
        monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", f"{old.url},{new.url}")
        shifts = [vectors_of(server, seed) for seed, server in enumerate((old, new))]
        files = [saved(tmp_path, shift, f"{n}.safetensors") for n, shift in enumerate(shifts)]
        load = ("--index", index_name, "--encoder", old.name, "--vectors", files[0], "--alpha", 0.5, "--json")
        printed(run("ingest", path, *load))
        encode = ("--encoder", new.name, "--vectors", files[1], "--alpha", 0.5, "--json")
        printed(run("reencode", index_name, *encode))
        for version, shift in ((1, shifts[0]), (2, shifts[1]), (1, shifts[0])):
            printed(run("rollback", index_name, "--to", version, "--json"))
            require_encoded(client, f"{index_name}-v000{version}", documents, shift, 0.5)
            added = {"_id": f"new-{len(documents)}", "text": f"Text {len(documents)}", "language": "de"}
            more = write_lines(tmp_path / "more.jsonl", [added])
            same = (*load[:2], "--encoder", (old, new)[version - 1].name)
            done = run("ingest", more, *same, "--if-exists", "append", "--json")
            assert done.exit_code == 0, (done.output, done.exception)
            documents[added["_id"]] = {"text": added["text"], "language": "de"}
