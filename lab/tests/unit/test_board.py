"""Many datasets and retrievers in one table: means worked out by hand, and what cannot be put together."""

from __future__ import annotations

import json

import pytest
from data_folder import write_run
from offline_data import refusal, run, small_dataset

# Retriever -> figures of each dataset; dataset -> queries.
FIGURES = {
    "plain": {"xquad": 0.5, "belebele": 0.4, "miracl": 0.3},
    "shifted": {"xquad": 0.6, "belebele": 0.5, "miracl": 0.7},
    "lexical": {"xquad": 0.2, "belebele": 0.2, "miracl": 0.8},
    "hybrid": {"xquad": 0.55, "belebele": 0.65, "miracl": 0.6},
}
QUERIES = {"xquad": 10, "belebele": 30, "miracl": 60}
MACRO = {"shifted": 0.6, "hybrid": 0.6, "lexical": 0.4, "plain": 0.4}
# (10 x .6 + 30 x .5 + 60 x .7) / 100, and so on.
WEIGHTED = {"shifted": 0.63, "hybrid": 0.61, "lexical": 0.56, "plain": 0.35}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The ``result.json`` of an evaluation."""
    folder = tmp_path_factory.mktemp("real")
    data = small_dataset(folder / "small")
    said = run(
        "offline", data, "--method", "none", "--measures", "nDCG@10 LPR MostShown@10", "--output", folder / "run"
    )
    assert said.exit_code == 0, said.output
    return json.loads((folder / "run" / "result.json").read_text())


def write(place, template, name, mean, **more):
    """A run of a dataset whose queries are half in German and half in Yoruba, .1 above and below the mean."""
    parts = {
        tag: {"measures": {"nDCG@10": mean + by, "LPR": 0.5}, "queries": {"nDCG@10": QUERIES[name] // 2, "LPR": 1}}
        for tag, by in (("de", 0.1), ("yo", -0.1))
    }
    result = {
        **template,
        "measures": {"nDCG@10": mean, "LPR": 1 - mean, "MostShown@10": 0.5},
        "queries": {"asked": QUERIES[name], "nDCG@10": QUERIES[name], "LPR": QUERIES[name]},
        "by_language": parts,
        "dataset": {
            "folder": f"/data/{name}",
            "documents": 5,
            "queries": QUERIES[name],
            "hash": f"hash-{name}",
        },
        **more,
    }
    write_run(place / "run.trec", {"q": ["d"]})
    (place / "result.json").write_text(json.dumps(result))
    return place


@pytest.fixture
def results(template, tmp_path):
    for name, figures in FIGURES.items():
        for dataset, mean in figures.items():
            write(tmp_path / "results" / dataset / name, template, dataset, mean)
    return tmp_path / "results"


def board(*arguments):
    said = run("board", *arguments, "--json")
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


def means(made, of):
    return {row["name"]: row[of] for row in made["retrievers"]}


def test_means_over_data_sets_and_over_queries(results):
    made = board(results)
    assert made["measure"] == "nDCG@10"
    assert {name: one["queries"] for name, one in made["datasets"].items()} == QUERIES
    assert sorted(made["means_over"]) == sorted(QUERIES)
    assert made["remarks"] == []
    assert means(made, "macro_mean") == pytest.approx(MACRO)
    assert means(made, "weighted_mean") == pytest.approx(WEIGHTED)
    assert [row["name"] for row in made["retrievers"]] == ["hybrid", "shifted", "lexical", "plain"]
    for row in made["retrievers"]:
        assert {name: one["mean"] for name, one in row["runs"].items()} == FIGURES[row["name"]]
        assert row["side_by_side"] == pytest.approx({"nDCG@10": MACRO[row["name"]], "LPR": 1 - MACRO[row["name"]]})
    assert board(results, "--measure", "LPR")["retrievers"][0]["name"] == "lexical"


def test_what_is_printed(results):
    said = run("board", results, "--surprise", "yo")
    assert said.exit_code == 0, said.output
    assert said.stderr == ""
    lines = [line.split() for line in said.stdout.splitlines()]
    assert lines[:7] == [
        ["nDCG@10:", "4", "retrievers,", "3", "datasets"],
        ["retriever", "macro", "mean", "weighted", "mean", "belebele", "miracl", "xquad"],
        ["hybrid", ".6000", ".6100", ".6500", ".6000", ".5500"],
        ["shifted", ".6000", ".6300", ".5000", ".7000", ".6000"],
        ["lexical", ".4000", ".5600", ".2000", ".8000", ".2000"],
        ["plain", ".4000", ".3500", ".4000", ".3000", ".5000"],
        ["queries", "30", "60", "10"],
    ]
    assert " ".join(lines[8]) == "nDCG@10 and LPR, macro means over belebele, miracl and xquad"
    assert lines[11] == ["shifted", ".6000", ".4000"]
    assert " ".join(lines[15]) == "nDCG@10 by query language, every language alike"
    assert lines[16:19] == [
        ["retriever", "known", "surprise", "all", "de", "yo"],
        ["hybrid", ".7000", ".5000", ".6000", ".7000", ".5000"],
        ["shifted", ".7000", ".5000", ".6000", ".7000", ".5000"],
    ]


def test_a_data_set_that_a_retriever_lacks(template, results, tmp_path):
    lacking = tmp_path / "three"
    for name, figures in FIGURES.items():
        for dataset, mean in figures.items():
            if (name, dataset) != ("lexical", "miracl"):
                write(lacking / dataset / name, template, dataset, mean)
    made = board(lacking)
    assert made["means_over"] == ["belebele", "xquad"]
    assert made["remarks"] == ["Means are over belebele and xquad alone, which every retriever has."]
    assert means(made, "macro_mean") == pytest.approx({"hybrid": 0.6, "shifted": 0.55, "plain": 0.45, "lexical": 0.2})
    # (10 x .5 + 30 x .4) / 40
    assert means(made, "weighted_mean")["plain"] == pytest.approx(0.425)
    said = run("board", lacking)
    (first, *_) = [line for line in said.stdout.splitlines() if line.startswith("lexical")]
    assert first.split() == ["lexical", ".2000", ".2000", ".2000", ".2000"]
    apart = board(results / "xquad" / "plain", results / "miracl" / "shifted")
    assert apart["means_over"] == []
    assert means(apart, "macro_mean") == {"plain": None, "shifted": None}
    assert apart["remarks"] == [
        "No dataset has a figure of every retriever, so their means cannot be compared: none is shown."
    ]


def test_names_of_rows_and_columns(template, tmp_path):
    other = {"fingerprint": {**template["fingerprint"], "encoder": "st:other"}}
    # Named after the dataset, as a single run of each retriever may be; and one name for two retrievers.
    write(tmp_path / "a" / "xquad", template, "xquad", 0.5)
    write(tmp_path / "a" / "miracl", template, "miracl", 0.5)
    write(tmp_path / "c" / "a", template, "xquad", 0.5, **other)
    encoder = template["fingerprint"]["encoder"]
    made = board(tmp_path)
    assert {row["name"]: sorted(row["runs"]) for row in made["retrievers"]} == {
        f"a ({encoder})": ["miracl", "xquad"],
        "a (st:other)": ["xquad"],
    }
    known = {"documents": 5, "queries": 10}
    for name in ("x", "y"):
        named = {"folder": f"/{name}/test", "hash": name, **known}
        write(tmp_path / "d" / name / "one", template, "xquad", 0.5, dataset=named)
    assert [*board(tmp_path / "d")["datasets"]] == ["x/test", "y/test"]


def test_what_cannot_be_one_table(template, results, tmp_path):
    plain = results / "xquad" / "plain"
    twice = write(tmp_path / "twice" / "plain", template, "xquad", 0.5)
    assert refusal("board", plain, twice) == (
        f"{plain} and {twice} are runs of one retriever, plain, and one dataset, /data/xquad: leave one out, or "
        "rename its folder."
    )
    changed = {**json.loads((plain / "result.json").read_text())["dataset"], "hash": "new"}
    write(twice, template, "xquad", 0.5, dataset=changed)
    assert refusal("board", plain, twice) == (
        f"{plain} and {twice} are runs of different datasets that are both /data/xquad (hash-xquad, new): run the "
        "earlier evaluation again, or leave one out."
    )
    write(twice, template, "xquad", 0.5, complete=False)
    assert refusal("board", twice) == (
        f"{twice} is an interrupted replay, so its figures are too low: resume it, or leave it out."
    )
    write(twice, template, "xquad", 0.5, dataset=None)
    assert refusal("board", twice) == (
        f"{twice} does not record which dataset it is a run of: run the evaluation again, or leave it out."
    )
    write(twice, template, "xquad", 0.5, measures={"R@20": 0.5})
    assert refusal("board", results, twice) == (
        "The runs have no measure in common: run the evaluations again with the same --measures."
    )
    assert refusal("board", twice, "--measure", "LPR") == (
        f"{twice} has no LPR: choose from R@20, or run the evaluation again with --measures LPR."
    )
    assert refusal("board", plain, "--measure", "MostShown@10") == (
        "MostShown@10 is of another language in each run, so it has no mean: name another --measure."
    )
    assert refusal("board", plain, "--surprise", "fr") == (
        "--surprise names 'fr', and no query is in it: the runs have de, yo."
    )
    (twice / "result.json").write_text('{"dataset": null}')
    (tmp_path / "empty").mkdir()
    assert refusal("board", tmp_path / "empty") == (
        f"{tmp_path / 'empty'} contains no result.json, nor does a folder in it: name what `langshift evaluate replay` "
        "or `offline` wrote."
    )
    assert refusal("board", tmp_path / "none") == (
        f"There is no folder {tmp_path / 'none'}: name what `langshift evaluate replay` or `offline` wrote."
    )
