"""Back to the version before, with what was written since."""

import numpy as np
import pytest
from given_data import run
from shifted_index import Corpus, language_vectors, printed, refused, require_vectors, saved, sources
from stamps import stamp_of

from langshift.plugin import versions

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors(alpha=0.75, alphas={"th": 0.5})
OTHERS = language_vectors(2, ("en", "th", "zh"), pivot="de", alpha=0.5)


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def name(index_name, corpus, tmp_path):
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN))
    return index_name


def write_since(client, name, corpus, vectors, alpha):
    """A document written anew, one changed and one deleted, as a client that knows the live version's shift does."""
    source = sources(client, name)["th-1"]
    corpus.languages["th-9"], corpus.raw["th-9"] = "th", np.arange(1.0, 7.0)
    shifted = corpus.expected("th-9", vectors, alpha)
    client.index(index=name, id="th-9", body={**source, "embedding": shifted.tolist()})
    client.update(index=name, id="de-1", body={"doc": {"seen": True}})
    client.delete(index=name, id="vi-0")
    del corpus.languages["vi-0"]


def test_what_was_written_since_a_retune_is_not_lost(client, name, corpus, tmp_path):
    path = saved(tmp_path, OTHERS, "new.safetensors")
    printed(run("retune", name, "--vectors", path, "--alpha", 1, "--json"))
    write_since(client, name, corpus, OTHERS, 1.0)
    done = run("rollback", name)
    assert (done.exit_code, done.stderr) == (0, ""), done.exception
    assert done.stdout == (
        f"{name} points to {name}-v0001 again: 24 documents, 2 carried over and 1 deleted since {name}-v0002 replaced "
        f"it. {name}-v0002 is kept.\n"
    )
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    assert sources(client, name)["de-1"]["seen"]
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001", f"{name}-v0002"]
    # It takes writes again, and can be retuned again.
    client.delete(index=name, id="zh-0")
    del corpus.languages["zh-0"]
    printed(run("retune", name, "--alpha", 0.25, "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.25)
    assert versions.live(client, name).index == f"{name}-v0003"


def remedy(name):
    return f"use `langshift retune {name} --alpha A` to create one with the alpha that you want."


def nothing_before(name):
    return f"There is no version of {name} before {name}-v0001: {remedy(name)}", 1


def test_what_clients_write_is_shifted_afterwards_where_it_was_before(client, name):
    printed(run("retune", name, "--alpha", 1, "--json"))
    printed(run("pipeline", "install", name, "--json"))
    told = printed(run("rollback", name, "--json"))
    assert told.pop("seconds") >= told.pop("blocked") >= 0
    assert told == {
        "name": name,
        "index": f"{name}-v0001",
        "left": f"{name}-v0002",
        "kind": "retune",
        "documents": 24,
        "caught_up": 0,
        "deleted": 0,
    }
    assert refused(run("rollback", name)) == nothing_before(name)
    client.index(index=name, id="new", body={"text": "neu", "language": "de", "embedding": [1.0] * 6})
    source = client.get(index=name, id="new")["_source"]
    assert stamp_of(source) == {"vectors": KNOWN.hash, "alpha": 0.75, "language": "de"}
    assert np.abs(np.array(source["embedding"]) - (1 - 0.75 * KNOWN.vectors["de"])).max() < 1e-6
    client.ingest.delete_pipeline(id=f"langshift-{name}-*")


def test_after_a_load_its_documents_are_told_to_be_missing(client, name, corpus, tmp_path):
    corpus.ingest(name, "--vectors", saved(tmp_path, KNOWN), "--alpha", 1, "--if-exists", "new-version")
    client.index(index=name, id="more", body={"language": "en"})
    done = run("rollback", name)
    assert done.exit_code == 0, done.exception
    assert done.stdout == (
        f"{name} points to {name}-v0001 again: 24 documents. What was loaded into or written to {name}-v0002 is "
        f"not in it. {name}-v0002 is kept.\n"
    )
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    assert client.exists(index=f"{name}-v0002", id="more")


def test_where_there_is_nothing_to_go_back_to(client, name):
    assert refused(run("rollback", name)) == nothing_before(name)
    run("retune", name, "--alpha", 1)
    client.indices.delete(index=f"{name}-v0001")
    assert refused(run("rollback", name)) == (
        f"The version before {name}-v0002, {name}-v0001, was dropped: {remedy(name)}",
        1,
    )
    none = f"{name}-none"
    assert refused(run("rollback", none)) == (f"There is no index {none}: nothing can be rolled back.", 1)
    assert refused(run("rollback", f"{name}-v0002")) == (
        f"{name}-v0002 is an index, not an alias for versions: give the alias, or another name.",
        1,
    )
