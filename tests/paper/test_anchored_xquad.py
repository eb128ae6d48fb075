"""Anchored search on real text: every eighth question of XQuAD's odd articles; the even ones made its constants."""

import json

import pytest
from command_line import langshift
from searched import drop

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
STEP = 8
# Which documents a calibration looks at goes by the index's name and the order in which they were written: with one
# name, and no more of them at a time than one request takes, they are the same in every run.
NAME = "langshift-test-anchored-xquad"
AT_A_TIME = 200


@pytest.fixture
def replayed(tmp_path, client, cluster_url, encoded_xquad):
    """Anchored search, and the default, of a calibrated pool that has every passage in every language.

    What little translated ones lose is measured by ``make evidence``, in tests/evidence/test_default_search.py.
    """

    def done(*arguments):
        finished = langshift(*arguments, url=cluster_url)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    drop(client, NAME)
    folder = tmp_path / "test"
    options = ["--languages", LANGUAGES, "--multilingual-queries", "--split-by-article", "--keep", 8]
    done("dataset", "convert", "xquad", encoded_xquad, tmp_path, *options)
    asked = (folder / "queries.jsonl").read_text().splitlines(keepends=True)[::STEP]
    (folder / "queries.jsonl").write_text("".join(asked))
    ids = {json.loads(line)["_id"] for line in asked}
    head, *judged = (folder / "qrels" / "test.tsv").read_text().splitlines(keepends=True)
    (folder / "qrels" / "test.tsv").write_text(head + "".join(one for one in judged if one.split("\t")[0] in ids))
    lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    for begin in range(0, len(lines), AT_A_TIME):
        (tmp_path / "part.jsonl").write_text("".join(lines[begin : begin + AT_A_TIME]))
        done(
            "ingest",
            tmp_path / "part.jsonl",
            "--index",
            NAME,
            *(["--if-exists", "append"] if begin else ["--encoder", "use-m"]),
        )
    done("anchors", "calibrate", NAME, "--sample", "200")
    settings = ["--setting", "default", "--setting", "anchored"]
    measures = ["--measures", "nDCG@20 TLR@20 LPR Lang_nDCG@20"]
    done("evaluate", "replay", folder, "--index", NAME, *settings, *measures, "--output", tmp_path / "out")
    yield tmp_path / "out"
    drop(client, NAME)


def test_where_all_is_translated_it_finds_the_answer_in_every_language_and_the_searchers_own_first(replayed):
    for setting in ("anchored", "default"):
        found = json.loads((replayed / setting / "result.json").read_bytes())["measures"]
        # The goals of the held-back articles, of which this is an eighth.
        assert found["nDCG@20"] >= 0.88
        assert found["TLR@20"] >= 0.90
        assert found["LPR"] >= 0.93
        assert found["Lang_nDCG@20"] >= 0.88
