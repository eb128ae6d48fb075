"""Final pipelines, which no request leaves out: what they would change is told, and what they drop is counted."""

import json
from pathlib import Path

import pytest
from cluster_templates import index_templates, ingest_pipeline
from command_line import langshift, refusal
from given_data import run, write_lines
from shifted_index import Corpus, language_vectors, printed, refused, require_vectors, saved, sources

from langshift.plugin import versions

pytestmark = pytest.mark.usefixtures("cluster_env")
SCRIPT = "ctx.embedding = [1, 2, 3, 4, 5, 6]"


def field(name, value):
    return {"set": {"field": name, "value": value}}


# What a pipeline does -> what is said of it.
CHANGING = {
    "drops": ({"drop": {}}, "drops documents such as 'en-0'"),
    "vector": ({"script": {"source": SCRIPT}}, "changes embedding of documents such as 'en-0'"),
    "no vector": ({"remove": {"field": "embedding"}}, "changes embedding of documents such as 'en-0'"),
    "text": ({"uppercase": {"field": "text.en", "ignore_missing": True}}, "changes text of documents such as 'en-0'"),
    "other texts": (
        {"uppercase": {"field": "text.th", "ignore_missing": True}},
        "changes text of documents such as 'th-0'",
    ),
    "language": (field("language", "xx"), "changes language of documents such as 'en-0'"),
    "stamp": (field("shift.alpha", 7), "changes shift of documents such as 'en-0'"),
    "_id": (field("_id", "other"), "changes _id of documents such as 'en-0'"),
    "_index": (field("_index", "langshift-test-nowhere"), "changes _index of documents such as 'en-0'"),
    "_routing": (field("_routing", "r"), "changes _routing of documents such as 'en-0'"),
    "fails": ({"fail": {"message": "not today"}}, "fails (not today)"),
}
HARMLESS = {
    "adds": field("seen", "{{_ingest.timestamp}}"),
    "fails for some": {"fail": {"message": "not today", "if": "ctx.language == 'th'"}},
    "drops some": {"drop": {"if": "ctx.language == 'th'"}},
    "moves some": {"set": {"field": "_index", "value": "langshift-test-nowhere", "if": "ctx.nowhere != null"}},
}
OPTIONS = ("--encoder", "given", "--alpha", 1)


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path, each=1)


@pytest.fixture
def vectors(tmp_path):
    return saved(tmp_path, language_vectors())


def told(index, pipeline, why):
    return (
        f"The final pipeline {pipeline} of {index} {why}, so what langshift writes would not be what is indexed: "
        f'remove it with `PUT /{index}/_settings` and {{"index.final_pipeline": "_none"}}, or from the index template '
        "that sets it, then run the command again."
    )


@pytest.mark.parametrize(("processor", "why"), CHANGING.values(), ids=CHANGING)
def test_a_pipeline_that_changes_documents_is_told_before_anything_is_written(
    client, index_name, corpus, vectors, processor, why
):
    load = ("ingest", corpus.path, "--index", index_name, "--vectors", vectors, *OPTIONS)
    with ingest_pipeline(client, index_name, processor) as pipeline:
        content = {"settings": {"final_pipeline": pipeline}}
        with index_templates(client, index_name, content):
            assert refused(run(*load)) == (told(f"{index_name}-v0001", pipeline, why), 1)
        assert list(versions.versions_of(client, index_name)) == []
        corpus.ingest(index_name, "--vectors", vectors, "--alpha", 1)
        client.indices.put_settings(index=index_name, body={"index.final_pipeline": pipeline})
        assert refused(run(*load, "--if-exists", "append")) == (told(f"{index_name}-v0001", pipeline, why), 1)
        require_vectors(client, index_name, corpus, language_vectors(), 1.0)


@pytest.mark.parametrize("kind", ["drops", "vector", "_index"])
def test_a_retune_which_copies_documents_as_they_are_leaves_the_pipeline_out(client, index_name, corpus, vectors, kind):
    corpus.ingest(index_name, "--vectors", vectors, "--alpha", 1)
    with ingest_pipeline(client, index_name, CHANGING[kind][0]) as pipeline:
        client.indices.put_settings(index=index_name, body={"index.final_pipeline": pipeline})
        printed(run("retune", index_name, "--alpha", 0.5, "--json"))
        require_vectors(client, index_name, corpus, language_vectors(), 0.5)


@pytest.mark.parametrize(("kind", "processor"), HARMLESS.items())
def test_what_a_pipeline_drops_or_fails_over_is_a_dead_letter(client, index_name, corpus, vectors, kind, processor):
    with ingest_pipeline(client, index_name, processor) as pipeline:
        with index_templates(client, index_name, {"settings": {"final_pipeline": pipeline}}):
            done = run("ingest", corpus.path, "--index", index_name, "--vectors", vectors, *OPTIONS, "--json")
        gone = {"th-0"} if "some" in kind and "moves" not in kind else set()
        assert done.exit_code == (3 if gone else 0)
        assert set(sources(client, index_name)) == set(corpus.languages) - gone
        summary = json.loads(done.stdout)
        assert (summary["present"], summary["dead"]) == (len(corpus.languages) - len(gone), len(gone))
        if gone:
            (letter,) = Path(summary["dead_letters"]).read_text(encoding="utf-8").splitlines()
            assert "the index's final pipeline" in json.loads(letter)["reason"]


@pytest.mark.parametrize(
    ("processor", "why"),
    [
        (field("text.en", "Another"), "has changed 1 document (_id 'late')"),
        (field("language", "fr"), "has changed 1 document (_id 'late')"),
        (field("_id", "other"), "changes _id of documents"),
    ],
    ids=["text", "language", "_id"],
)
def test_a_pipeline_that_changes_later_documents_is_told_at_the_end(client, index_name, tmp_path, processor, why):
    """What comes after the first documents the final check compares."""
    (kind,) = processor
    late = {kind: {**processor[kind], "if": "ctx.late != null"}}
    vector = [1.0] * 6
    rows = [{"_id": f"d{n}", "text": "One", "language": "en", "embedding": vector} for n in range(30)]
    path = write_lines(tmp_path / "corpus.jsonl", [*rows, {**rows[0], "_id": "late", "late": True}])
    with ingest_pipeline(client, index_name, late) as pipeline:
        with index_templates(client, index_name, {"settings": {"final_pipeline": pipeline}}):
            done = langshift("ingest", path, "--index", index_name, "--encoder", "given", "--alpha", 0)
        assert told(f"{index_name}-v0001", pipeline, why) in refusal(done)
    assert not client.indices.exists_alias(name=index_name)


def test_a_pipeline_that_is_not_there(client, index_name, corpus):
    with index_templates(client, index_name, {"settings": {"final_pipeline": f"{index_name}-none"}}):
        done = run("ingest", corpus.path, "--index", index_name, "--encoder", "given", "--alpha", 0)
    why = f"cannot run (pipeline [{index_name}-none] does not exist)"
    assert refused(done) == (told(f"{index_name}-v0001", f"{index_name}-none", why), 1)
    assert list(versions.versions_of(client, index_name)) == []
