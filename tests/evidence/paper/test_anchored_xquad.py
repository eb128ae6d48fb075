"""Anchored search on real text: every eighth question of XQuAD's odd articles; the even ones made its constants."""

import json
from statistics import fmean

import pytest
from command_line import langshift
from scipy.stats import ttest_1samp
from searched import drop

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
STEP = 8
# Which documents a calibration looks at goes by the index's name and the order in which they were written: with one
# name, and no more of them at a time than one request takes, they are the same in every run.
NAME = "langshift-test-anchored-xquad"
AT_A_TIME = 200


@pytest.fixture
def replayed(tmp_path, client, cluster_url, encoded_xquad):
    """Dense and anchored search, and the default, of a calibrated pool that keeps so many translations of a passage."""

    def done(*arguments):
        finished = langshift(*arguments, url=cluster_url)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def replay(keep):
        folder = tmp_path / "test"
        options = ["--languages", LANGUAGES, "--multilingual-queries", "--split-by-article", "--keep", keep]
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
        settings = ["--setting", "dense", "--setting", "anchored"]
        measures = ["--measures", "nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20"]
        done("evaluate", "replay", folder, "--index", NAME, *settings, *measures, "--output", tmp_path / "out")
        return tmp_path / "out"

    drop(client, NAME)
    yield replay
    drop(client, NAME)


def test_where_all_is_translated_it_finds_the_answer_in_every_language_and_the_searchers_own_first(replayed):
    folder = replayed(8)
    for setting in ("anchored", "default"):
        found = json.loads((folder / setting / "result.json").read_bytes())["measures"]
        # The goals of the held-back articles, of which this is an eighth.
        assert found["nDCG@20"] >= 0.88
        assert found["TLR@20"] >= 0.90
        assert found["LPR"] >= 0.93
        assert found["Lang_nDCG@20"] >= 0.88


@pytest.mark.parametrize("keep", [1, 2])
def test_where_little_is_translated_nothing_is_lost(replayed, keep):
    folder = replayed(keep)
    before = _per_query(folder / "dense")
    own = {query for query, figures in before.items() if figures.get("SLR@20") is not None}
    assert 0 < len(own) < len(before)
    for after in (_per_query(folder / name) for name in ("anchored", "default")):
        for asked in (own, before.keys() - own):
            for measure in ("nDCG@20", "TLR@20"):
                gains = [
                    after[query][measure] - before[query][measure]
                    for query in asked
                    if before[query].get(measure) is not None
                ]
                assert not gains or fmean(gains) >= 0 or ttest_1samp(gains, 0, alternative="less").pvalue > 0.05


def _per_query(folder):
    rows = map(json.loads, (folder / "per-query.jsonl").read_text().splitlines())
    return {row["query"]: row["measures"] for row in rows}
