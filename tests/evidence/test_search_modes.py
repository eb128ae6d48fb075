"""Every search mode on every question of XQuAD, and anchored where few passages are translated (RESULTS.md)."""

import json

import pytest
from command_line import langshift
from documents import DATA
from searched import drop

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
NAME = "langshift-evidence"

pytestmark = pytest.mark.skipif(
    not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place"
)


@pytest.fixture
def done(cluster_url):
    """Runs a command, shows what it prints, and gives that."""

    def run(*arguments):
        finished = langshift(*arguments, url=cluster_url)
        assert finished.returncode == 0, finished.stderr
        print(finished.stdout, end="")
        return finished.stdout

    return run


@pytest.fixture
def index(client, done, tmp_path):
    """Makes an index of XQuAD with its calibration; gives the dataset's folder."""
    drop(client, NAME)

    def make(*options):
        options = ["--languages", LANGUAGES, "--multilingual-queries", *options]
        done("dataset", "convert", "xquad", DATA / "xquad", tmp_path / "xquad", *options)
        folder = tmp_path / "xquad" / "test" if "--split-by-article" in options else tmp_path / "xquad"
        done("ingest", folder / "corpus.jsonl", "--index", NAME, "--encoder", "use-m")
        done("anchors", "calibrate", NAME)
        return folder

    yield make
    drop(client, NAME)


def measures(output, setting):
    return json.loads((output / setting / "result.json").read_bytes())["measures"]


def test_every_mode_on_every_question(done, index, tmp_path):
    folder = index()
    done("evaluate", "modes", folder, "--index", NAME, "--output", tmp_path / "out")
    plain, anchored, auto = (measures(tmp_path / "out", setting) for setting in ("dense", "anchored", "auto"))
    for found in (anchored, auto):
        assert found["nDCG@20"] >= max(0.88, plain["nDCG@20"])
        assert found["TLR@20"] >= 0.90


@pytest.mark.parametrize("keep", [8, 2, 1])
def test_anchored_where_so_many_translations_are_kept(done, index, tmp_path, keep):
    folder = index("--split-by-article", "--keep", keep)
    settings = ["--setting", "dense", "--setting", "anchored", "--setting", "auto"]
    done("evaluate", "modes", folder, "--index", NAME, *settings, "--output", tmp_path / "out")
    plain, *others = (measures(tmp_path / "out", setting) for setting in ("dense", "anchored", "auto"))
    assert all(found["nDCG@20"] >= plain["nDCG@20"] for found in others)
