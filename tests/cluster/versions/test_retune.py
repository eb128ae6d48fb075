"""Another shift for the documents of a live index, by the command line: what is in it afterwards."""

import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import started
from given_data import run
from shifted_index import (
    Corpus,
    language_vectors,
    printed,
    refused,
    require_vectors,
    saved,
    sources,
    with_directions,
)
from stamps import stamp_of

from langshift import __version__
from langshift.debias.debiaser import Debiaser
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import ClusterError
from langshift.ingest.config import EmbeddingPipeline
from langshift.plugin import metadata, pipelines, versions
from langshift.plugin.metadata import FieldNames
from langshift.plugin.retune import RetuneRequest, retune
from langshift.plugin.stored_shift import to_metadata
from langshift.retrieval.plans import execute
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.searcher import Searcher

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors(alpha=0.75, alphas={"th": 0.5})
OTHERS = language_vectors(2, ("en", "th", "zh"), pivot="de", alpha=0.5, alphas={"zh": 0.25})
UNMEASURED = (
    "Nothing was measured: --gate DATASET replays judged queries on both versions before the new one goes live, and "
    "keeps the old one if anything is lost.\n"
)


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def name(index_name, corpus, tmp_path):
    """An index of the corpus, made with ``KNOWN`` as that recommends."""
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN))
    return index_name


def test_an_index_of_sixteen_shards_is_retuned_as_one_of_one(client, index_name, corpus, tmp_path):
    (tmp_path / "own.json").write_text('{"settings": {"number_of_shards": 16}}')
    options = ("--vectors", saved(tmp_path, KNOWN), "--template", tmp_path / "own.json")
    corpus.ingest(index_name, *options)
    done = printed(run("retune", index_name, "--alpha", 0.6, "--json"))
    assert metadata.read_settings(client, done["index"])["number_of_shards"] == "16"
    require_vectors(client, index_name, corpus, KNOWN, 0.6)


def test_scales_of_all_languages_and_of_single_ones_there_and_back(client, name, corpus):
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    done = run("retune", name, "--alpha", 0.6, "--alpha-for", "tha=.3")
    assert (done.exit_code, done.stderr) == (0, UNMEASURED), done.exception
    assert done.stdout == (
        f"{name} now points to {name}-v0002 with alpha 0.6 (th 0.3): 24 documents, 0 caught up, checked. "
        f"The previous version, {name}-v0001, is kept: `langshift rollback {name}` returns to it.\n"
    )
    require_vectors(client, name, corpus, KNOWN, 0.6, {"th": 0.3})
    require_vectors(client, f"{name}-v0001", corpus, KNOWN, 0.75, {"th": 0.5})
    # On top of what the index has.
    printed(run("retune", name, "--alpha-for", "de=0", "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.6, {"th": 0.3, "de": 0.0})
    # Forgetting the scales of single languages; from nothing at all back to what it was.
    printed(run("retune", name, "--alpha", 0, "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.0)
    assert versions.live(client, name).fingerprint.alphas == {}
    printed(run("retune", name, "--alpha", 0.75, "--alpha-for", "th=0.5", "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    assert list(versions.versions_of(client, name)) == [f"{name}-v000{number}" for number in range(1, 6)]
    first, last = sources(client, f"{name}-v0001"), sources(client, name)
    for document, source in first.items():
        before, after = (np.array(one.pop("embedding"), np.float64) for one in (source, last[document]))
        assert np.abs(before - after).max() <= 1e-6 * np.linalg.norm(before)
        assert source == last[document]


def test_a_gamma_goes_and_comes_back(client, name, index_name, corpus, tmp_path):
    assert refused(run("retune", name, "--gamma", 0.97)) == (
        f"Index {name} was built without the common mean and the directions that a gamma takes out: give language "
        "vectors that have them with --vectors.",
        2,
    )
    assert refused(run("retune", name, "--gamma", 0.7)) == (
        "gamma 0.7 cannot be used: it must be 0, or 0.9 to 0.98. Values between find less than either, and what 1 "
        "takes out of a vector cannot be put back.",
        2,
    )
    known = with_directions(KNOWN)
    printed(run("retune", name, "--vectors", saved(tmp_path, known), "--json"))
    require_vectors(client, name, corpus, known, 0.75, {"th": 0.5})
    told = printed(run("retune", name, "--gamma", 0.97, "--json"))
    assert (told["alpha"], told["alphas"], told["gamma"]) == (0.75, {"th": 0.5}, 0.97)
    require_vectors(client, name, corpus, known, 0.75, {"th": 0.5}, 0.97)
    # Between two gammas, with another alpha, and to vectors that know of none. The vectors of languages are several
    # times as long as some documents here, and each step rounds what the next multiplies.
    far = {"tolerance": 5e-6}
    printed(run("retune", name, "--gamma", 0.9, "--alpha", 0, "--json"))
    require_vectors(client, name, corpus, known, 0.0, {}, 0.9, **far)
    printed(run("retune", name, "--vectors", saved(tmp_path, OTHERS, "others.safetensors"), "--json"))
    require_vectors(client, name, corpus, OTHERS, 0.5, {"zh": 0.25}, **far)
    printed(run("retune", name, "--vectors", saved(tmp_path, known), "--gamma", 0.98, "--json"))
    require_vectors(client, name, corpus, known, 0.75, {"th": 0.5}, 0.98, **far)
    printed(run("retune", name, "--gamma", 0, "--json"))
    require_vectors(client, name, corpus, known, 0.75, {"th": 0.5}, **far)
    # What is written meanwhile takes the way back, too.
    client.index(index=name, id="de-0", body=client.get(index=name, id="de-1")["_source"])
    corpus.raw["de-0"] = corpus.raw["de-1"]
    printed(run("rollback", name, "--json"))
    assert versions.live(client, index_name).fingerprint.gamma == 0.98
    require_vectors(client, name, corpus, known, 0.75, {"th": 0.5}, 0.98, **far)


def test_other_vectors_and_back(client, name, corpus, tmp_path):
    path = saved(tmp_path, OTHERS, "others.safetensors")
    told = printed(run("retune", name, "--vectors", path, "--json"))
    assert (told["alpha"], told["alphas"], told["vectors"]) == (0.5, {"zh": 0.25}, OTHERS.hash)
    # Documents in the former pivot language and in zh move now, those in German no more; zh-TW takes what zh has.
    require_vectors(client, name, corpus, OTHERS, 0.5, {"zh": 0.25})
    assert versions.live(client, name).fingerprint.pivot == "de"
    printed(run("retune", name, "--vectors", saved(tmp_path, KNOWN), "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})


def test_what_an_index_says_of_itself(client, name):
    kept = metadata.read_metadata(client, f"{name}-v0001")
    client.indices.put_mapping(index=name, body={"_meta": {**kept, "theirs": {"owner": "somebody"}}})
    made = versions.live(client, name).fingerprint
    run("retune", name, "--alpha", 1)
    now = metadata.read_metadata(client, f"{name}-v0002")
    origin = now.pop(metadata.ORIGIN)
    assert (origin["kind"], origin["from"]) == ("retune", f"{name}-v0001")
    expected = replace(made, alpha=1.0, alphas={}, langshift=__version__).to_dict()
    kept.pop(metadata.ORIGIN, None)
    assert now == {**kept, "theirs": {"owner": "somebody"}, "langshift": expected}
    # The mapping and settings are those of the version before.
    first, second = (client.indices.get(index=f"{name}-v000{number}")[f"{name}-v000{number}"] for number in (1, 2))
    assert first["mappings"]["properties"] == second["mappings"]["properties"]
    for one in (first, second):
        for setting in ("creation_date", "provided_name", "uuid", "blocks"):
            one["settings"]["index"].pop(setting, None)
    assert first["settings"] == second["settings"]


def test_searching_follows(client, name):
    run("retune", name, "--alpha", 0.5)
    opened = Searcher(client, name)
    assert (opened.index.index, opened.index.fingerprint.alpha) == (f"{name}-v0002", 0.5)
    found = opened.plan(SearchQuery("words", "de", np.ones(6, np.float32)), size=5)
    assert len(execute(client, opened.index.index, found).hits) == 5


def test_json_and_what_would_change_nothing(client, name):
    done = run("retune", name, "--alpha", 0.6, "--json")
    assert done.stderr.splitlines() == [
        f"{name} now points to {name}-v0002 with alpha 0.6: 24 documents, 0 caught up, checked. "
        f"The previous version, {name}-v0001, is kept: `langshift rollback {name}` returns to it.",
        UNMEASURED.strip(),
    ]
    told = printed(done)
    assert told.pop("seconds") >= told.pop("blocked") >= 0
    expected = {
        "name": name,
        "index": f"{name}-v0002",
        "before": f"{name}-v0001",
        "documents": 24,
        "caught_up": 0,
        "deleted": 0,
        "alpha": 0.6,
        "alphas": {},
        "gamma": 0.0,
        "own": 0.0,
        "vectors": KNOWN.hash,
        "changed": True,
        "gate": None,
        "verdict": None,
    }
    assert told == expected
    told = printed(run("retune", name, "--alpha", 0.6, "--json"))
    nothing = {"before": f"{name}-v0002", "changed": False, "seconds": 0, "blocked": 0}
    assert told == expected | nothing
    done = run("retune", name, "--alpha-for", "th=0.6")
    assert done.stdout == (
        f"{name} ({name}-v0002) already has alpha 0.6 and these language vectors: nothing was changed.\n"
    )
    assert len(versions.versions_of(client, name)) == 2


def test_documents_of_other_scales_come_to_those_of_the_index(client, name, corpus):
    """As a rollback, or a reindex by hand, may leave them: the index says one thing, their stamps another."""
    source = client.get(index=name, id="de-0")["_source"]
    source["embedding"] = corpus.expected("de-0", KNOWN, 0.25).tolist()
    source["shift"]["alpha"] = 0.25
    client.index(index=name, id="de-0", body=source)
    assert printed(run("retune", name, "--alpha", 0.75, "--alpha-for", "th=0.5", "--json"))["changed"]
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    assert not printed(run("retune", name, "--alpha", 0.75, "--alpha-for", "th=0.5", "--json"))["changed"]


def test_an_update_that_changes_the_language_leaves_nothing_of_the_other_behind(client, name, corpus):
    """An upsert in bulk is merged with the stamp that is there, of which the tag and the vector's language stay."""
    printed(run("pipeline", "install", name, "--json"))
    lines = []
    for document, language in {"th-0": "vi", "th-1": "en", "zh-TW-0": "de"}.items():
        corpus.languages[document] = language
        part = {"language": language, "embedding": corpus.raw[document].tolist()}
        lines += [{"update": {"_id": document}}, {"doc": part, "doc_as_upsert": True}]
    assert not client.bulk(index=name, body=lines)["errors"]
    left = sources(client, name)
    assert (left["th-0"]["shift"]["language"], left["zh-TW-0"]["shift"]["tag"]) == ("th", "zh-TW")
    printed(run("retune", name, "--alpha", 0.5, "--json"))
    require_vectors(client, name, corpus, KNOWN, 0.5)
    assert "tag" not in sources(client, name)["zh-TW-0"]["shift"]
    client.ingest.delete_pipeline(id=f"langshift-{name}-*")


def test_what_a_killed_run_has_left_goes_where_nothing_is_left_to_do(client, name, corpus, monkeypatch):
    printed(run("pipeline", "install", name, "--json"))

    def interrupt(progress):
        if progress.stage == "swapping":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("langshift.plugin.transfer.run._leave", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            retune(client, name, RetuneRequest(1.0), watch=interrupt)
    settings = client.indices.get_settings(index=f"{name}-v0001")[f"{name}-v0001"]["settings"]["index"]
    assert settings["blocks"] == {"write": "true"}
    assert not printed(run("retune", name, "--alpha-for", "th=0.5", "--json"))["changed"]
    client.index(index=name, id="de-0", body=client.get(index=name, id="de-0")["_source"])
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]
    assert set(client.ingest.get_pipeline(id=f"langshift-{name}-*")) == {f"langshift-{name}-v0001"}
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    client.ingest.delete_pipeline(id=f"langshift-{name}-*")


def test_an_index_made_without_a_shift(client, index_name, corpus, tmp_path):
    corpus.ingest(index_name, "--alpha", 0)
    assert refused(run("retune", index_name, "--alpha", 0.5)) == (
        f"Index {index_name} was built without language vectors, so nothing can be shifted: give some with --vectors.",
        2,
    )
    assert not printed(run("retune", index_name, "--alpha", 0, "--json"))["changed"]
    run("retune", index_name, "--vectors", saved(tmp_path, KNOWN))
    require_vectors(client, index_name, corpus, KNOWN, 0.75, {"th": 0.5})


def test_what_is_written_before_it_goes_live_is_caught_up_with(client, name, corpus):
    added = "de-0"
    body = client.get(index=name, id="de-1")["_source"]

    def write(before, after):
        assert (before, after) == (f"{name}-v0001", f"{name}-v0002")
        client.index(index=name, id=added, body=body)
        client.delete(index=name, id="th-0")

    done = retune(client, name, RetuneRequest(1.0), check=write)
    assert (done.documents, done.caught_up, done.deleted) == (23, 1, 1)
    corpus.raw[added] = corpus.raw["de-1"]
    del corpus.languages["th-0"]
    require_vectors(client, name, corpus, KNOWN, 1.0)


def test_a_pipeline_follows(client, name):
    printed(run("pipeline", "install", name, "--json"))
    printed(run("retune", name, "--alpha", 1, "--json"))
    client.index(index=name, id="new", body={"text": "neu", "language": "de", "embedding": [1.0] * 6})
    source = client.get(index=name, id="new")["_source"]
    assert stamp_of(source) == {"vectors": KNOWN.hash, "alpha": 1.0, "language": "de"}
    assert np.abs(np.array(source["embedding"]) - (1 - KNOWN.vectors["de"])).max() < 1e-6
    for number in (1, 2):
        settings = client.indices.get_settings(index=f"{name}-v000{number}")[f"{name}-v000{number}"]["settings"]
        assert settings["index"]["default_pipeline"] == f"langshift-{name}-v000{number}"

    def refuse(*_):
        raise ClusterError("not this one")

    with pytest.raises(ClusterError, match=r"^not this one$"):
        retune(client, name, RetuneRequest(0.5), check=refuse)
    assert set(client.ingest.get_pipeline(id=f"langshift-{name}-*")) == {
        f"langshift-{name}-v0001",
        f"langshift-{name}-v0002",
    }
    client.ingest.delete_pipeline(id=f"langshift-{name}-*")


def test_aliases_that_stay_behind_are_named(client, name):
    def told(index):
        return f"The alias {name}-prod still points to {index}, now read-only: point it to the live version too.\n"

    client.indices.put_alias(index=f"{name}-v0001", name=f"{name}-prod")
    done = run("retune", name, "--alpha", 1)
    assert (done.exit_code, done.stderr) == (0, told(f"{name}-v0001") + UNMEASURED)
    # Where nothing is changed, nothing is left.
    assert run("retune", name, "--alpha", 1).stderr == ""
    client.indices.delete_alias(index=f"{name}-v0001", name=f"{name}-prod")
    client.indices.put_alias(index=f"{name}-v0002", name=f"{name}-prod")
    done = run("rollback", name, "--json")
    assert (done.exit_code, done.stderr.splitlines()[-1] + "\n") == (0, told(f"{name}-v0002"))


def test_a_pipeline_that_is_installed_meanwhile_follows_too(client, name):
    def install(progress):
        if progress.stage == "copying" and pipelines.installed(client, f"{name}-v0001") is None:
            printed(run("pipeline", "install", name, "--json"))

    retune(client, name, RetuneRequest(1.0), watch=install)
    assert pipelines.installed(client, f"{name}-v0002") is not None
    client.ingest.delete_pipeline(id=f"langshift-{name}-*")


def test_an_index_with_fields_of_its_own(client, index_name):
    fields = FieldNames(vector="dense.v1", language="lang", confidence="sure", stamp="moved", texts=("body",))
    making = EmbeddingPipeline(
        open_encoder("given", vector_spec=VectorSpec(6, False)), Debiaser(KNOWN, alpha=0.0), open_detector()
    )
    kept = {
        "langshift": making.fingerprint().to_dict(),
        "langshift_fields": fields.to_dict(),
        **to_metadata(making.debias),
    }
    method = {"name": "hnsw", "engine": "lucene", "space_type": "l2"}
    properties = {
        "dense": {"properties": {"v1": {"type": "knn_vector", "dimension": 6, "method": method}}},
        "lang": {"type": "keyword"},
        "body": {"type": "text", "analyzer": "german"},
        "moved": {"properties": {"vectors": {"type": "keyword"}, "alpha": {"type": "float"}}},
    }
    body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": properties, "_meta": kept}}
    client.indices.create(index=f"{index_name}-v0001", body=body | {"aliases": {index_name: {}}})
    raw = np.arange(1.0, 7.0)
    source = {"dense": {"v1": raw.tolist(), "model": "m"}, "lang": "th", "body": "Text", "sure": 1.0}
    client.index(index=index_name, id="1", body=source | {"moved": {"vectors": KNOWN.hash, "alpha": 0.0}})
    printed(run("retune", index_name, "--alpha", 1, "--json"))
    found = client.get(index=index_name, id="1")["_source"]
    there = np.array(found["dense"].pop("v1"), np.float64)
    assert np.abs(there - (raw - KNOWN.vectors["th"].astype(np.float64))).max() < 1e-6 * np.linalg.norm(raw)
    stamp = {"vectors": KNOWN.hash, "alpha": 1.0, "language": "th", "page": "1"}
    assert found == source | {"dense": {"model": "m"}, "moved": stamp}
    printed(run("rollback", index_name, "--json"))
    assert client.get(index=index_name, id="1")["_source"]["dense"]["v1"] == raw.tolist()


def test_asked_to_end_it_leaves_the_old_version_and_the_same_command_goes_on(client, name, cluster_env, corpus):
    with started("retune", name, "--alpha", "1", "--throttle", "1", url=cluster_env) as running:
        deadline = time.monotonic() + 120
        while len(versions.versions_of(client, name)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.terminate()
        out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (130, b"")
    told = f"{name} stays available; run the same command to resume where this one stopped."
    assert [line for line in err.decode().splitlines() if line] == [told, "Interrupted."]
    require_vectors(client, name, corpus, KNOWN, 0.75, {"th": 0.5})
    client.index(index=name, id="written", body={"language": "en"})
    client.delete(index=name, id="written")
    assert printed(run("retune", name, "--alpha", 1, "--json"))["index"] == f"{name}-v0002"
    require_vectors(client, name, corpus, KNOWN, 1.0)
