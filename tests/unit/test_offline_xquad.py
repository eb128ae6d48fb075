"""XQuAD in eight languages by exact search, against the figures measured with independent code."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from readme import DATA

from langshift.evaluate.commands import evaluate
from langshift.evaluate.dataset_commands import dataset
from langshift.ingest.vectors_commands import vectors

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
NEAR = 0.002

if not (DATA / "xquad").is_dir():
    pytest.skip(f"XQuAD is not in {DATA / 'xquad'}: LANGSHIFT_DATA names the folder", allow_module_level=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The passages are the same in every set, and are encoded once."""
    return tmp_path_factory.mktemp("encodings")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Language vectors of NTREX-128 in passages of three sentences, with everything that a method needs."""
    ntrex, folder = DATA / "ntrex", tmp_path_factory.mktemp("vectors")
    passages = ["--join-lines", "3", "--documents", ntrex / "DOCUMENT_IDS.tsv"]
    called("fit", "--pairs", ntrex, "--languages", LANGUAGES, *passages, "--pivot", "en,de",
           "--methods", "lir,affine", "--output", folder, by=vectors)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """Questions in all eight languages."""
    return converted(tmp_path_factory.mktemp("eight") / "data", "--multilingual-queries")


def called(*arguments, by=evaluate):
    said = CliRunner().invoke(by, list(map(str, arguments)), catch_exceptions=False)
    assert said.exit_code == 0, said.output
    return said.stdout


def converted(folder, *options):
    called("convert", "xquad", DATA / "xquad", folder, "--languages", LANGUAGES, *options, by=dataset)
    return folder


def asked(*arguments):
    return json.loads(called(*arguments, "--json"))


def measured(row, like):
    return {name: row["measures"][name] for name in like}


# Query language and pivot -> method -> what independent code measured; Appendix C's methods beside the base.
METHODS = {
    "en": {
        "none": {"nDCG@20": 0.7802, "TLR@20": 0.8132, "LPR": 0.472},
        "shift": {"nDCG@20": 0.7850, "TLR@20": 0.8218, "LPR": 0.421},
        "centering": {"nDCG@20": 0.7705, "TLR@20": 0.8047},
        "lir": {"nDCG@20": 0.7846, "TLR@20": 0.8199},
        "affine": {"nDCG@20": 0.7872, "TLR@20": 0.8242, "LPR": 0.488},
    },
    "de": {
        "none": {"nDCG@20": 0.7293, "TLR@20": 0.7600},
        "shift": {"nDCG@20": 0.7405, "TLR@20": 0.7778},
        "affine": {"nDCG@20": 0.7440, "TLR@20": 0.7825},
    },
}


@pytest.mark.parametrize("pivot", METHODS)
def test_one_query_language(pivot, cache, fitted, tmp_path):
    data = converted(tmp_path / "data", "--pivot", pivot)
    expected = METHODS[pivot]
    options = ["--vectors", fitted / f"{pivot}.safetensors", "--cache", cache, "--output", tmp_path / "rows"]
    rows = asked("offline", data, "--method", ",".join(expected), *options)["rows"]
    for row, (method, figures) in zip(rows, expected.items(), strict=True):
        assert row["method"] == method
        assert row["queries"]["nDCG@20"] == 1190
        assert measured(row, figures) == pytest.approx(figures, abs=NEAR)
    compared = asked("compare", tmp_path / "rows" / "none", tmp_path / "rows" / "shift")
    assert (compared["test"]["clustered_by"], compared["test"]["clusters"]) == ("article", 48)
    (tested,) = compared["sections"]["cross-language"]["TLR@20"]["tests"]
    assert tested["significant"]
    assert tested["difference"] == pytest.approx(expected["shift"]["TLR@20"] - expected["none"]["TLR@20"], abs=NEAR)
    # Vectors can be turned to another pivot; those that come with langshift are of the same text.
    for other in (["--vectors", fitted / "en.safetensors"], []):
        turned = asked("offline", data, "--pivot", pivot, "--cache", cache, *other)
        assert measured(turned, expected["shift"]) == pytest.approx(expected["shift"], abs=NEAR)


BETAS = {
    # beta: nDCG, LPR and Lang-nDCG, each plain and shifted
    0: (0.7166, 0.7224, 0.554, 0.533, 0.6929, 0.6935),
    0.02: (0.7101, 0.7178, 0.710, 0.699, 0.7156, 0.7193),
    0.05: (0.6877, 0.6969, 0.872, 0.874, 0.7265, 0.7329),
    0.1: (0.6144, 0.6248, 0.980, 0.982, 0.6934, 0.7005),
}


def test_eight_query_languages_and_language_preference(cache, every):
    names = "nDCG@20 R@20 LPR Lang_nDCG(same=2,other=1)@20"
    found = asked("sweep", every, "--alpha", "0,1", "--beta", "0,.02,.05,.1", "--measures", names, "--cache", cache)
    figures = {(point["beta"], point["alpha"]): point["all"] for point in found["beta"]}
    assert figures.keys() == {(beta, alpha) for beta in BETAS for alpha in (0, 1)}
    for beta, expected in BETAS.items():
        got = [figures[beta, alpha][name] for name in names.split() if name != "R@20" for alpha in (0, 1)]
        assert got == pytest.approx(expected, abs=NEAR)
    assert [figures[0, alpha]["R@20"] for alpha in (0, 1)] == pytest.approx([0.7720, 0.7797], abs=NEAR)
    # What was chosen on one half of the articles holds on the other.
    assert [found["halves"][half]["units"] for half in ("development", "test")] == [24, 24]
    plain, best = found["alpha"][0], found["best"]
    assert best["alpha"] == 1
    assert best["test"]["nDCG@20"] > plain["test"]["nDCG@20"]


def test_document_side_against_both_sides(cache, every, fitted):
    """Appendix J. With this encoder, unlike with the paper's, queries are better left alone."""
    options = ["--method", "none,shift,affine", "--shift-queries", "never,always", "--cache", cache]
    rows = asked("offline", every, "--vectors", fitted / "en.safetensors", *options)["rows"]
    expected = {
        ("none", False): {"nDCG@20": 0.7166, "R@20": 0.7720, "LPR": 0.554},
        ("shift", False): {"nDCG@20": 0.7224, "R@20": 0.7797, "LPR": 0.533},
        ("shift", True): {"nDCG@20": 0.7198, "R@20": 0.7770, "LPR": 0.560},
        ("affine", False): {"nDCG@20": 0.7238, "R@20": 0.7814, "LPR": 0.533},
        ("affine", True): {"nDCG@20": 0.7215, "R@20": 0.7788, "LPR": 0.564},
    }
    assert [(row["method"], row["shift_queries"]) for row in rows] == list(expected)
    for row, figures in zip(rows, expected.values(), strict=True):
        assert measured(row, figures) == pytest.approx(figures, abs=NEAR)
    # Questions in the pivot language are the same on both sides.
    assert rows[1]["by_language"]["en"] == rows[2]["by_language"]["en"]


def test_chinese_as_pivot(cache, every):
    """Appendix E: the vectors turned to another source language."""
    rows = asked("offline", every, "--pivot", "zh", "--method", "none,shift", "--cache", cache)["rows"]
    plain, shifted = (row["by_language"]["zh"]["measures"] for row in rows)
    assert rows[1]["fingerprint"]["pivot"] == "zh"
    figures = [found[name] for found in (plain, shifted) for name in ("nDCG@20", "TLR@20")]
    assert figures == pytest.approx([0.7243, 0.7593, 0.7318, 0.7715], abs=NEAR)


def test_languages_given_against_detected(cache, every):
    """Appendix G: whole passages, and less and less of them."""
    sources = ["given", "detected", "detected:100", "detected:50", "detected:20", "soft:20"]
    options = ["--method", "none,shift", "--language-from", ",".join(sources), "--cache", cache]
    plain, given, *detected = asked("offline", every, *options)["rows"]
    assert [row["language_from"] for row in (given, *detected)] == sources
    accuracy = [row["detection"]["accuracy"] for row in detected]
    assert accuracy == pytest.approx([1.0, 0.998, 0.995, 0.942, 0.942], abs=NEAR)
    assert detected[0]["measures"] == given["measures"]
    # Wrong and unknown languages cost little of what the shift gains.
    for row in detected:
        assert row["measures"]["nDCG@20"] == pytest.approx(given["measures"]["nDCG@20"], abs=NEAR)
        assert row["measures"]["TLR@20"] > plain["measures"]["TLR@20"] + 0.005
