"""What a replay leaves behind, and what is said of two of them; no server is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery
from langshift.evaluate.demo import ReplayPair, describe_changes, short_figure, side_by_side
from langshift.evaluate.measures import DEFAULT_MEASURES, score
from langshift.evaluate.measures.base import Material, Scores
from langshift.evaluate.replay.replay import ReplayResult, failures
from langshift.evaluate.replay.requests import QueryResult
from langshift.evaluate.replay.result import check_output, latency, result, write_files
from langshift.retrieval.request import SearchSettings

MADE = Fingerprint(
    encoder="use-m",
    revision="1",
    query_prefix="",
    document_prefix="",
    dimension=2,
    normalised=True,
    pivot="en",
    alpha=1.0,
    vectors="abc",
    detector="lid",
    langshift="0",
)
# Two topics in two languages: each question has one answer in its own language, and one in the other.
DATASET = Dataset(
    Path("demo"),
    {f"{topic}-{tag}": DatasetDocument(tag, topic) for topic in ("a", "b") for tag in ("en", "de")},
    tuple(DatasetQuery(f"{topic}-{tag}-q", "?", tag, topic) for topic in ("a", "b") for tag in ("en", "de")),
    {f"{topic}-{tag}-q": {f"{topic}-en": 1, f"{topic}-de": 1} for topic in ("a", "b") for tag in ("en", "de")},
)


def replayed(answers: dict[str, list[str]], failed: tuple[str, ...] = ()) -> ReplayResult:
    """A replay in which each query got these documents, took 1, 2, 3 … ms, and twice that on the wall."""
    given = [
        QueryResult(query, error="The cluster answered 500: no.")
        if query in failed
        else QueryResult(query, tuple((name, 1.0 - rank / 8) for rank, name in enumerate(names)), took, 2.0 * took)
        for took, (query, names) in enumerate(answers.items(), 1)
    ]
    languages = {query.id: query.language for query in DATASET.queries}
    documents = {name: document.language for name, document in DATASET.documents.items()}
    run = {answer.query: dict(answer.hits) for answer in given}
    scores = score(DEFAULT_MEASURES, Material(DATASET.qrels, run, languages, documents))
    return ReplayResult(
        "news", "news-v0001", SearchSettings("hybrid", prefer_language=0.02), MADE, languages, given, scores, []
    )


BEFORE = {"a-en-q": ["a-en"], "a-de-q": ["a-de", "b-de", "a-en"], "b-en-q": ["b-en"], "b-de-q": ["b-de", "b-en"]}
AFTER = {"a-en-q": ["a-en", "a-de"], "a-de-q": ["b-de", "a-en"], "b-en-q": ["b-en"], "b-de-q": ["b-de", "b-en"]}


def test_the_document_holds_all_that_the_figures_rest_on(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/somewhere/langshift", "evaluate", "replay", "my data", "--index", "news"])
    found = replayed(BEFORE, failed=("b-en-q",))
    document = result(found, "3.6.0")
    # a-en-q finds one of two, b-en-q failed, the German ones find both.
    assert document["measures"]["R@20"] == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert document["measures"]["SLR@20"] == pytest.approx(3 / 4)
    assert document["measures"]["TLR@20"] == pytest.approx(2 / 4)
    # a-de-q finds its German answer first, the other one second.
    assert (document["measures"]["own@1"], document["measures"]["own@3"]) == (3 / 4, 3 / 4)
    counted = dict.fromkeys(DEFAULT_MEASURES, 4)
    assert document["queries"] == {"asked": 4, **counted, "MostShown@20": 3}
    assert document["most_shown"]["MostShown@20"] == {
        "language": "de",
        "shown": 0.5,
        "fair": 0.5,
        "beside": "what is relevant",
        "hits": "the first 20 hits",
    }
    assert document["by_language"]["en"]["measures"]["R@20"] == pytest.approx(0.25)
    assert document["by_language"]["de"]["queries"]["SLR@20"] == 2
    assert document["errors"] == 1
    assert document["mode"] == "hybrid"
    wanted = SearchSettings("hybrid", prefer_language=0.02)
    assert document["setting"] == {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    assert document["fingerprint"] == MADE.to_dict()
    assert set(document["versions"]) == {"opensearch", "langshift", "ir_measures", "encoder"}
    assert document["versions"]["opensearch"] == "3.6.0"
    assert document["command"] == "langshift evaluate replay 'my data' --index news"
    assert failures(found) == (
        "1 of 4 queries failed and count as empty answers; the first, b-en-q: The cluster answered 500: no."
    )


def test_failed_queries_are_named_with_their_reasons():
    found = replayed(BEFORE, failed=("b-en-q",))
    refused = [answer._replace(error="The query has too many words.", sent=False) for answer in found.answers[1:2]]
    found = replace(found, answers=[*found.answers, *refused, refused[0]._replace(query="c-en-q")])
    assert result(found, "3.6.0")["failed"] == {
        "b-en-q": "The cluster answered 500: no.",
        "a-de-q": "The query has too many words.",
        "c-en-q": "The query has too many words.",
    }
    assert failures(found) == (
        "3 of 6 queries failed and count as empty answers; the first, b-en-q: The cluster answered 500: no. "
        "Others that cannot be asked: a-de-q, c-en-q."
    )
    assert found.complete


def test_times_are_those_of_the_answers_alone():
    found = replayed(BEFORE, failed=("b-en-q",))  # 1, 2 and 4 ms are left
    assert latency(found)["took"] == {"p50": 2.0, "p90": 4.0, "p95": 4.0, "p99": 4.0}
    assert latency(found)["wall"] == {"p50": 4.0, "p90": 8.0, "p95": 8.0, "p99": 8.0}
    nothing = latency(replayed(BEFORE, failed=tuple(BEFORE)))
    assert nothing["took"] == {"p50": None, "p90": None, "p95": None, "p99": None}


def test_files_are_replaced_and_strangers_left_alone(tmp_path):
    folder = tmp_path / "new" / "results"
    for answers in (AFTER, BEFORE):
        found = replayed(answers, failed=("b-en-q",))
        write_files(folder, found, result(found, "3.6.0"))
        (folder / "mine.txt").write_text("mine")
    assert sorted(path.name for path in folder.iterdir()) == [
        "mine.txt",
        "per-query.jsonl",
        "result.json",
        "run.trec",
    ]
    assert (folder / "run.trec").read_text().splitlines() == [
        "a-en-q Q0 a-en 1 1.0 news_hybrid_--prefer-language_0.02",
        "a-de-q Q0 a-de 1 1.0 news_hybrid_--prefer-language_0.02",
        "a-de-q Q0 b-de 2 0.875 news_hybrid_--prefer-language_0.02",
        "a-de-q Q0 a-en 3 0.75 news_hybrid_--prefer-language_0.02",
        "b-de-q Q0 b-de 1 1.0 news_hybrid_--prefer-language_0.02",
        "b-de-q Q0 b-en 2 0.875 news_hybrid_--prefer-language_0.02",
    ]
    rows = [json.loads(line) for line in (folder / "per-query.jsonl").read_text().splitlines()]
    assert rows[2] == {
        "query": "b-en-q",
        "language": "en",
        "measures": {**dict.fromkeys(DEFAULT_MEASURES, 0.0), "MostShown@20": None},
        "hits": 0,
        "took_ms": None,
        "wall_ms": None,
        "error": "The cluster answered 500: no.",
    }
    assert (rows[1]["hits"], rows[1]["took_ms"], rows[1]["wall_ms"]) == (3, 2.0, 4.0)
    assert json.loads((folder / "result.json").read_text())["errors"] == 1


def test_a_place_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("x")
    check_output(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    with pytest.raises(UsageError) as caught:
        check_output(taken)
    assert str(caught.value) == f"{taken} is a file: name a folder for --output."
    with pytest.raises(UsageError) as caught:
        check_output(taken / "below")
    assert str(caught.value) == (
        f"{taken / 'below'} cannot be written: {taken} is not a writable folder. Name another --output."
    )


def test_what_changed_in_words():
    lines = describe_changes(ReplayPair(DATASET, replayed(BEFORE), replayed(AFTER)))
    assert lines == [
        "Question by question, nDCG@20 is better for 1, worse for 1 and the same for 2.",
        "The language that is shown most: before, en has 57% of the first 20 hits and 50% of what is relevant; after, "
        "en has 57% of the first 20 hits and 50% of what is relevant.",
        "With 2 questions per language, a single question can change a language's figure by .500: "
        "small changes mean little.",
    ]


def test_no_change_is_said_as_such():
    lines = describe_changes(ReplayPair(DATASET, replayed(BEFORE), replayed(BEFORE)))
    assert lines[0] == "Question by question, nDCG@20 is better for 0, worse for 0 and the same for 4."


def test_cells_of_the_table():
    assert side_by_side(Scores({"q": 0.25}, 0), Scores({"q": 0.5}, 0)) == ".250 → .500  +.250"
    assert side_by_side(Scores({"q": 1.0}, 0), Scores({"q": 0.0}, 0)) == "1.000 → .000 -1.000"
    assert side_by_side(Scores({}, 1), Scores({}, 1)) == "-"
    assert [short_figure(value) for value in (0.0, 0.6125, 1.0)] == [".000", ".613", "1.000"]


@pytest.mark.parametrize(
    ("old", "new", "cell"),
    [(0.29951, 0.30049, ".300 → .300      0"), (0.3004, 0.3006, ".300 → .301  +.001")],
)
def test_a_change_is_the_difference_of_the_figures_beside_it(old, new, cell):
    assert side_by_side(Scores({"q": old}, 0), Scores({"q": new}, 0)) == cell
