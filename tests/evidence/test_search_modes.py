"""Every search mode on every question of XQuAD (RESULTS.md); test_rerank_modes.py has where few are translated."""

import json

import pytest
from documents import DATA
from searched import drop

from langshift.evaluate.replay.plan import run_names
from langshift.retrieval.request import MODES, read_setting

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
NAME = "langshift-evidence"
MEASURES = "nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20 Top1"

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
    out = tmp_path / "out"
    settings = [*MODES[1:], MODES[0], "dense --prefer-language .02", "dense --spread .02"]
    given = [word for setting in settings for word in ("--setting", setting)]
    shown("evaluate", "replay", xquad, "--index", NAME, *given, "--output", out)
    folders = run_names([NAME], [read_setting(setting) for setting in settings])
    shown("evaluate", "compare", "--brief", *(out / name for name in folders), "--measures", MEASURES)
    plain, anchored, auto = (measures(out, setting) for setting in ("dense", "anchored", "default"))
    for found in (anchored, auto):
        assert found["nDCG@20"] >= max(0.88, plain["nDCG@20"])
        assert found["TLR@20"] >= 0.90
