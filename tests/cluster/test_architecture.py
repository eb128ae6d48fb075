"""The modules that a document, a query and a replay go through are those that docs/architecture.md lists."""

import json

import pytest
from command_line import langshift
from core_path import core_path
from source_budget import ARCHITECTURE, modules_of

DOCUMENT = {"_id": "1", "text": "Der Mond scheint hell in der Nacht.", "language": "de"}
QUESTION = "Wann scheint der Mond?"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"id": "1", "text": DOCUMENT["text"]}))
    return path


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "one"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps(DOCUMENT))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": QUESTION, "language": "de"}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    return folder


def way(*arguments, url):
    with core_path() as modules:
        done = langshift(*arguments, url=url)
    assert done.returncode == 0, done.stderr
    return sorted(modules)


def test_a_document_a_query_and_a_replay_go_through_the_modules_that_the_page_lists(
    corpus, dataset, index_name, cluster_url, tmp_path
):
    found = {
        "document": way("ingest", corpus, "--index", index_name, url=cluster_url),
        "query": way("search", index_name, QUESTION, "--mode", "anchored", url=cluster_url),
        "replay": way(
            "evaluate", "replay", dataset, "--index", index_name, "--output", tmp_path / "out", url=cluster_url
        ),
    }
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert {name: sorted(modules_of(name, text)) for name in found} == found
