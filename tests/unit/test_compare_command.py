"""The command: what it reads, prints, writes, refuses, and with which code it ends."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from data_folder import write_dataset, write_run
from junitparser import JUnitXml

from langshift.commands.evaluate import evaluate
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import identity, load_dataset

DOCUMENTS = {f"t{i}-{tag}": (tag, f"t{i}", f"On {i}.") for i in range(12) for tag in ("en", "de")}
QUERIES = {f"q{i}-{tag}": (tag, f"t{i}", None, f"What of {i}?") for i in range(12) for tag in ("en", "de")}
QRELS = {name: {f"{group}-en": 1, f"{group}-de": 1} for name, (_, group, *_) in QUERIES.items()}
BOTH = {name: [f"{group}-en", f"{group}-de"] for name, (_, group, *_) in QUERIES.items()}
ENGLISH = {name: [f"{group}-en"] for name, (_, group, *_) in QUERIES.items()}


@pytest.fixture
def data(tmp_path):
    return write_dataset(tmp_path / "data", DOCUMENTS, QUERIES, QRELS)


@pytest.fixture
def results(data, tmp_path):
    """Two folders as a replay or an offline evaluation writes them: `both` finds both languages, `english` one."""
    for name, run in (("both", BOTH), ("english", ENGLISH)):
        write_run(tmp_path / name / "run.trec", run)
        found = {"index": name, "mode": "exact", "dataset": identity(load_dataset(data))}
        (tmp_path / name / "result.json").write_text(json.dumps(found))
        with (tmp_path / name / "group-scores.jsonl").open("w") as file:
            for query, (_, group, *_) in QUERIES.items():
                file.write(json.dumps({"query": query, "scores": {f"{group}-en": 2.0, f"{group}-de": 1.0}}) + "\n")
    return tmp_path / "both", tmp_path / "english"


def compare(*arguments):
    return CliRunner().invoke(evaluate, ["compare", *map(str, arguments)])


def refusal(*arguments):
    said = compare(*arguments)
    assert isinstance(said.exception, UsageError), said.exception
    return str(said.exception)


def test_what_is_printed(results):
    said = compare(*results, "--measures", "nDCG@20 LPR SLR@20")
    assert said.exit_code == 0
    assert said.stderr == ""
    lines = [line.rstrip() for line in said.stdout.splitlines()]
    assert lines[2:7] == [
        "All relevant documents",
        "run          nDCG@20     LPR",
        "a (both)     1.0000ᵇ   .5000",
        "b (english)    .6131   .5000",
        "queries           24      24",
    ]
    for heading in (
        "All relevant documents",
        "Same-language: relevant documents in the query's language; others count as not relevant",
        "Cross-language: relevant documents in other languages; those in the query's count as not relevant",
        "By query language, same-language: a, and the change to b (* significant)",
        "R@20 by query and document language: change from a to b",
        "nDCG@20, query by query: b is better than a for 0, worse for 24 and the same for 0.",
        "Biggest losers (* answers the query)",
        "Which to use",
    ):
        assert heading in lines
    assert lines[-1].startswith(
        "Readers find the answer in their own language less often: within the first three hits for 50% of the "
        "questions that have one, 100% before (own@3). Keep a (both) rather than b (english): over 24 questions, "
        "nDCG@20 falls from 1.000 to .613"
    )
    assert "Biggest winners (* answers the query)" not in lines


def test_json_is_one_document(results):
    said = compare(*results, "--json")
    document = json.loads(said.stdout)
    assert [run["index"] for run in document["runs"]] == ["both", "english"]
    assert document["sections"]["all"]["LPR"]["means"] == {"a": 0.5, "b": 0.5}
    assert document["test"]["permutations"] == 2**12
    assert document["test"]["exact"] is True
    (verdict,) = document["verdicts"]
    assert (verdict["before"], verdict["after"], verdict["kind"]) == ("a", "b", "do not shift")


def test_a_run_of_any_retriever(results, data):
    said = compare(results[0] / "run.trec", results[1], "--dataset", data, "--json")
    assert [run["name"] for run in json.loads(said.stdout)["runs"]] == ["both", "english"]


def test_runs_that_do_not_fit_are_told(results, data):
    run = write_run(data.parent / "odd.trec", {**BOTH, "q0-en": ["t0-en", "strange"], "q1-en": ["t1-en"]})
    run.write_text("".join(line for line in run.read_text().splitlines(keepends=True) if not line.startswith("q2-en ")))
    (results[1] / "result.json").write_text(json.dumps({"complete": False, "errors": 3}))
    said = compare(run, results[1], "--dataset", data, "--measures", "nDCG@20 LPR")
    assert said.exit_code == 0
    *lines, lpr = said.stderr.splitlines()
    assert lpr.startswith("Warning: a (odd), LPR: ")
    assert lines == [
        "Warning: a (odd) has no answer for 1 queries, which count as 0.",
        "Warning: a (odd): 1 of the documents found are not in the dataset (for example strange) and count as not "
        "relevant.",
        "Warning: b (english) is an interrupted replay, so its figures are too low: resume it.",
        "Warning: b (english) has 3 failed queries, which count as 0.",
    ]


def test_conditions_the_file_for_ci_and_the_exit_code(results, tmp_path):
    conditions = ["--fail-if", "nDCG@20 < -0.5", "--fail-if", "SLR@20 in any < -0.1", "--fail-if", "value R@20 < .6"]
    said = compare(*results, *conditions, "--junit", tmp_path / "ci.xml", "--save-baseline", tmp_path / "kept.json")
    assert isinstance(said.exception, LangshiftError)
    assert said.exception.exit_code == 1
    assert str(said.exception) == (
        "SLR@20 for queries in de changes by -1.0000, from 1.0000 to .0000 (fails if 'SLR@20 in any < -0.1'). "
        "R@20 is .5000 (fails if 'value R@20 < .6')."
    )
    assert "- passes: nDCG@20 changes by -.3869, from 1.0000 to .6131.\n" in said.stdout
    assert not (tmp_path / "kept.json").exists()
    (suite,) = JUnitXml.fromfile(str(tmp_path / "ci.xml"))
    assert (suite.name, suite.tests, suite.failures) == ("both english", 3, 2)
    cases = list(suite)
    assert [case.name for case in cases] == ["nDCG@20 < -0.5", "SLR@20 in any < -0.1", "value R@20 < .6"]
    assert [case.is_passed for case in cases] == [True, False, False]
    assert cases[2].result[0].message == "R@20 is .5000 (fails if 'value R@20 < .6')."
    verdicts = json.loads(compare(*results, *conditions, "--json").stdout)["conditions"]
    assert [verdict["failed"] for verdict in verdicts] == [False, True, True]


def test_a_baseline_takes_the_place_of_the_first_run(results, tmp_path):
    baseline = tmp_path / "new folder" / "baseline.json"
    kept = compare(results[0], "--save-baseline", baseline)
    assert kept.exit_code == 0
    assert kept.stderr == f"Saved the figures of a (both) to {baseline}.\n"
    assert json.loads(baseline.read_text())["by_language"]["de"]["SLR@20"] == 1.0
    condition = ["--baseline", baseline, "--fail-if", "SLR@20 < -0.01"]
    assert compare(results[0], *condition).exit_code == 0
    said = compare(results[1], *condition)
    assert str(said.exception) == "SLR@20 changes by -.5000, from 1.0000 to .5000 (fails if 'SLR@20 < -0.01')."
    assert refusal(results[1], "--baseline", baseline, "--fail-if", "SLR@5 < 0") == (
        "The baseline of both has no SLR@5: save it again with SLR@5 among the --measures."
    )


def test_a_baseline_that_cannot_be_used(results, tmp_path):
    path = tmp_path / "baseline.json"
    options = ["--baseline", path, "--fail-if", "SLR@20 < 0"]
    how = "create one with `langshift evaluate compare RUN --save-baseline FILE`"
    assert refusal(results[0], *options) == f"There is no baseline {path}: {how}."
    for content in ("", "[]", '{"langshift": "1"}', '{"name": "x"}'):
        path.write_text(content)
        assert refusal(results[0], *options) == f"{path} is not a baseline, or is damaged: {how}."
    compare(results[0], "--save-baseline", path)
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "dataset": "0123456789abcdef"}))
    assert refusal(results[0], *options) == (
        f"{path} is a baseline of another dataset (0123456789abcdef, not {kept['dataset']}): "
        "use the dataset that the baseline was saved for, or save the baseline again."
    )
    path.write_text(json.dumps({**kept, "measures": {"SLR@20": "high"}}))
    assert refusal(results[0], *options) == f"{path} is not a baseline, or is damaged: {how}."


def test_options_that_make_no_sense(results, tmp_path):
    junit, baseline = tmp_path / "ci.xml", tmp_path / "baseline.json"
    assert refusal(*results, "--junit", junit) == "--junit has nothing to write: give conditions with --fail-if."
    assert refusal(*results, "--baseline", baseline) == (
        "--baseline has nothing to judge: give conditions with --fail-if."
    )
    assert refusal(*results, "--measures", " ") == (
        "--measures is empty: name measures such as 'nDCG@20 TLR@20 SLR@20'."
    )
    assert refusal(*results, "--measures", "nDCG@20 best").startswith("'best' is not a known measure: ")
    assert refusal(*[results[0]] * 26) == "26 runs are too many for one table: give 25 at most."


def test_runs_that_are_not_there(results, tmp_path):
    how = "a folder that `langshift evaluate replay` or `offline` wrote with --output, or a TREC run with --dataset"
    assert refusal(results[0], tmp_path / "none") == f"There is no run {tmp_path / 'none'}: give {how}."
    (tmp_path / "empty").mkdir()
    assert refusal(results[0], tmp_path / "empty") == f"{tmp_path / 'empty'} contains no run.trec: give {how}."
    (results[1] / "result.json").write_text("{")
    assert refusal(*results).startswith(f"{results[1] / 'result.json'} is not valid JSON (")
    wrong = {"folder": "here", "hash": "0123456789abcdef", "documents": 24, "queries": "many"}
    for content in ('{"dataset": 1}', "[1]", json.dumps({"dataset": wrong})):
        (results[1] / "result.json").write_text(content)
        assert refusal(*results) == (
            f"{results[1] / 'result.json'} is not in langshift's format: run the evaluation again."
        )


def test_a_dataset_that_is_not_there_any_more(results, data, tmp_path):
    data.rename(tmp_path / "moved")
    assert refusal(*results) == (
        f"{results[0]} is a run of {data}, which no longer exists: give the dataset with --dataset."
    )


def test_runs_of_different_datasets(results, data, tmp_path):
    ours = identity(load_dataset(data))["hash"]
    result = json.loads((results[1] / "result.json").read_text())
    result["dataset"] |= {"folder": "elsewhere", "queries": 7, "hash": "0123456789abcdef"}
    (results[1] / "result.json").write_text(json.dumps(result))
    assert refusal(*results) == (
        f"{results[0]} and {results[1]} are runs of different datasets, {data} (24 queries, {ours}) and elsewhere "
        "(7 queries, 0123456789abcdef): compare runs of the same dataset."
    )
    assert refusal(*results, "--dataset", data) == (
        f"{results[1]} is a run of elsewhere as it was then (24 documents, 7 queries, 0123456789abcdef), which differs "
        f"from {data} (24, 24, {ours}): give the same dataset, or rerun it."
    )
    stranger = write_run(tmp_path / "stranger.trec", {"q9": ["t0-en"]})
    assert refusal(stranger, stranger, "--dataset", data) == (
        f"{stranger} answers no query of {data}: it is a run of another dataset."
    )
    assert refusal(stranger, stranger) == (
        f"{stranger} does not record which dataset it is a run of: specify it with --dataset."
    )


def test_data_judged_per_language(results, data):
    (data / "dataset.json").write_text('{"judged": "per-language"}')
    said = compare(*results, "--json")
    document = json.loads(said.stdout)
    assert list(document["sections"]) == ["all", "same-language"]
    assert document["matrices"] == []
    assert refusal(*results, "--fail-if", "TLR@20 < 0").startswith("TLR@20 cannot be computed from this dataset: ")
