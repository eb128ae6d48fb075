"""The commands over a small dataset with the real encoder, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from data_folder import write_dataset
from offline_data import DOCUMENTS, QUERIES, refusal, run, small_dataset

from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import FingerprintError
from langshift.evaluate.datasets.dataset import identity, load_dataset
from langshift.evaluate.runs import read_run


@pytest.fixture
def data(tmp_path):
    return small_dataset(tmp_path / "data")


def test_a_querys_own_document_is_left_out(tmp_path):
    queries = {name: (tag, None, None, text) for name, (tag, _, text) in DOCUMENTS.items() if tag == "en"}
    folder = write_dataset(tmp_path / "data", DOCUMENTS, queries, {name: {f"{name[:-2]}de": 1} for name in queries})
    out = tmp_path / "out"
    said = run("offline", folder, "--alpha", "1", "--output", out, "--measures", "nDCG@10 RR", "--json")
    result = json.loads(said.stdout)
    assert result["measures"] == {"nDCG@10": 1.0, "RR": 1.0}
    assert result["dataset"]["own_documents"] == len(queries)
    assert result["warnings"][0].startswith(f"{len(queries)} of {len(queries)} queries are documents of the same id: ")
    assert {query: len(hits) for query, hits in read_run(out / "run.trec").items()} == dict.fromkeys(queries, 3)
    assert not any(query in hits for query, hits in read_run(out / "run.trec").items())


def test_files_in_the_form_of_a_replay(data, tmp_path):
    out, cache = tmp_path / "results" / "shifted", tmp_path / "cache"
    said = run(
        "offline", data, "--alpha", "1", "--prefer-language", ".125", "--output", out, "--cache", cache, "--json"
    )
    assert said.exit_code == 0, said.output
    result = json.loads(said.stdout)
    assert json.loads((out / "result.json").read_text()) == result
    assert sorted(path.name for path in out.iterdir()) == [
        "group-scores.jsonl",
        "per-query.jsonl",
        "result.json",
        "run.trec",
    ]
    assert (result["mode"], result["beta"], result["complete"], result["errors"]) == ("exact", 0.125, True, 0)
    assert result["dataset"] == identity(load_dataset(data))
    assert result["queries"]["asked"] == 2
    assert result["measures"]["R@20"] == 1.0
    assert result["by_language"].keys() == {"de", "en"}
    assert (result["method"], result["shift_queries"]) == ("shift", False)
    assert (result["language_from"], result["detection"]) == ("given", None)
    assert (result["fingerprint"]["pivot"], result["fingerprint"]["alpha"]) == ("en", 1.0)
    # The scores are those of the encoder and the language vectors, with the preference on top.
    encoder, known = open_encoder("use-m"), LanguageVectors.load(shipped("use-m"))
    documents = encoder.encode_documents([text for _, _, text in DOCUMENTS.values()]).astype(np.float64)
    documents[[1, 3]] -= known.vectors["de"]
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    scores = encoder.encode_queries([text for *_, text in QUERIES.values()]).astype(np.float64) @ documents.T
    scores[0, [0, 2]] += 0.125
    scores[1, [1, 3]] += 0.125
    found = read_run(out / "run.trec")
    for query, row in zip(QUERIES, scores, strict=True):
        assert found[query] == pytest.approx(dict(zip(DOCUMENTS, row, strict=True)), abs=1e-6)
    groups = [json.loads(line) for line in (out / "group-scores.jsonl").read_text().splitlines()]
    assert groups[1]["query"] == "q2"
    assert groups[1]["scores"] == {name: found["q2"][name] for name in ("bread-en", "bread-de")}
    rows = [json.loads(line) for line in (out / "per-query.jsonl").read_text().splitlines()]
    assert [(row["query"], row["language"], row["hits"], row["error"]) for row in rows] == [
        ("q1", "en", 4, None),
        ("q2", "de", 4, None),
    ]
    assert len(list(cache.iterdir())) == 2
    # What was written can be compared at once.
    plain = run("offline", data, "--alpha", "0", "--output", tmp_path / "results" / "plain", "--cache", cache)
    assert plain.exit_code == 0
    assert plain.stdout.startswith(f"{data}: 2 queries, exact search, alpha 0\n")
    assert plain.stderr == (
        f"Wrote run.trec, group-scores.jsonl, per-query.jsonl and result.json to {tmp_path / 'results' / 'plain'}.\n"
    )
    compared = run("compare", tmp_path / "results" / "plain", out, "--json")
    assert json.loads(compared.stdout)["test"]["clustered_by"] == "article"


def test_another_pivot(data):
    said = run("offline", data, "--pivot", "de", "--measures", "nDCG@20, P@1")
    assert said.stdout.startswith(f"{data}: 2 queries, exact search, alpha 1, pivot de\n")
    assert "P@1" in said.stdout


def test_every_combination_of_scales_is_a_row(data, tmp_path):
    given = ("--alpha", "1,0", "--gamma", "0,.97", "--prefer-language", "0,.05", "--measures", "nDCG@20,R@20")
    said = run("offline", data, *given, "--output", tmp_path / "grid", "--json")
    assert said.exit_code == 0, said.output
    rows = json.loads(said.stdout)["rows"]
    assert [(row["fingerprint"]["alpha"], row["gamma"], row["beta"]) for row in rows] == [
        (alpha, gamma, beta) for alpha in (0.0, 1.0) for gamma in (0.0, 0.97) for beta in (0.0, 0.05)
    ]
    assert sorted(path.name for path in (tmp_path / "grid").iterdir()) == sorted(
        f"{shift}-beta-{beta}"
        for shift in ("none", "shift-alpha-0-gamma-0.97", "shift-alpha-1-gamma-0", "shift-alpha-1-gamma-0.97")
        for beta in ("0", "0.05")
    )
    alone = run("offline", data, "--alpha", 1, "--gamma", 0.97, "--prefer-language", 0.05, *given[-2:], "--json")
    assert json.loads(alone.stdout)["measures"] == rows[-1]["measures"]
    shown = run("offline", data, *given).stdout.splitlines()
    assert shown[0] == f"{data}: 2 queries, exact search, pivot en"
    assert shown[1].split() == ["method", "alpha", "gamma", "beta", "nDCG@20", "R@20"]
    assert [line.split()[:4] for line in shown[2:6]] == [
        ["shift", "0", "-", "0"],
        ["shift", "0", "-", "0.05"],
        ["shift", "0", "0.97", "0"],
        ["shift", "0", "0.97", "0.05"],
    ]


def test_what_is_refused_before_anything_is_encoded(data, tmp_path):
    without = tmp_path / "without.safetensors"
    replace(LanguageVectors.load(shipped("use-m")), common={}, query_directions=None, own_vectors={}).save(without)
    assert refusal("offline", data, "--gamma", "0,.97", "--vectors", without).startswith(
        "The language vectors contain no directions of queries for a gamma: "
    )
    assert refusal("offline", data, "--gamma", "0,.5,.97").startswith(
        "gamma 0.5 cannot be used: it must be 0, or 0.9 to 0.98."
    )
    none, file = tmp_path / "none", tmp_path / "file"
    file.write_text("")
    holds = "a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv"
    assert refusal("offline", none) == f"There is no dataset folder {none}: {holds}."
    assert refusal("offline", data, "--encoder", "m3") == (
        "Unknown encoder 'm3'; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data)."
    )
    assert refusal("offline", data, "--cache", file) == f"{file} is a file: name a folder for --cache."
    assert refusal("offline", data, "--vectors", none) == (
        f"The language-vector file {none} does not exist; create one with `langshift vectors fit`."
    )
    assert refusal("offline", data, "--pivot", "xx").startswith("The language vectors do not include the pivot 'xx'")
    assert refusal("offline", data, "--measures", "best").startswith("'best' is not a known measure: ")
    assert refusal("offline", data, "--output", file) == f"{file} is a file: name a folder for --output."


def test_vectors_of_another_encoder(data, tmp_path):
    path = tmp_path / "other.safetensors"
    LanguageVectors("en", {"de": np.ones(512, np.float32)}, {"de": 1}, "m3", "1", "", 512, True, "").save(path)
    assert refusal("offline", data, "--vectors", path, kind=FingerprintError) == (
        f"{path}: these language vectors were fitted with encoder m3, not use-m: "
        "fit vectors for this encoder with `langshift vectors fit`."
    )


@pytest.mark.parametrize(
    ("option", "value", "reach"),
    [("--alpha", "0,2", "from 0 to 1"), ("--alpha", ",", "from 0 to 1"), ("--prefer-language", "a", "of 0 or more")],
)
def test_numbers_that_are_none(data, option, value, reach):
    said = run("offline", data, option, value)
    assert said.exit_code == 2
    assert said.stderr.endswith(
        f"Invalid value for '{option}': {value!r} is not a comma-separated list of numbers {reach}, "
        "such as 0,.02,.05,.1.\n"
    )
