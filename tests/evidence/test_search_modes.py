"""Every search mode on every question of XQuAD, and anchored where few passages are translated (RESULTS.md)."""

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
def index(client, shown, tmp_path):
    """Makes an index of XQuAD with its calibration; gives the dataset's folder."""
    drop(client, NAME)

    def make(*options):
        options = ["--languages", LANGUAGES, "--multilingual-queries", *options]
        shown("dataset", "convert", "xquad", DATA / "xquad", tmp_path / "xquad", *options)
        folder = tmp_path / "xquad" / "test" if "--split-by-article" in options else tmp_path / "xquad"
        shown("ingest", folder / "corpus.jsonl", "--index", NAME, "--encoder", "use-m")
        shown("anchors", "calibrate", NAME)
        return folder

    yield make
    drop(client, NAME)


def measures(output, setting):
    return json.loads((output / setting / "result.json").read_bytes())["measures"]


def test_every_mode_on_every_question(shown, index, tmp_path):
    folder = index()
    shown("evaluate", "modes", folder, "--index", NAME, "--output", tmp_path / "out")
    plain, anchored, auto = (measures(tmp_path / "out", setting) for setting in ("dense", "anchored", "auto"))
    for found in (anchored, auto):
        assert found["nDCG@20"] >= max(0.88, plain["nDCG@20"])
        assert found["TLR@20"] >= 0.90


@pytest.mark.parametrize("keep", [8, 2, 1])
def test_anchored_where_so_many_translations_are_kept(shown, index, tmp_path, keep):
    folder = index("--split-by-article", "--keep", keep)
    settings = ["--setting", "dense", "--setting", "anchored", "--setting", "auto"]
    shown("evaluate", "modes", folder, "--index", NAME, *settings, "--output", tmp_path / "out")
    plain, *others = (measures(tmp_path / "out", setting) for setting in ("dense", "anchored", "auto"))
    assert all(found["nDCG@20"] >= plain["nDCG@20"] for found in others)
