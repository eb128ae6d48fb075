"""What the console finds in a results folder, and what it refuses to look at."""

import os
import shutil

import orjson
import pytest
from starlette.exceptions import HTTPException

from langshift.web.evaluations.folder import DEPTH, path_inside, stored_report
from langshift.web.evaluations.results import describe_run, results

RESULT = {
    "complete": True,
    "index": "news",
    "version": "news-v0001",
    "mode": "hybrid",
    "setting": {"mode": "hybrid", "prefer_language": 0.02, "fusion": "min-max", "lexical_weight": 0.5},
    "measures": {"nDCG@20": 0.5, "R@20": 0.25, "TLR@20": None, "own@3": 0.75, "LPR": 1, "MostShown@20": 0.4},
    "most_shown": {"MostShown@20": {"language": "zh", "shown": 0.4, "fair": 0.1, "beside": "", "hits": ""}},
    "queries": {"asked": 1056},
    "errors": 2,
    "dataset": {"folder": "/somewhere/xquad8", "documents": 528, "queries": 1056, "hash": "0"},
    "fingerprint": {"alpha": 1.0},
}


def write_run(folder, document, when=1_000_000_000):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "result.json"
    path.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
    (folder / "run.trec").write_text("")
    os.utime(path, (when, when))
    return folder


def names(root):
    return [run.name for run in results(root).runs]


def test_a_run_is_told_in_the_words_of_its_result(tmp_path):
    write_run(tmp_path / "a", RESULT)

    (run,) = results(tmp_path).runs

    assert (run.name, run.index, run.version, run.alpha) == ("a", "news", "news-v0001", 1.0)
    assert run.how == "hybrid --prefer-language 0.02 --lexical-weight 0.5"
    assert run.measures == {"nDCG@20": 0.5, "own@3": 0.75, "LPR": 1.0, "MostShown@20": 0.4}
    assert run.most_shown == {"MostShown@20": "zh"}
    assert (run.dataset, run.queries, run.errors, run.complete, run.comparable) == ("xquad8", 1056, 2, True, True)
    assert run.when.timestamp() == 1_000_000_000


def test_an_evaluation_without_a_cluster_is_told_by_mode_and_method(tmp_path):
    document = {name: value for name, value in RESULT.items() if name != "setting"}
    write_run(tmp_path / "a", document | {"index": None, "version": None, "mode": "exact", "method": "centering"})

    (run,) = results(tmp_path).runs

    assert (run.index, run.how) == ("", "exact centering")


def test_the_newest_come_first_and_what_is_too_deep_is_left_out(tmp_path):
    write_run(tmp_path / "old", RESULT, 1_000)
    write_run(tmp_path / "/".join("abcd"[:DEPTH]), RESULT, 3_000)
    write_run(tmp_path / "x" / "new", RESULT, 2_000)
    write_run(tmp_path / "/".join("vwxyz"), RESULT)
    write_run(tmp_path / ".hidden", RESULT)

    assert names(tmp_path) == ["a/b/c/d", "x/new", "old"]


def test_without_a_folder_there_is_nothing(tmp_path):
    found = results(tmp_path / "missing")

    assert (found.runs, found.reports, found.left_out) == ([], [], 0)


def test_only_so_many_are_shown_and_the_rest_is_counted(tmp_path):
    for number in range(203):
        write_run(tmp_path / f"{number:03}", RESULT, 1_000 + number)

    found = results(tmp_path)

    assert [found.runs[0].name, found.runs[-1].name, len(found.runs), found.left_out] == ["202", "003", 200, 3]


def test_links_that_lead_out_are_left_out(tmp_path):
    root, outside = tmp_path / "results", write_run(tmp_path / "outside", RESULT)
    (outside / "report.html").write_text("secret")
    write_run(root / "a", RESULT)
    (root / "folder").symlink_to(outside)
    (root / "b").mkdir()
    (root / "b" / "result.json").symlink_to(outside / "result.json")
    (root / "b" / "report.html").symlink_to(outside / "report.html")
    (root / "circle").symlink_to(root / "circle")
    (root / "same").symlink_to(root / "a")

    found = results(root)

    assert sorted(run.name for run in found.runs) == ["a", "same"]
    assert found.reports == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Input data was truncated"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b"\xff\xfe", "JSON is malformed: invalid character"),
        (b'{"x": ' + b"[" * 100_000, "maximum recursion depth exceeded while deserializing an object"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"{}", "Object missing required field `complete`"),
        (
            orjson.dumps(RESULT | {"measures": {"LPR": "much"}}),
            "Expected `float | null`, got `str` - at `$.measures[...]`",
        ),
        (orjson.dumps(RESULT | {"setting": {"mode": "magic"}}), "Invalid enum value 'magic' - at `$.setting.mode`"),
        (orjson.dumps(RESULT | {"dataset": {"folder": "a\0b"}}), "Expected `str` matching regex "),
    ],
)
def test_a_damaged_result_is_listed_with_a_sentence(tmp_path, content, reason):
    write_run(tmp_path / "a", content)
    write_run(tmp_path / "b", RESULT, 500)

    damaged, good = results(tmp_path).runs

    assert damaged.problem.startswith(f"result.json is not in langshift's format ({reason}")
    assert damaged.problem.endswith("): run the evaluation again.")
    assert (good.name, good.problem) == ("b", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_no_run_and_nobody_waits_for_it(tmp_path):
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "result.json")
    assert results(tmp_path).runs == []
    assert describe_run(tmp_path / "pipe", "pipe").problem == "It contains no result.json, so it is not a run."


def test_a_name_that_is_no_text_is_left_out(tmp_path):
    write_run(tmp_path / "a", RESULT)
    for name in (b"\xff\xfe", b"back\\slash"):
        shutil.copytree(tmp_path / "a", tmp_path / os.fsdecode(name))

    assert names(tmp_path) == ["a"]


def test_a_replay_that_was_cut_off_says_what_it_is_of(tmp_path):
    begun = {"index": "news-v0001", "setting": RESULT["setting"], "fingerprint": {"alpha": 0.5}, "queries": "abc"}
    folder = write_run(tmp_path / "a", {"complete": False, "command": "langshift evaluate replay"})
    (folder / "run.trec").unlink()
    (folder / "unfinished.json").write_bytes(orjson.dumps(begun))

    (run,) = results(tmp_path).runs

    assert (run.index, run.how, run.alpha) == ("news-v0001", "hybrid --prefer-language 0.02 --lexical-weight 0.5", 0.5)
    assert (run.complete, run.comparable, run.problem) == (False, False, "")


@pytest.mark.parametrize(
    "name",
    ["..", "../outside", "a/../../outside", "/etc", "a//b", "a/", "./a", "", ".", "a\0", "a\\..\\b", "//outside"],
)
def test_a_name_that_could_lead_out_is_refused(tmp_path, name):
    write_run(tmp_path / "results" / "a" / "b", RESULT)
    write_run(tmp_path / "outside", RESULT)

    with pytest.raises(HTTPException) as refused:
        path_inside(tmp_path / "results", name)

    assert refused.value.status_code == 403
    assert refused.value.detail == f"{name!r} is not the name of a run: choose one from the table."


def test_a_link_that_leads_out_is_refused_and_what_is_not_there_is_not_found(tmp_path):
    root = tmp_path / "results"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    (root / "circle").symlink_to(root / "circle")

    for name, status in (("link", 403), ("circle", 404), ("missing", 404), ("x" * 300, 404)):
        with pytest.raises(HTTPException) as refused:
            path_inside(root, name)
        assert refused.value.status_code == status


def test_only_reports_are_given(tmp_path):
    folder = write_run(tmp_path / "a", RESULT)
    (folder / "report.html").write_bytes(b"<p>")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "report.html").symlink_to(folder / "result.json")
    (tmp_path / "c" / "report.html").mkdir(parents=True)

    assert stored_report(tmp_path, "a/report.html") == b"<p>"
    for name, status in (("a/result.json", 403), ("a", 403), ("b/report.html", 403), ("c/report.html", 404)):
        with pytest.raises(HTTPException) as refused:
            stored_report(tmp_path, name)
        assert refused.value.status_code == status
