"""Every search mode on every question of XQuAD (RESULTS.md); test_rerank_modes.py has where few are translated."""

import json

import pytest
from documents import DATA
from searched import drop

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
NAME = "langshift-evidence"

pytestmark = pytest.mark.skipif(
    not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place"
)


@pytest.fixture
def shown(done):
    """Runs a command, and shows what it prints."""
    return lambda *arguments: print(done(*arguments), end="")


@pytest.fixture
def xquad(client, shown, tmp_path):
    """XQuAD in a calibrated index; the dataset's folder."""
    drop(client, NAME)
    folder, options = tmp_path / "xquad", ["--languages", LANGUAGES, "--multilingual-queries"]
    shown("dataset", "convert", "xquad", DATA / "xquad", folder, *options)
    shown("ingest", folder / "corpus.jsonl", "--index", NAME, "--encoder", "use-m")
    shown("anchors", "calibrate", NAME)
    yield folder
    drop(client, NAME)


def measures(output, setting):
    return json.loads((output / setting / "result.json").read_bytes())["measures"]


def test_every_mode_on_every_question(shown, xquad, tmp_path):
    shown("evaluate", "modes", xquad, "--index", NAME, "--output", tmp_path / "out")
    plain, anchored, auto = (measures(tmp_path / "out", setting) for setting in ("dense", "anchored", "auto"))
    for found in (anchored, auto):
        assert found["nDCG@20"] >= max(0.88, plain["nDCG@20"])
        assert found["TLR@20"] >= 0.90
