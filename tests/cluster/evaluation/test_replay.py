"""Replay against a real OpenSearch: figures, files, and failures that are counted."""

from __future__ import annotations

import json
import shutil
import uuid
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner
from ir_measures import R, nDCG, read_trec_run
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as UnreachableError
from small_dataset import replayed

from langshift.commands.evaluate import evaluate
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.evaluate.convert.pool import write_corpus, write_questions
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.measures import DEFAULT_MEASURES, score
from langshift.evaluate.measures.base import Material
from langshift.evaluate.replay.load_generator import GIVE_UP_AFTER, send_all
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.requests import WARM_UP, PreparedQuery, send_query
from langshift.evaluate.runs import read_run
from langshift.files import json_lines
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.hits import RankedHits, candidates
from langshift.retrieval.plans import step_content
from langshift.retrieval.searcher import Searcher


@pytest.fixture(scope="module")
def index(indices: list[str]) -> str:
    return indices[1]


@pytest.fixture(scope="module")
def searcher(client: OpenSearch, index: str) -> Searcher:
    return Searcher(client, index)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(evaluate, ["replay", *arguments], catch_exceptions=False)


@pytest.mark.usefixtures("cluster_env")
def test_files_and_figures(folder, dataset, index, tmp_path):
    said = run(str(folder), "--index", index, "--output", str(tmp_path / "out"), "--json")
    document = json.loads(said.stdout)
    assert document == json.loads((tmp_path / "out" / "result.json").read_text())
    assert set(document) == {
        *("index", "version", "mode", "top_k", "measures", "queries", "by_language", "latency_ms", "errors"),
        *("warnings", "fingerprint", "versions", "command", "complete", "load", "dataset", "most_shown"),
        *("setting", "trust", "unread", "mode_from", "mode_reason", "resolved", "failed"),
        *("within", "by_value", "macro"),
    }
    assert (document["index"], document["version"], document["mode"]) == (index, f"{index}-v0001", "dense")
    # What a search without options does.
    assert (document["mode_from"], document["setting"]["mode"]) == ("default", "auto")
    assert document["resolved"] == {**document["setting"], "mode": "dense"}
    assert document["queries"] == {"asked": 20, **dict.fromkeys(DEFAULT_MEASURES, 20)}
    assert set(document["by_language"]) == {"de", "en"}
    assert (document["errors"], document["warnings"]) == (0, [])
    assert document["fingerprint"]["alpha"] == 1.0
    assert all(document["versions"].values())
    for clock in ("took", "wall"):
        times = [document["latency_ms"][clock][p] for p in ("p50", "p90", "p95", "p99")]
        assert times == sorted(times)
    # There are fewer passages than twenty: every one is found.
    assert document["measures"]["R@20"] == document["measures"]["TLR@20"] == document["measures"]["SLR@20"] == 1
    assert 0.5 < document["measures"]["nDCG@20"] < 1

    # The run that was written gives the same figures, to ir_measures and to us.
    path = str(tmp_path / "out" / "run.trec")
    written = nDCG @ 20, R @ 20
    for measure in written:
        figure = document["measures"][str(measure)]
        assert measure.calc_aggregate(dataset.qrels, read_trec_run(path)) == pytest.approx(figure, abs=1e-12)
    hits: dict[str, dict[str, float]] = {}
    for hit in read_trec_run(path):
        hits.setdefault(hit.query_id, {})[hit.doc_id] = hit.score
    again = score(
        ["nDCG@20", "TLR@20"],
        Material(
            dataset.qrels,
            hits,
            queries={query.id: query.language for query in dataset.queries},
            documents={name: known.language for name, known in dataset.documents.items()},
        ),
    )
    rows = [json.loads(line) for line in (tmp_path / "out" / "per-query.jsonl").read_text().splitlines()]
    for name, scores in again.items():
        assert scores.mean == document["measures"][name]
        assert scores.per_query == {row["query"]: row["measures"][name] for row in rows}


@pytest.mark.usefixtures("cluster_env")
def test_tables(folder, index):
    said = run(str(folder), "--index", index, "--mode", "lexical")
    shown = said.stdout.splitlines()
    assert shown[0] == f"{index}: 20 queries, lexical, alpha 1"
    assert shown[1].split() == ["measure", "mean", "queries"]
    assert tuple(line.split()[0] for line in shown[2:9]) == DEFAULT_MEASURES
    assert "Milliseconds per query, one at a time" in shown
    assert said.stderr == ""


@pytest.mark.usefixtures("cluster_env")
def test_an_index_that_is_not_there(folder, tmp_path):
    with pytest.raises(ClusterError) as caught:
        run(str(folder), "--index", "nowhere", "--output", str(tmp_path / "out"))
    assert str(caught.value) == ("There is no index nowhere: create it with `langshift ingest CORPUS --index nowhere`.")
    assert not (tmp_path / "out").exists()


def test_a_dataset_is_checked_before_the_cluster_is_asked(index, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:1")
    with pytest.raises(UsageError) as caught:
        run(str(tmp_path), "--index", index)
    assert str(caught.value) == (
        f"{tmp_path} has no corpus.jsonl: a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv."
    )


def test_languages_that_the_dataset_lacks_come_from_the_index(client, searcher, folder, dataset, tmp_path):
    shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("languages.tsv"))
    bare = load_dataset(tmp_path / "bare")
    found, expected = replayed(client, searcher, bare), replayed(client, searcher, dataset)
    assert found.warnings == [
        "The dataset names no language for 15 of its 15 relevant documents, "
        "so TLR and SLR use the languages stored in the index."
    ]
    assert expected.warnings == []
    assert {name: scores.queries for name, scores in found.scores.items()} == {
        name: scores.queries for name, scores in expected.scores.items()
    }


def test_documents_that_do_not_fit_are_told(client, searcher, folder, index, tmp_path):
    shutil.copytree(folder, tmp_path / "other")
    for name in ("corpus.jsonl", "languages.tsv", "qrels/test.tsv"):
        path = tmp_path / "other" / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "-th" not in line), encoding="utf-8")
    found = replayed(client, searcher, load_dataset(tmp_path / "other"))
    names = sorted(name for name in load_dataset(folder).documents if name.endswith("-th"))
    assert found.warnings == [
        f"{index} has 15 documents and the dataset has 10, so the figures do not describe the dataset alone.",
        f"5 of the documents found are not in the dataset (for example {names[0]}) and count as not relevant.",
    ]


class Failing:
    """The real client, but some of its searches find no cluster; the first searches are the uncounted ones.

    Only queries come as bytes; the search that reads an index's languages is none, and always works.
    """

    def __init__(self, client: OpenSearch, failing: range) -> None:
        self._client, self._failing, self.searches = client, failing, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def search(self, **request: Any) -> Any:
        if not isinstance(request["body"], bytes):
            return self._client.search(**request)
        number = self.searches - WARM_UP
        self.searches += 1
        if number in self._failing:
            raise UnreachableError("N/A", "refused", OSError("refused"))
        return self._client.search(**request)


def failing(client: OpenSearch, searcher: Searcher, dataset: Dataset, which: range) -> tuple[Failing, ReplayResult]:
    wrapped = Failing(client, which)
    return wrapped, replayed(wrapped, searcher, dataset)


def test_failed_queries_count_as_empty_answers(client, searcher, dataset):
    wrapped, found = failing(client, searcher, dataset, range(3, 6))
    assert wrapped.searches == WARM_UP + 20
    assert [answer.query for answer in found.failed] == [query.id for query in dataset.queries[3:6]]
    assert all(" be reached" in answer.error for answer in found.failed)
    assert found.scores["R@20"].mean == pytest.approx(17 / 20)
    assert found.scores["R@20"].queries == 20


def test_a_cluster_that_dies_is_not_asked_for_ever(client, searcher, dataset):
    wrapped, found = failing(client, searcher, dataset, range(4, 1000))
    assert wrapped.searches == WARM_UP + 4 + GIVE_UP_AFTER
    assert len(found.answers) == 20
    assert len(found.failed) == 16
    assert found.failed[-1].error == f"Not sent: {GIVE_UP_AFTER} queries in a row did not reach the cluster."
    assert found.scores["R@20"].mean == pytest.approx(4 / 20)


def one_step(body):
    """A search of one step."""
    (response,) = yield (body,)
    return RankedHits(tuple(candidates(response, "any")))


def test_what_the_server_refuses_is_an_error_of_that_query_alone(client, index):
    good = {"query": {"match_all": {}}, "size": 3, "_source": False}
    bodies = {"q1": good, "q2": {"query": {"nonsense": {}}}, "q3": good}
    requests = [
        PreparedQuery(0, index, query, step_content((body,)), partial(one_step, body)) for query, body in bodies.items()
    ]
    answers = [done.answer for batch in send_all([partial(send_query, client)], requests) for done in batch]
    assert [len(answer.hits) for answer in answers] == [3, 0, 3]
    assert [answer.error for answer in answers] == [
        None,
        "The cluster answered 400: unknown query [nonsense].",
        None,
    ]
    assert (answers[1].took, answers[1].wall) == (None, None)
    assert answers[0].wall >= 0


@pytest.mark.usefixtures("cluster_env")
def test_the_command_fails_when_queries_failed_and_still_writes(client, folder, index, tmp_path, monkeypatch):
    wrapped = Failing(client, range(2))
    monkeypatch.setattr("langshift.commands.replay.load_clients", lambda *_: [wrapped])
    with pytest.raises(LangshiftError) as caught:
        run(str(folder), "--index", index, "--output", str(tmp_path / "out"))
    assert caught.value.exit_code == 1
    first = load_dataset(folder).queries[0].id
    assert str(caught.value).startswith(
        f"2 of 20 queries failed and count as empty answers; the first, {first}: The cluster cannot be reached"
    )
    assert json.loads((tmp_path / "out" / "result.json").read_text())["errors"] == 2


ODD_IDS = ("a b", "tab\there", "line\nbreak", "sep\u2028x", "50%20off")


@pytest.fixture(scope="module")
def arguments(client, tmp_path_factory):
    """A dataset of which one query is a document and one has too many words, and an index that has more documents."""
    folder = tmp_path_factory.mktemp("arguments")
    texts = {"a1": "Plastic bags harm the sea.", "a2": "Plastic bags are useful.", "2": "School uniforms are equal."}
    asked = {"a1": texts["a1"], "2": "Do bags harm?", "long": "bags " * 501}
    write_corpus(folder, [{"_id": name, "text": text, "language": "en"} for name, text in texts.items()])
    queries = [{"_id": name, "text": text, "language": "en"} for name, text in asked.items()]
    write_questions(folder, queries, [("a1", "a2", 1), ("2", "a1", 1), ("long", "a2", 1)])
    corpus = folder / "more.jsonl"
    more = [{"_id": name, "text": f"Bags of number {n}.", "language": "en"} for n, name in enumerate(ODD_IDS)]
    corpus.write_bytes((folder / "corpus.jsonl").read_bytes() + json_lines(more))
    name = f"langshift-test-arguments-{uuid.uuid4().hex[:8]}"
    load(client, str(corpus), name, build_pipeline(open_encoder("use-m"), open_detector(), None, 0.0))
    yield folder, name
    client.indices.delete(index=f"{name}*")


@pytest.mark.usefixtures("cluster_env")
@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid", "anchored"])
def test_own_documents_odd_ids_and_a_query_of_too_many_words(arguments, tmp_path, mode):
    folder, name = arguments
    out = tmp_path / "out"
    options = ["--index", name, "--mode", mode, "--output", str(out), "--measures", "RR nDCG@20", "--json"]
    said = CliRunner().invoke(evaluate, ["replay", str(folder), *options])
    document = json.loads(said.stdout)
    refused = (
        {} if mode == "dense" else {"long": "The query has too many words for a lexical search: the limit is 500."}
    )
    assert (document["failed"], document["errors"], document["dataset"]["own_documents"]) == (refused, len(refused), 1)
    assert document["queries"] == {"asked": 3, "RR": 3, "nDCG@20": 3}
    assert (said.exit_code, isinstance(said.exception, LangshiftError)) == ((1, True) if refused else (0, False))
    found = read_run(out / "run.trec")
    assert ("a1" in found["a1"], "2" in found["2"] or mode == "lexical") == (False, True)
    assert mode == "lexical" or set(ODD_IDS) <= set(found["a1"])
    scored = ["compare", str(out / "run.trec"), "--dataset", str(folder), "--measures", "RR nDCG@20", "--json"]
    again = json.loads(CliRunner().invoke(evaluate, scored).stdout)
    figures = {name: one for section in reversed(again["sections"].values()) for name, one in section.items()}
    assert {name: figures[name]["means"]["a"] for name in document["measures"]} == document["measures"]
