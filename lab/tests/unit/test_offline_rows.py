"""Several methods, sources of languages and sides in one evaluation, and lists of them that are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from offline_data import refusal, run, small_dataset

from langshift.debias.detector import bundled_model
from langshift.debias.vectors import shipped
from langshift.evaluate.runs import read_run
from langshift_lab.methods.vectors import MethodVectors


@pytest.fixture
def data(tmp_path):
    return small_dataset(tmp_path / "data")


@pytest.fixture
def fitted(tmp_path):
    """The vectors that come with langshift, with made-up tensors for the other methods."""
    known = MethodVectors.load(shipped("use-m"))
    draw = np.random.default_rng(1)
    means = {tag: draw.normal(size=512).astype(np.float32) for tag in ("en", "de")}
    maps = {tag: np.eye(512, dtype=np.float32) for tag in known.vectors}
    path = tmp_path / "fitted.safetensors"
    # With the identity as its map, and these means, affine is the shift.
    means |= {tag: draw.normal(size=512).astype(np.float32) for tag in known.vectors if tag != "de"}
    replace(known, means=means, maps=maps, recommendation=None).save(path)
    return path


def test_several_rows_are_one_table_and_a_folder_each(data, fitted, tmp_path):
    out, cache = tmp_path / "rows", tmp_path / "cache"
    options = ["--vectors", fitted, "--cache", cache, "--measures", "nDCG@20, TLR@20", "--output", out]
    every = ["offline", data, "--method", "none,shift,centering,affine", "--shift-queries", "never,always", *options]
    said = run(*every)
    assert said.exit_code == 0, said.output
    folders = ["none", "shift", "shift-both-sides", "centering", "affine", "affine-both-sides"]
    lines = said.stdout.splitlines()
    assert lines[0] == f"{data}: 2 queries, exact search, alpha 1, pivot en"
    assert lines[1].split() == ["method", "changes", "nDCG@20", "TLR@20"]
    assert [line.split()[0] for line in lines[2:]] == [name.partition("-")[0] for name in folders]
    assert said.stderr == (
        "Wrote run.trec, group-scores.jsonl, per-query.jsonl and result.json for each of "
        f"{', '.join(folders)} to {out}.\n"
    )
    assert sorted(path.name for path in out.iterdir()) == sorted(folders)
    rows = json.loads(run(*every, "--json").stdout)["rows"]
    assert [(row["method"], row["shift_queries"]) for row in rows] == [
        ("none", False),
        ("shift", False),
        ("shift", True),
        ("centering", True),
        ("affine", False),
        ("affine", True),
    ]
    for name, row in zip(folders, rows, strict=True):
        assert json.loads((out / name / "result.json").read_text()) == row
    runs = {name: read_run(out / name / "run.trec") for name in folders}
    for moved in ("", "-both-sides"):
        for query, scores in runs[f"shift{moved}"].items():
            assert runs[f"affine{moved}"][query] == pytest.approx(scores, abs=1e-6)
    assert runs["shift"]["q1"] == runs["shift-both-sides"]["q1"]  # in the pivot language
    assert runs["shift"]["q2"] != runs["shift-both-sides"]["q2"]
    compared = run("compare", out / "shift", out / "shift-both-sides", "--json")
    assert compared.exit_code == 0, compared.output


def test_languages_from_elsewhere_move_documents_and_measure_nothing(data, tmp_path):
    arguments = ["offline", data, "--language-from", "given,detected,soft:1", "--cache", tmp_path / "cache", "--json"]
    given, detected, soft = json.loads(run(*arguments).stdout)["rows"]
    assert [row["language_from"] for row in (given, detected, soft)] == ["given", "detected", "soft:1"]
    assert detected["detection"] == {"accuracy": 1.0, "documents": 4, "unknown": 0}
    assert detected["measures"] == given["measures"]
    assert given["queries"] == soft["queries"]


def test_a_sweep_of_a_single_language(data, tmp_path):
    options = ["--encoder", "use-m", "--cache", tmp_path / "cache", "--output", tmp_path / "rows"]
    said = run("offline", data, "--method", "none,shift", "--alpha", ".5", "--alpha-for", "de=0,.5,1", *options)
    assert said.exit_code == 0, said.output
    heads = said.stdout.splitlines()[1].split()
    assert heads[:2] == ["method", "alpha"]
    assert "TR(language='de')@20" in said.stdout
    runs = {path.name: read_run(path / "run.trec") for path in (tmp_path / "rows").iterdir()}
    assert sorted(runs) == ["none", "shift-de-0", "shift-de-0.5", "shift-de-1"]
    # German alone has a vector in this dataset.
    assert runs["shift-de-0"] == runs["none"]
    assert runs["shift-de-1"] != runs["shift-de-0.5"]
    half = tmp_path / "half"
    run("offline", data, "--alpha", ".5", *options[:-1], half)
    assert read_run(half / "run.trec") == runs["shift-de-0.5"]
    result = json.loads((tmp_path / "rows" / "shift-de-1" / "result.json").read_text())
    assert (result["fingerprint"]["alpha"], result["fingerprint"]["alphas"]) == (0.5, {"de": 1.0})
    assert result["measures"]["TR(language='de')@20"] == 1.0
    assert refusal("offline", data, "--method", "none", "--alpha-for", "de=1") == (
        "--alpha-for scales the methods shift and affine: add one of them to --method."
    )
    for given, why in (
        ("d=1", "'d=1' is not a language with scales, such as th=.2,.6,1."),
        ("de=2", "'2' is not a comma-separated list of numbers from 0 to 1, such as 0,.02,.05,.1."),
    ):
        said = run("offline", data, "--alpha-for", given)
        assert (said.exit_code, why in said.output) == (2, True)


def test_a_detector_of_ones_own(data, tmp_path):
    # The bundled model, but that it takes German for English and English for German.
    bundled = bundled_model().read_bytes()
    (tmp_path / "mine.ftz").write_bytes(
        bundled.replace(b"__label__de\0", b"__label__xx\0")
        .replace(b"__label__en\0", b"__label__de\0")
        .replace(b"__label__xx\0", b"__label__en\0")
    )
    lid = ["--lid-model", tmp_path / "mine.ftz"]
    said = run("offline", data, "--language-from", "given,detected", *lid, "--cache", tmp_path / "cache", "--json")
    given, detected = json.loads(said.stdout)["rows"]
    assert detected["detection"] == {"accuracy": 0.0, "documents": 4, "unknown": 0}
    assert detected["fingerprint"]["detector"].startswith("mine.ftz ")
    assert given["detection"] is None
    assert refusal("offline", data, *lid) == (
        "--lid-model detects documents' languages: add detected or soft to --language-from."
    )


def test_no_language_vectors_are_needed_for_none(data, monkeypatch):
    monkeypatch.setattr("langshift.ingest.config.shipped", lambda _: None)
    said = run("offline", data, "--method", "none")
    assert said.stdout.startswith(f"{data}: 2 queries, exact search, method none\n")
    assert refusal("offline", data, "--method", "none,shift") == (
        "There are no language vectors for the encoder use-m: give some with --vectors, or --alpha 0 to index "
        "without a shift."
    )
    assert refusal("offline", data, "--alpha", 0, "--gamma", 0.97) == (
        "There are no language vectors for the encoder use-m: give some with --vectors, or --alpha 0 to index "
        "without a shift."
    )


def test_methods_that_are_refused_before_anything_is_encoded(data, fitted, tmp_path):
    assert refusal("offline", data, "--method", "shift,best") == (
        "Unknown method 'best'; choose one of none, shift, centering, lir, affine."
    )
    assert refusal("offline", data, "--vectors", fitted, "--method", "lir") == (
        "The language vectors contain nothing for the method lir: fit them with "
        "`langshift vectors methods --methods lir`."
    )
    affine = ["offline", data, "--vectors", fitted, "--method", "none,affine"]
    assert refusal(*affine, "--pivot", "de") == (
        "The maps of the method affine have the pivot en and cannot be converted to de: fit others with "
        "`langshift vectors methods --pivot de --methods affine`."
    )
    assert refusal(*affine, "--language-from", "soft") == (
        "--language-from soft works only with the method shift, not affine: leave affine out of --method, "
        "or soft out of --language-from."
    )
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "shift").write_text("")
    assert refusal("offline", data, "--method", "none,shift", "--output", tmp_path / "rows") == (
        f"{tmp_path / 'rows' / 'shift'} is a file: name a folder for --output."
    )


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--method", " , ", "The list is empty: give values separated by commas, such as none,shift,affine."),
        ("--shift-queries", "", "The list is empty: give values separated by commas, such as never,always."),
        ("--shift-queries", "never,often", "'often' is not one of never, always."),
        (
            "--language-from",
            ",",
            "The list is empty: give values separated by commas, such as given,detected,detected:20.",
        ),
        (
            "--language-from",
            "given,detected:0",
            "'detected:0' is not one of given, detected and soft; a number of characters, 1 or more, can follow the "
            "latter two, such as detected:20.",
        ),
    ],
)
def test_lists_that_cannot_be_read(data, option, value, expected):
    said = run("offline", data, option, value)
    assert said.exit_code == 2
    assert said.stderr.endswith(f"Invalid value for '{option}': {expected}\n")
