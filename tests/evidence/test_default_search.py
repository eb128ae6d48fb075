"""A search without options against dense: what a calibration chose loses nothing, and changes what it predicted.

XQuAD's odd articles with all translations of each passage, two and one, and captions that are asked for in other words,
by both encoders; the predictions of all of them are counted at the end.
"""

import json
from statistics import fmean

import pytest
from documents import DATA
from loses_nothing import QUESTIONS, require_nothing_lost
from searched import drop

NAME = "langshift-evidence-default"
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
KEPT = {"all": 8, "two": 2, "one": 1}
# Of the slices of judged questions, so many change by what was predicted.
PREDICTED = 0.9

pytestmark = pytest.mark.skipif(
    not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place"
)


@pytest.fixture(scope="module")
def predicted():
    """Whether each slice changed by what was predicted; where the mode is dense, nothing changes or is counted."""
    found = []
    yield found
    print(f"\npredictions that hold: {sum(found)} of {len(found)}")
    assert sum(found) >= PREDICTED * len(found)


@pytest.mark.parametrize("encoder", ["use-m", "e5-small"])
@pytest.mark.parametrize("data", ["XQuAD, all", "XQuAD, two", "XQuAD, one", "captions, all", "captions, one"])
def test_a_search_without_options_loses_nothing(client, done, tmp_path, predicted, data, encoder):
    source, kept = data.split(", ")
    folder = DATA / "multi30k" / kept
    if source == "XQuAD":
        options = ["--languages", LANGUAGES, "--multilingual-queries", "--split-by-article", "--keep", KEPT[kept]]
        done("dataset", "convert", "xquad", DATA / "xquad", tmp_path / "xquad", *options)
        folder = tmp_path / "xquad" / "test"
    drop(client, NAME)
    try:
        done("ingest", folder / "corpus.jsonl", "--index", NAME, "--encoder", encoder)
        told = json.loads(done("anchors", "calibrate", NAME, "--json"))
        asked = ("--setting", "dense", "--setting", "default")
        done("evaluate", "replay", folder, "--index", NAME, *asked, "--output", tmp_path / "out")
    finally:
        drop(client, NAME)
    runs = [tmp_path / "out" / name for name in ("dense", "default")]
    print(f"\n{data}, {encoder}: {told['mode']}, strength {told['strength']}, words {told['lexical_weight']}")
    require_nothing_lost(done, *runs)
    if told["mode"] != "dense":
        predicted += held(told["predicted"], folder, *runs)


def held(predictions, folder, *runs):
    """Whether each slice's change lies in the interval that was predicted for it."""
    languages = {one["_id"]: one["language"] for one in lines(folder / "corpus.jsonl")}
    answers = {}
    for row in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, _ = row.split("\t")
        answers.setdefault(query, set()).add(languages[document])
    before, after = ({row["query"]: row for row in lines(run / "per-query.jsonl")} for run in runs)
    found = []
    for one in predictions:
        changes = [
            after[query]["measures"]["nDCG@20"] - row["measures"]["nDCG@20"]
            for query, row in before.items()
            if one["language"] in (None, row["language"])
            and one["answer"] in (None, "own" if row["language"] in answers[query] else "other")
        ]
        if len(changes) >= QUESTIONS:
            found.append(one["lowest"] <= fmean(changes) <= one["highest"])
            print("predicted", one["answer"], one["language"], one["lowest"], fmean(changes), one["highest"], found[-1])
    return found


def lines(file):
    return map(json.loads, file.read_text(encoding="utf-8").splitlines())
