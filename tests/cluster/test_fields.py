"""An index whose fields have names of their own is searched and replayed; so is a version by its own name."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from command_line import langshift, refusal
from plain_index import PLAIN, made

from langshift.commands.evaluate import evaluate
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import identity
from langshift.errors import ClusterError, FingerprintError, UsageError
from langshift.evaluate.datasets.texts import indexed_languages
from langshift.evaluate.measures import DEFAULT_MEASURES
from langshift.plugin import inventory, version_writer, versions
from langshift.plugin.metadata import FieldNames
from langshift.retrieval.hits import ScoringContext
from langshift.retrieval.plans import execute
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import USUAL, SearchSettings
from langshift.retrieval.searcher import Searcher

OWN = FieldNames(
    vector="vectors.body",
    language="langshift.language",
    confidence="langshift.confidence",
    stamp="langshift.shift",
    texts=("body", "head.line"),
)
TEXTS = {
    "tides-en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "tides-de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "bread-en": "Yeast makes the dough rise before it is baked in a hot oven.",
    "bread-de": "Hefe lässt den Teig aufgehen, bevor er im heißen Ofen gebacken wird.",
}
QUESTIONS = {"q1": "Why does the water level change?", "q2": "How is a loaf made?"}


@pytest.fixture(scope="module")
def name(client):
    """Two versions of an index with fields of its own, the second live; one document has only words."""
    name = f"langshift-test-fields-{uuid.uuid4().hex[:8]}"
    encoder = open_encoder("use-m")
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    properties = {
        "vectors": {"properties": {"body": {"type": "knn_vector", "dimension": encoder.dimension, "method": method}}},
        "langshift": {"properties": {"language": {"type": "keyword"}, "confidence": {"type": "float"}}},
        "body": {"type": "text", "analyzer": "english"},
        "head": {"properties": {"line": {"type": "text"}}},
        "language": {"type": "keyword"},
    }
    meta = {"langshift": replace(PLAIN, **identity(encoder)).to_dict(), "langshift_fields": OWN.to_dict()}
    body = {"settings": {"index": {"knn": True}}, "mappings": {"_meta": meta, "properties": properties}}
    for index in (f"{name}-v0001", f"{name}-v0002"):
        client.indices.create(index=index, body=body)
        for key, vector in zip(TEXTS, encoder.encode_documents(list(TEXTS.values())), strict=True):
            source = {
                "vectors": {"body": vector.tolist()},
                "langshift": {"language": key[-2:], "confidence": 1.0},
                "body": [TEXTS[key], "And so on."],
                "head.line": f"About {key[:5]}",
                "language": "the owner's",
            }
            client.index(index=index, id=key, body=source)
        client.index(index=index, id="bare", body={"body": "Nothing but words: xyzzy."}, params={"refresh": "true"})
    client.indices.put_alias(index=f"{name}-v0002", name=name)
    yield name
    inventory.drop_all(client, name)


@pytest.fixture(scope="module")
def searcher(client, name):
    return Searcher(client, name)


@pytest.fixture
def folder(tmp_path):
    """A dataset of the same documents; it names no language, and has translation groups."""
    corpus = [{"_id": key, "text": text, "group": key[:5]} for key, text in TEXTS.items()]
    queries = [{"_id": key, "text": text, "language": "en"} for key, text in QUESTIONS.items()]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    judged = [
        f"{query}\t{topic}-{tag}\t1\n" for query, topic in (("q1", "tides"), ("q2", "bread")) for tag in ("en", "de")
    ]
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *judged]))
    return tmp_path


def test_what_is_live_has_its_fields_and_languages(client, name):
    index = versions.live(client, name)
    assert (index.name, index.index, index.fields) == (name, f"{name}-v0002", OWN)
    assert (set(index.languages), index.documents) == ({"de", "en"}, 5)


def test_dense_finds_by_the_indexs_own_vectors_and_shows_its_own_text(searcher):
    hits = searcher.search(QUESTIONS["q1"], size=2).hits
    assert {hit.id for hit in hits} == {"tides-en", "tides-de"}
    assert {(hit.id, hit.language, hit.title, hit.text, hit.group) for hit in hits} == {
        (key, key[-2:], "", f"{TEXTS[key]} And so on.", None) for key in ("tides-en", "tides-de")
    }
    assert not any("body" in hit.source.get("vectors", {}) for hit in hits)


def test_lexical_looks_into_the_indexs_own_texts(searcher):
    found = searcher.search("rising", SearchSettings("lexical"), filters={"language": ["en"]})
    assert [hit.id for hit in found.hits] == ["tides-en", "bread-en"]
    assert {hit.id for hit in searcher.search("about", SearchSettings("lexical")).hits} == set(TEXTS)
    (bare,) = searcher.search("xyzzy", SearchSettings("lexical")).hits
    assert (bare.id, bare.language, bare.title, bare.text) == ("bare", "und", "", "Nothing but words: xyzzy.")


def test_a_filter_by_language_is_by_langshifts_field_under_either_name(name, searcher):
    for field in ("language", OWN.language):
        assert {hit.id for hit in searcher.search("Moon", filters={field: ["DE-at"]}).hits} == {"tides-de", "bread-de"}
    assert searcher.search("Moon", filters={"language": ["de"], OWN.language: ["en"]}).hits == ()
    for field, problem in (
        ("body", "cannot filter by its field 'body', which is of type text and holds words, not values: "),
        (OWN.vector, f"cannot filter by its field {OWN.vector!r}, which is of type knn_vector and has no values: "),
        ("embedding", "has no field 'embedding': use language, group or another field that its documents came with."),
    ):
        with pytest.raises(UsageError) as refused:
            searcher.search("Moon", filters={field: ["x"]})
        assert str(refused.value).startswith(f"Index {name} {problem}")


def test_exact_scores_are_those_of_the_search_and_leave_out_what_has_no_vector(client, searcher):
    wanted = [*TEXTS, "bare"]
    question = SearchQuery(QUESTIONS["q1"], vector=searcher.encode([QUESTIONS["q1"]])[0])
    scores = execute(client, searcher.index.index, searcher.scores(question, USUAL, ScoringContext(), wanted))
    found = {hit.id: hit.score for hit in searcher.search(QUESTIONS["q1"]).hits}
    assert scores == {**{key: pytest.approx(score, rel=1e-5) for key, score in found.items()}, "bare": None}
    languages = indexed_languages(client, searcher.index.index, OWN, wanted)
    assert languages == {key: key[-2:] for key in TEXTS}


@pytest.mark.usefixtures("cluster_env")
@pytest.mark.parametrize("mode", ["dense", "lexical"])
def test_versions_are_replayed_by_name_and_by_their_own_fields(name, folder, tmp_path, mode):
    both = [f"{name}-v0001", f"{name}-v0002"]
    output = tmp_path / "out"
    arguments = ["replay", str(folder), "--index", both[0], "--index", both[1], "--mode", mode, "--output", str(output)]
    said = CliRunner().invoke(evaluate, [*arguments, "--json"], catch_exceptions=False)
    documents = json.loads(said.stdout)
    for index in both:
        one = documents["runs"][index]
        assert (one["index"], one["version"], one["errors"]) == (index, index, 0)
        if mode == "dense":
            figures = {**dict.fromkeys(DEFAULT_MEASURES, 1.0), "own@1": 0.0, "MostShown@20": 0.5}
            assert one["measures"] == figures
        lines = (output / index / "group-scores.jsonl").read_text().splitlines()
        assert [set(json.loads(line)["scores"]) for line in lines] == [
            {"tides-en", "tides-de"}, {"bread-en", "bread-de"}
        ]  # fmt: skip
    (drift,) = documents["drift"]
    assert (drift["before"], drift["after"], drift["RBO(p=0.9)"]) == (*both, pytest.approx(1.0))


def test_a_version_is_searched_by_its_name(name, cluster_env):
    done = langshift("search", f"{name}-v0001", "Moon", "--json", url=cluster_env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["index"] == f"{name}-v0001"


@pytest.mark.parametrize("version", ["", "-v0001"])
def test_another_encoder_is_refused_also_for_a_version_by_name(client, name, monkeypatch, version):
    real = open_encoder("use-m")
    fields = ("id", "dimension", "normalised", "query_prefix", "document_prefix")
    newer = SimpleNamespace(**{field: getattr(real, field) for field in fields}, revision="newer")
    monkeypatch.setattr("langshift.retrieval.searcher.open_encoder", lambda _, **__: newer)
    with pytest.raises(FingerprintError) as refused:
        Searcher(client, name + version)
    assert str(refused.value) == (
        f"Index {name}{version} was built with revision {real.revision}, not newer: "
        "search with the same encoder, or index the corpus again."
    )


def test_replay_refuses_another_encoder_for_a_version_by_name(name, folder, cluster_env):
    arguments = ("--index", f"{name}-v0001", "--encoder", "given")
    done = langshift("evaluate", "replay", folder, *arguments, url=cluster_env)
    assert refusal(done).startswith(f"Index {name}-v0001 was built with encoder use-m, not given, ")


def test_an_unfinished_version_is_refused_by_name_but_opened_by_who_makes_it(client, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    with pytest.raises(ClusterError) as refused:
        versions.live(client, target.index)
    assert str(refused.value) == (
        f"Version {target.index} is not finished: a command is still writing it or was interrupted. Run that command "
        f"again, or remove the version with `langshift index drop {index_name} --version {target.index}`."
    )
    opened = versions.live(client, target.index, also_unfinished=True)
    assert (opened.name, opened.index, opened.documents) == (target.index, target.index, 0)


def test_a_load_is_not_added_to_an_index_with_fields_of_its_own(client, name):
    fingerprint = versions.live(client, name).fingerprint
    with pytest.raises(UsageError) as refused:
        version_writer.open_for_writing(client, name, fingerprint, if_exists="append")
    assert str(refused.value) == (
        f"Index {name} was adopted and stores its vectors in 'vectors.body', where a load does not "
        f"write: run `langshift pipeline install {name}`, then add documents with any client."
    )


def test_a_version_whose_load_was_killed_right_after_the_swap_is_finished(client, index_name):
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    client.indices.put_alias(index=target.index, name=index_name)
    assert versions.live(client, target.index).index == target.index


def test_an_index_of_something_else_is_no_version(client, index_name):
    made(client, index_name)
    client.indices.create(index=f"{index_name}-v0002")
    with pytest.raises(ClusterError) as refused:
        versions.live(client, f"{index_name}-v0002")
    assert str(refused.value) == (
        f"{index_name}-v0002 is an index, not an alias for versions: give the alias, or another name."
    )


def test_what_is_found_does_not_depend_on_the_name_that_is_asked(client, name):
    by_alias, by_name = (Searcher(client, each) for each in (name, f"{name}-v0002"))
    first, second = (searcher.search("Moon") for searcher in (by_alias, by_name))
    assert (first.hits, first.requests) == (second.hits, second.requests)
