"""One TREC run of any retriever: what is read, what is refused, and what ``evaluate compare`` prints of it."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from command_line import langshift, refusal
from data_folder import write_dataset
from encoded_files import NOT_UTF8

from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import load
from langshift.evaluate.runs import format_run, read_group_scores, read_passages, read_run

CORPUS = "".join(
    json.dumps({"_id": f"{topic}-{tag}", "text": topic, "language": tag, "group": topic}) + "\n"
    for topic in ("rain", "tides")
    for tag in ("de", "en", "th")
)
QUERIES = "".join(
    json.dumps({"_id": f"{topic}?{tag}", "text": topic, "language": tag}) + "\n"
    for topic in ("rain", "tides")
    for tag in ("de", "en")
)
QRELS = "".join(
    f"{topic}?{asked}\t{topic}-{tag}\t1\n"
    for topic in ("rain", "tides")
    for asked in ("de", "en")
    for tag in ("de", "en", "th")
)
# The German questions find their topic in German and Thai, the English one of rain finds nothing right,
# and the English one of tides was not answered.
RUN = """\
rain?de Q0 rain-de 1 0.9 other
tides?de Q0 tides-th 1 0.9 other
rain?de\tQ0\train-th  2 0.8 other
tides?de Q0 rain-en 2 8e-1 other

rain?en Q0 tides-en 1 0.5 other
"""
GROUPS = [
    {"query": "rain?de", "scores": {"rain-de": 0.9, "rain-en": 0.1, "rain-th": 0.8}},
    {"query": "tides?de", "scores": {"tides-de": 0.2, "tides-en": None, "tides-th": 0.9}},
    {"query": "rain?en", "scores": {"rain-de": 0.3, "rain-en": 0.3}},
    {"query": "tides?en", "scores": {}},
]


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text(CORPUS)
    (data / "queries.jsonl").write_text(QUERIES)
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + QRELS)
    return data


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "mine" / "run.trec"
    path.parent.mkdir()
    path.write_text(RUN)
    return path


def with_groups(run):
    path = run.with_name("group-scores.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in GROUPS))
    return path


def test_a_run_is_read(run):
    expected = {
        "rain?de": {"rain-de": 0.9, "rain-th": 0.8},
        "tides?de": {"tides-th": 0.9, "rain-en": 0.8},
        "rain?en": {"tides-en": 0.5},
    }
    assert read_run(run) == expected
    run.write_bytes(gzip.compress(RUN.replace("\n", "\r\n").encode()))
    assert read_run(run) == expected


def test_a_run_that_was_written_is_read_back(tmp_path):
    rankings = {"q1": [("b", 0.75), ("a", 0.1 + 0.2)], "q2": [("ü", -1e-9)]}
    path = tmp_path / "run.trec"
    path.write_text(format_run(rankings, "my index"), encoding="utf-8")
    assert read_run(path) == {query: dict(hits) for query, hits in rankings.items()}


@pytest.mark.parametrize(
    "name", ["a b", "a\tb", "a\nb\r", " a", "a\u2028b", "a\u00a0b", "a%20b", "50% off", "%", "", "ü%C3%BC", "Q0", "a+b"]
)
def test_ids_of_any_kind_are_read_back(tmp_path, name):
    rankings = {"q1": [("plain", 0.75), (name, 0.5)], name: [("plain", 0.25), ("x%20y", 0.125)]}
    path = tmp_path / "run.trec"
    path.write_text(format_run(rankings, "my index"), encoding="utf-8", newline="")
    assert read_run(path) == {query: dict(hits) for query, hits in rankings.items()}
    # Whatever else reads it finds its six columns.
    assert {len(line.split()) for line in path.read_text(encoding="utf-8").split("\n")[:-1]} == {6}


def test_ids_of_other_programs_stay_as_they_are(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("q%201 Q0 50%25 1 0.5 x\nq%201 0 % 2 0.25 x\n")
    assert read_run(path) == {"q%201": {"50%25": 0.5, "%": 0.25}}


def test_a_querys_own_document_does_not_count_against_it(tmp_path):
    documents = {f"{name}{n}": ("en", name, f"{name} {n} has words of its own") for name in "ab" for n in (1, 2)}
    queries = {f"{name}1": ("en", name, name, documents[f"{name}1"][2]) for name in "ab"}
    folder = write_dataset(tmp_path / "data", documents, queries, {"a1": {"a2": 1}, "b1": {"b2": 1}})
    path = tmp_path / "run.trec"
    ranked = {"a1": ["a1", "a2", "b1"], "b1": ["b1", "a1", "b2"]}
    path.write_text(
        format_run({q: [(n, -float(at)) for at, n in enumerate(names)] for q, names in ranked.items()}, "x")
    )
    path.with_name("group-scores.jsonl").write_text(
        "".join(json.dumps({"query": q, "scores": {q: 1.0, f"{q[0]}2": 0.5}}) + "\n" for q in ranked)
    )
    found = json.loads(score(path, folder, "--measures", "nDCG@10 RR P@1 LPR", "--json").stdout)
    means = {name: one["means"]["a"] for name, one in found["sections"]["all"].items() if name != "LPR"}
    assert means == pytest.approx({"nDCG@10": (1 + 1 / np.log2(3)) / 2, "RR": 0.75, "P@1": 0.5})
    told = (
        "2 of 2 queries are documents of the same id: a query's own document is left out of what is found for it, as in"
    )
    assert found["warnings"][0] == f"{told} BEIR."
    assert found["dataset"]["own_documents"] == 2
    dataset, (run,) = load([path], folder)
    assert run.run == {"a1": {"a2": -1.0, "b1": -2.0}, "b1": {"a1": -1.0, "b2": -2.0}}
    assert run.group_scores == {"a1": {"a2": 0.5}, "b1": {"b2": 0.5}}
    assert dataset.target_group("a1") == ["a2"]


COLUMNS = "a TREC run has six columns on each line: query, Q0, document, rank, score, tag"
BAD = {
    "rain?de Q0 rain-de 1 0.9\n": f", line 7, has 5 columns: {COLUMNS}.",
    "rain?de Q0 rain de 1 0.9 x\n": f", line 7, has 7 columns: {COLUMNS}.",
    "rain?en Q0 rain-de 1 high x\n": ", line 7, has the score 'high': give a finite number.",
    "rain?en Q0 rain-de 1 nan x\n": ", line 7, has the score 'nan': give a finite number.",
    "rain?en Q0 rain-de 1 inf x\n": ", line 7, has the score 'inf': give a finite number.",
    "rain?de Q0 rain-th 9 0.1 x\n": (
        ", line 7, lists the document 'rain-th' for the query 'rain?de' a second time, after line 3: "
        "every document must be unique for a query."
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_named(run, line):
    run.write_text(RUN + line)
    with pytest.raises(UsageError) as caught:
        read_run(run)
    assert str(caught.value) == f"{run}{BAD[line]}"


def test_other_files_that_are_no_run(tmp_path, run):
    for path, text, expected in (
        (tmp_path / "none", None, f"There is no run {tmp_path / 'none'}: name a file with TREC's six columns."),
        (run, b" \n", f"{run} is empty: {COLUMNS}."),
        (run, RUN.encode() + b"q Q0 r\xe4in 1 1 x\n", f"{run}, line 7, is {NOT_UTF8}."),
    ):
        if text is not None:
            path.write_bytes(text)
        with pytest.raises(UsageError) as caught:
            read_run(path)
        assert str(caught.value) == expected


def test_group_scores_are_read(run):
    assert read_group_scores(with_groups(run)) == {
        "rain?de": {"rain-de": 0.9, "rain-en": 0.1, "rain-th": 0.8},
        "tides?de": {"tides-de": 0.2, "tides-th": 0.9},  # null did not match
        "rain?en": {"rain-de": 0.3, "rain-en": 0.3},
        "tides?en": {},
    }


FORM = 'give {"query": id, "scores": {document: score}}'
BAD_GROUPS = {
    '{"query": "q"': "is not valid JSON (unexpected end of data at character 14): correct or remove the line.",
    '{"query": 1, "scores": {}}': f"cannot be read: {FORM}.",
    '{"query": "q", "scores": [1]}': f"cannot be read: {FORM}.",
    '{"query": "q", "scores": {"d": "1"}}': f"cannot be read: {FORM}.",
    '{"query": "q", "scores": {"d": true}}': f"cannot be read: {FORM}.",
    '{"query": "rain?de", "scores": {}}': "repeats the query 'rain?de': keep only one of the lines.",
}


@pytest.mark.parametrize("line", BAD_GROUPS)
def test_a_bad_line_of_group_scores_is_named(run, line):
    path = with_groups(run)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UsageError) as caught:
        read_group_scores(path)
    assert str(caught.value) == f"{path}, line 5, {BAD_GROUPS[line]}"


@pytest.mark.parametrize("line", ['{"passages": {"d": [1, 2]}}', '{"query": "q", "passages": {"d": [1]}}'])
def test_a_bad_line_with_passages_is_named(tmp_path, line):
    path = tmp_path / "per-query.jsonl"
    path.write_text('{"query": "q1"}\n{"query": "q2", "passages": {"d": [3, 40]}}\n')
    assert read_passages(path) == {"q2": {"d": (3, 40)}}
    path.write_text(line + "\n")
    with pytest.raises(UsageError) as caught:
        read_passages(path)
    form = 'give {"query": id, "within": value, "outside": [document], "passages": {document: [start, end]}}'
    assert str(caught.value) == f"{path}, line 1, cannot be read: {form}."


def score(run, folder, *options):
    return langshift("evaluate", "compare", run, "--dataset", folder, *options)


NAMES = ("R@2", "TLR@2", "SLR@2", "LPR", "Top1", "TR@2", "Share@2", "P@1")
UNANSWERED = "Warning: a (mine) has no answer for 1 queries, which count as 0.\n"


def test_figures_as_json(run, folder):
    with_groups(run)
    done = score(run, folder, "--json", "--measures", " ".join(NAMES).replace("TLR@2 ", "TLR@2,"))
    assert (done.returncode, done.stderr) == (0, UNANSWERED)
    document = json.loads(done.stdout)
    found = {name: one for section in reversed(document["sections"].values()) for name, one in section.items()}
    # Two of three for rain?de, one for tides?de; nothing for the other two.
    assert {name: found[name]["means"]["a"] for name in NAMES} == {
        "R@2": pytest.approx((2 / 3 + 1 / 3 + 0 + 0) / 4),
        "TLR@2": pytest.approx((1 / 2 + 1 / 2 + 0 + 0) / 4),
        "SLR@2": (1 + 0 + 0 + 0) / 4,
        "LPR": (1 + 0 + 1 / 2 + 0) / 4,  # German; Thai; a tie of German and English; nothing matched
        "Top1": 1 / 4,
        "TR@2": pytest.approx((2 / 3 + 1 / 3 + 0 + 0) / 4),
        "Share@2": ((1 / 2 + 0) / 2 + 1) / 2,  # German: half of rain?de's, none of tides?de's; English: all
        "P@1": 2 / 4,
    }
    assert {name: found[name]["queries"]["a"] for name in NAMES} == dict.fromkeys(NAMES, 4) | {"Share@2": 3}
    assert found["Share@2"]["left_out"] == {"a": 1}
    assert {name: found[name]["direction"] for name in NAMES} == dict.fromkeys(NAMES, "high") | {
        "LPR": "report",
        "Share@2": "report",
    }
    assert found["TLR@2"]["source"] == "Shift (Jang et al., 2026), section 4.3"
    by_language = {tag: part["sections"]["all"] for tag, part in document["by_language"].items()}
    assert by_language["en"]["R@2"]["means"]["a"] == 0
    assert by_language["de"]["R@2"]["queries"]["a"] == 2
    assert by_language["de"]["Share@2"]["means"]["a"] == 0.25
    assert found["TR@2"]["tables"]["a"] == {
        "rows": "query language",
        "columns": "document language",
        "cells": {
            "de": {tag: {"mean": mean, "queries": 2} for tag, mean in (("de", 0.5), ("en", 0), ("th", 1))},
            "en": {tag: {"mean": 0, "queries": 2} for tag in ("de", "en", "th")},
        },
    }
    assert {name for name in NAMES if found[name]["tables"]} == {"Top1", "TR@2", "Share@2"}
    assert document["warnings"] == ["a (mine) has no answer for 1 queries, which count as 0."]
    assert document["dataset"]["queries"] == 4
    assert document["runs"][0]["place"] == str(run)


def test_tables(run, folder):
    done = score(run, folder, "--measures", "R@2 Share@2")
    assert (done.returncode, done.stderr) == (0, UNANSWERED)
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        f"{run}: 3 of 4 queries answered",
        "measure mean good is queries left out",
        "R@2 .2500 high 4 0",
        "Share@2 .6250 report 3 1",
        "SLR@2 .2500 high 4 0",
        "TLR@2 .2500 high 4 0",
        "",
        "By query language",
        "language R@2 Share@2 SLR@2 TLR@2",
        "de .5000 .2500 .5000 .5000",
        "en .0000 1.0000 .0000 .0000",
        "",
        "Share@2: query language down, document language across",
        "de en th",
        "de .250 .250 .500",
        "en - 1.000 -",
    ]


def measured(document):
    return {name for section in document["sections"].values() for name in section}


def test_without_measures_the_usual_ones(run, folder):
    document = json.loads(score(run, folder, "--json").stdout)
    assert measured(document) == {"nDCG@20", "R@20", "TLR@20", "SLR@20", "own@1", "own@3", "MostShown@20"}
    with_groups(run)
    document = json.loads(score(run, folder, "--json").stdout)
    assert measured(document) == {"nDCG@20", "R@20", "TLR@20", "SLR@20", "own@1", "own@3", "MostShown@20", "LPR"}


def test_lpr_without_group_scores_says_what_is_missing(run, folder):
    done = score(run, folder, "--json", "--measures", "LPR")
    document = json.loads(done.stdout)
    figures = document["sections"]["all"]["LPR"]
    assert (figures["means"], figures["queries"]) == ({"a": None}, {"a": 0})
    assert document["warnings"][1:] == [
        "a (mine), LPR: undefined without the scores of the whole target group, including those below the cutoff: "
        "group-scores.jsonl beside the run, which `langshift evaluate replay --output` and `offline --output` write."
    ]


def test_what_the_dataset_does_not_have_is_counted(run, folder):
    run.write_text(RUN + "rain?en Q0 snow 2 0.4 x\nrain?de Q0 sleet 3 0.4 x\nwind?en Q0 snow 1 1 x\n")
    done = score(run, folder, "--measures", "R@2")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "Warning: a (mine) answers 1 queries that are not in the dataset (such as wind?en), which are not scored.",
        UNANSWERED.strip(),
        "Warning: a (mine): 2 of the documents found are not in the dataset (for example sleet) and count as not "
        "relevant.",
    ]
    assert "R@2 .2500" in " ".join(done.stdout.split())


def test_refusals(run, folder, tmp_path):
    assert refusal(score(run, folder, "--measures", "nDCG@20 TRL@20")).startswith("'TRL@20' is not a known measure: ")
    assert refusal(score(run, folder, "--measures", " ,")) == (
        "--measures is empty: name measures such as 'nDCG@20 TLR@20 SLR@20'."
    )
    assert refusal(score(run, tmp_path / "none")).startswith(f"There is no dataset folder {tmp_path / 'none'}: ")
    assert refusal(score(tmp_path / "no.trec", folder)).startswith(f"There is no run {tmp_path / 'no.trec'}: ")


def test_data_judged_per_language_has_no_measures_across_languages(run, folder):
    (folder / "dataset.json").write_text('{"judged": "per-language"}')
    assert refusal(score(run, folder, "--measures", "nDCG@10 TLR@20 LPR")) == (
        "TLR@20, LPR cannot be computed from this dataset: its documents are judged only for queries in their own "
        'language ("judged": "per-language" in dataset.json), so a document in another language counts as '
        "wrong. Use measures that do not compare languages, such as nDCG@10, R@100 and SLR@20."
    )
    document = json.loads(score(run, folder, "--json").stdout)
    assert measured(document) == {"nDCG@20", "R@20", "SLR@20", "own@1", "own@3", "MostShown@20"}


def test_positions_of_evidence_come_from_the_dataset(run, folder):
    rows = [("rain?de", "rain-de", ".1"), ("tides?de", "tides-de", ".9"), ("rain?en", "rain-en", ".92")]
    lines = ["query-id\tcorpus-id\tposition\tlength", *("\t".join((*row, "100")) for row in rows)]
    (folder / "evidence.tsv").write_text("\n".join(lines) + "\n")
    document = json.loads(score(run, folder, "--json", "--measures", "PSI@1").stdout)
    # German nDCG@1 is 1 in the bins from .10 and from .90; English, which has one bin only, is 0 there.
    found = document["sections"]["all"]["PSI@1"]
    assert (found["means"], found["queries"], found["left_out"]) == ({"a": 0}, {"a": 3}, {"a": 1})
    cells = found["tables"]["a"]["cells"]
    assert cells["0.90-0.95"]["Q1"] == {"mean": 0.5, "queries": 2}
    assert cells["floor"]["de"] == cells["floor 95 %"]["de"] == {"mean": 0, "queries": 2}
    assert cells["PSI"]["en"] == {"mean": None, "queries": 1}
    assert document["warnings"][1:] == [
        "a (mine), PSI@1: without any bias it would be 0.000 on average, and up to 0.000 by chance. "
        "18 of 20 position bins contain no queries and are left out."
    ]
