"""From a log without judgements, in whatever form, to a replay on two indices, a comparison and a page to share."""

import csv
import json
import stat

import pytest
from command_line import langshift

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.datasets.logs import FORMS

HOSTILE = "<script>alert(1)</script> \x1b[31mFlut\x1b[0m"
ASKED = ["Warum steigt das Meer?", "how is bread baked", HOSTILE]
START = 1772353800
SLOW = (
    "[2026-03-01T08:30:0{},000][WARN ][index.search.slowlog.query] [node-1] [news][0] took[2ms], took_millis[2], "
    "total_hits[1 hits], stats[], search_type[QUERY_THEN_FETCH], total_shards[1], source[{}], id[], "
)


def jsonl(path):
    path.write_text("".join(json.dumps({"q": text, "at": START + n}) + "\n" for n, text in enumerate(ASKED)))


def table(path):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("at", "q"), *((START + n, text) for n, text in enumerate(ASKED))])


def plain(path):
    path.write_text("".join(f"{text}\n" for text in ASKED))


def slow_log(path):
    bodies = (json.dumps({"query": {"match": {"text": {"query": text}}}}) for text in ASKED)
    path.write_text("".join(SLOW.format(n, body) + "\n" for n, body in enumerate(bodies)))


def ubi_queries(path):
    hits = (
        {"_source": {"query_id": f"u{n}", "user_query": text, "client_id": "anna", "timestamp": (START + n) * 1000}}
        for n, text in enumerate(ASKED)
    )
    path.write_text("".join(json.dumps(hit) + "\n" for hit in hits))


# Name -> file, what writes it, and the options that its fields need.
LOGS = {
    "JSON Lines": ("log.jsonl", jsonl, ["--query-field", "q", "--time-field", "at"]),
    "CSV": ("log.csv", table, ["--query-field", "q", "--time-field", "at"]),
    "plain text": ("log.txt", plain, []),
    "slow log": ("slow.log", slow_log, []),
    "UBI": ("ubi_queries.ndjson", ubi_queries, ["--redact", "client_id"]),
}


def done(*arguments, url):
    finished = langshift(*arguments, url=url)
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.parametrize("form", LOGS)
def test_a_log_is_replayed_compared_and_reported(cluster_url, indices, tmp_path, form):
    name, write, options = LOGS[form]
    write(tmp_path / name)
    plain_index, shifted = indices
    runs = tmp_path / "runs"
    replay = ["evaluate", "replay", "--queries", tmp_path / name, "--index", plain_index, "--index", shifted]
    timed = [] if form == "plain text" else ["--speed", 100]
    done(*replay, *options, *timed, "--output", runs, url=cluster_url)
    folders = [runs / plain_index, runs / shifted]
    kept = [json.loads(line) for line in (folders[0] / "logged-queries.jsonl").read_text().splitlines()]
    assert [one["text"] for one in kept] == ASKED
    assert "anna" not in "".join(path.read_text() for path in runs.rglob("*") if path.is_file())
    modes = {stat.S_IMODE(path.stat().st_mode) for path in runs.rglob("*")}
    assert modes == {0o700, 0o600}
    result = json.loads((folders[0] / "result.json").read_text())
    assert result["load"]["loop"] == ("closed" if form == "plain text" else "open")

    compared = json.loads(done("evaluate", "compare", *folders, "--json", url=cluster_url).stdout)
    (change,) = compared["changes"]
    drift = json.loads((runs / "drift.json").read_text())["drift"][0]
    for figure in ("queries", "RBO(p=0.9)", "Jaccard@20", "Share@20"):
        assert (
            change[figure] == pytest.approx(drift[figure]) if figure != "Share@20" else change[figure] == drift[figure]
        )
    assert compared["verdicts"][0]["kind"] == "no judgements"
    found = {hit["id"] for one in change["most_changed"] for side in one["hits"].values() for hit in side}
    assert all(hit["text"] for one in change["most_changed"] for side in one["hits"].values() for hit in side)
    assert found

    said = done("evaluate", "compare", *folders, "--report", tmp_path / "page", url=cluster_url)
    assert "\x1b[31m" not in said.stdout
    assert "What changes most" in said.stdout
    assert "No judgements to tell by" in said.stdout
    page = (tmp_path / "page" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "How alike the answers are" in page
    assert "Milliseconds per query" in page


def test_redacted_words_are_sent_and_not_written(cluster_url, indices, tmp_path):
    plain(tmp_path / "log.txt")
    runs = tmp_path / "runs"
    index = ["--index", indices[0], "--index", indices[1]]
    replay = ["evaluate", "replay", "--queries", tmp_path / "log.txt", "--redact", "text", *index, "--output", runs]
    done(*replay, url=cluster_url)
    for path in runs.rglob("*"):
        assert path.is_dir() or not any(text in path.read_text() for text in ASKED), path
    said = done("evaluate", "compare", runs / indices[0], runs / indices[1], url=cluster_url)
    assert "(words not written)" in said.stdout


def test_runs_of_different_logs_and_measures_are_refused(cluster_url, indices, tmp_path):
    places = []
    for number in (1, 2):
        log, run = tmp_path / f"{number}.txt", tmp_path / f"run-{number}"
        log.write_text("tides\n" * number)
        done("evaluate", "replay", "--queries", log, "--index", indices[0], "--output", run, url=cluster_url)
        places.append(run)
    refused = langshift("evaluate", "compare", *places, url=cluster_url)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"Error: {places[0]} and {places[1]} are not runs of the same log, with the same queries: replay one log on "
        "both, or give the judgements with --dataset.\n"
    )
    refused = langshift("evaluate", "compare", places[0], "--measures", "nDCG@20", url=cluster_url)
    assert refused.stderr == (
        f"Error: {places[0]} is a replay without judgements, so nothing can be measured: give --dataset.\n"
    )


def test_a_log_calibrates_and_is_audited_with(cluster_url, indices, tmp_path):
    table(tmp_path / "log.csv")
    audit = ["index", "audit", indices[1], "--sample", 100, "--json"]
    found = json.loads(done(*audit, "--queries", tmp_path / "log.csv", "--query-field", "q", url=cluster_url).stdout)
    assert found["queries"]["file"] == str(tmp_path / "log.csv")
    empty = tmp_path / "none.txt"
    empty.write_text("\n")
    refused = langshift("anchors", "calibrate", indices[1], "--queries", empty, url=cluster_url)
    assert (refused.returncode, refused.stderr) == (2, f"Error: {empty} is empty: give a log, which is {FORMS}.\n")


def test_judgements_go_to_the_workbench_and_back_and_figures_to_mteb(cluster_url, folder, indices, tmp_path):
    run, workbench, back = tmp_path / "run", tmp_path / "workbench", tmp_path / "back"
    done("evaluate", "replay", folder, "--index", indices[1], "--output", run, url=cluster_url)
    done("dataset", "convert", "beir", folder, workbench, "--to", "srw", url=cluster_url)
    (workbench / "judgments.json").unlink()
    (workbench / "corpus.jsonl").write_bytes((folder / "corpus.jsonl").read_bytes())
    done("dataset", "convert", "srw", workbench, back, url=cluster_url)
    before, after = load_dataset(folder), load_dataset(back)
    assert after.qrels == before.qrels
    assert {one.id: one.text for one in after.queries} == {one.id: one.text for one in before.queries}
    again = json.loads(
        done(
            "evaluate", "replay", back, "--index", indices[1], "--measures", "nDCG@10", "--json", url=cluster_url
        ).stdout
    )
    compare = ["evaluate", "compare", run, "--measures", "nDCG@10", "--mteb", tmp_path / "mteb.json", "--json"]
    found = json.loads(done(*compare, url=cluster_url).stdout)["sections"]["all"]["nDCG@10"]
    assert again["measures"]["nDCG@10"] == pytest.approx(found["means"]["a"])
    subsets = json.loads((tmp_path / "mteb.json").read_text())["scores"]["test"]
    assert [one["languages"] for one in subsets] == [["deu-Latn"], ["eng-Latn"]]
    # As many questions in either language.
    assert sum(one["main_score"] for one in subsets) / 2 == pytest.approx(found["means"]["a"])
