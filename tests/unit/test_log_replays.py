"""Replays of a log without judgements, compared from their folders alone."""

import json

import pytest
from data_folder import write_run

from langshift.evaluate.compare.findings import compare_places, findings
from langshift.files import json_lines


def replayed(folder, rankings, *, words=True, errors=()):
    """A run of three queries, the last of them in Thai, as a replay of a log leaves it."""
    write_run(folder / "run.trec", rankings)
    queries = [("q1", "tides", "en"), ("q2", "floods", "en"), ("q3", "น้ำ", "th")]
    rows = [{"_id": name, **({"text": text} if words else {}), "language": tag} for name, text, tag in queries]
    (folder / "logged-queries.jsonl").write_bytes(json_lines(rows))
    found = dict.fromkeys(name for names in rankings.values() for name in names[:20])
    documents = [{"_id": name, "language": name.split("-")[0], "text": f"about {name}"} for name in found]
    (folder / "found-documents.jsonl").write_bytes(json_lines(documents))
    per_query = [{"query": name, "error": "failed" if name in errors else None} for name, *_ in queries]
    (folder / "per-query.jsonl").write_bytes(json_lines(per_query))
    return folder


MANY = [f"en-{n}" for n in range(30)]


def compared(*places):
    return findings(compare_places(places, None)).to_dict()


def test_overlap_languages_and_what_changes_most(tmp_path):
    before = replayed(tmp_path / "a", {"q1": MANY, "q2": MANY, "q3": ["en-1", "th-1"]})
    after = replayed(tmp_path / "b", {"q1": MANY, "q2": [f"de-{n}" for n in range(30)], "q3": ["th-1", "en-1"]})
    found = compared(before, after)
    (change,) = found["changes"]
    assert found["warnings"] == []
    assert change["by_language"]["en"]["Jaccard@20"] == pytest.approx(0.5)
    assert change["by_language"]["en"]["Share@20"] == {"before": {"en": 1.0}, "after": {"de": 0.5, "en": 0.5}}
    assert change["by_language"]["th"]["Jaccard@20"] == 1.0
    assert [(one["query"], one["text"]) for one in change["most_changed"]] == [("q2", "floods"), ("q3", "น้ำ")]
    assert change["most_changed"][0]["RBO"] == 0.0
    assert change["most_changed"][0]["hits"]["after"][0] == {"id": "de-0", "language": "de", "text": "about de-0"}
    assert found["verdicts"][0]["kind"] == "no judgements"


def test_queries_that_failed_in_either_run_are_left_out(tmp_path):
    before = replayed(tmp_path / "a", {"q1": MANY, "q2": MANY, "q3": ["th-1"]}, words=False)
    after = replayed(tmp_path / "b", {"q1": MANY, "q3": ["th-2"]}, words=False, errors=["q2"])
    (change,) = compared(before, after)["changes"]
    assert (change["queries"], change["left_out"]) == (2, 1)
    assert [(one["query"], one["text"]) for one in change["most_changed"]] == [("q3", "")]


def test_the_document_of_a_comparison_is_json(tmp_path):
    runs = [replayed(tmp_path / name, {"q1": MANY, "q2": MANY, "q3": ["th-1"]}) for name in "ab"]
    (change,) = json.loads(json.dumps(compared(*runs)))["changes"]
    assert change["most_changed"] == []
