"""Indices that cannot be retuned: refused before anything is made."""

import json

import numpy as np
import pytest
from command_line import langshift, refusal
from given_data import run
from shifted_index import Corpus, language_vectors, printed, refused, require_vectors, saved

from langshift.plugin import versions

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors(alpha=0.75, alphas={"th": 0.5})


@pytest.fixture
def name(index_name, tmp_path):
    """An index of a corpus, made with ``KNOWN`` as that recommends."""
    Corpus(tmp_path, each=1).ingest(index_name, "--vectors", saved(tmp_path, KNOWN))
    return index_name


def test_documents_that_cannot_be_taken_back_are_counted_before_anything_is_made(client, name):
    def told(why):
        return (
            f"{why}): index such documents again with `langshift ingest CORPUS --index {name} "
            "--if-exists append`, or delete them.",
            1,
        )

    def put(document, **shift):
        body = {"language": "th", "embedding": [1.0] * 6, **({"shift": shift} if shift else {})}
        client.index(index=name, id=document, body=body)

    put("bare")
    put("bare as well")
    client.index(index=name, id="without a vector", body={"language": "th"})
    sentence = refused(run("retune", name, "--alpha", 1))
    client.delete(index=name, id="bare")
    assert sentence == told(
        f"2 documents of {name}-v0001 cannot be retuned (for example, no "
        "stamp shows what was done to the vector of bare"
    )
    client.delete(index=name, id="bare as well")
    put("strange", vectors="abc", alpha=1.0, language="th")
    assert refused(run("retune", name, "--alpha", 1)) == told(
        f"1 document of {name}-v0001 cannot be retuned (for example, strange "
        "was shifted by language vectors other than the index's"
    )
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]
    # A vector that was not moved may name any: nothing has to be taken back.
    put("strange", vectors="abc", alpha=0.0)
    printed(run("retune", name, "--alpha", 1, "--json"))
    assert client.get(index=name, id="without a vector")["_source"] == {"language": "th"}
    moved = np.array(client.get(index=name, id="strange")["_source"]["embedding"])
    assert np.abs(moved - (1 - KNOWN.vectors["th"])).max() < 1e-6


def test_what_is_no_index_of_langshifts(client, name, cluster_env):
    none = f"{name}-none"
    assert refused(run("retune", none, "--alpha", 1)) == (
        f"There is no index {none}: create it with `langshift ingest CORPUS --index {none}`.",
        1,
    )
    assert refused(run("retune", f"{name}-v0001", "--alpha", 1)) == (
        f"{name}-v0001 is an index, not an alias for versions: give the alias, or another name.",
        1,
    )
    client.indices.create(index=f"{name}-theirs", body={"aliases": {f"{name}-alias": {}}})
    assert refused(run("retune", f"{name}-alias", "--alpha", 1)) == (
        f"Index {name}-theirs has no langshift fingerprint: it was not created by langshift.",
        1,
    )
    # As a person sees it.
    done = langshift("retune", name, "--alpha-for", "vi=0.5", url=cluster_env)
    assert done.returncode == 2
    assert refusal(done) == "There is no language vector for vi to scale: --alpha-for accepts de, th, zh-TW."


def test_vectors_that_do_not_come_back_as_they_were_written_are_refused(client, name, monkeypatch):
    # The cluster of the tests may have no faiss; which indices these are is tested where that is decided.
    monkeypatch.setattr("langshift.plugin.index_sample.vectors_come_back_normalised", lambda *_: True)
    assert refused(run("retune", name, "--alpha", 0.5)) == (
        f"Index {name}-v0001 stores its vectors with the engine faiss, cosinesimil and derived source, which returns "
        "them with norm 1 and not as they were written, so no shift can be undone: index the corpus again "
        "with `langshift ingest --if-exists new-version`, which switches derived source off.",
        1,
    )
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]


def test_an_index_that_is_read_only_is_refused_before_anything_is_copied(client, name):
    client.indices.put_settings(index=name, body={"index.blocks.read_only": True})
    try:
        sentence = refused(run("retune", name, "--alpha", 1))
        there = versions.versions_of(client, name)
    finally:
        client.indices.put_settings(index=name, body={"index.blocks.read_only": None})
    assert sentence == (
        f"Index {name}-v0001 has the block index.blocks.read_only, with which a retune cannot hold back the last "
        f'writes: remove it with `PUT /{name}-v0001/_settings` and {{"index.blocks.read_only": null}}, '
        "then run the command again.",
        1,
    )
    assert there == [f"{name}-v0001"]


def test_replicas_that_may_lag_are_refused_before_anything_is_copied(client, index_name, tmp_path):
    template = tmp_path / "template.json"
    settings = {"replication.type": "SEGMENT", "number_of_replicas": 1, "auto_expand_replicas": False}
    template.write_text(json.dumps({"settings": {"index": settings}}))
    corpus = Corpus(tmp_path, each=1)
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN), "--template", template)
    index = f"{index_name}-v0001"

    def told(index):
        return (
            f"Index {index} has replicas with segment replication, which may lag behind the latest writes while "
            f"documents are copied: remove them for now with `PUT /{index}/_settings` and "
            '{"index": {"number_of_replicas": 0, "auto_expand_replicas": false}}, then run again.',
            1,
        )

    assert refused(run("retune", index_name, "--alpha", 1)) == told(index)
    assert list(versions.versions_of(client, index_name)) == [index]
    # As it says.
    remedy = {"index": {"number_of_replicas": 0, "auto_expand_replicas": False}}
    client.indices.put_settings(index=index, body=remedy)
    printed(run("retune", index_name, "--alpha", 1, "--json"))
    client.indices.put_settings(index=index_name, body={"index": {"number_of_replicas": 1}})
    assert refused(run("rollback", index_name)) == told(f"{index_name}-v0002")
    client.indices.put_settings(index=index_name, body=remedy)
    printed(run("rollback", index_name, "--json"))
    require_vectors(client, index_name, corpus, KNOWN, 0.75, {"th": 0.5})
