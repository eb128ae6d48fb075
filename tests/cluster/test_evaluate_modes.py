"""``langshift evaluate modes`` against a real OpenSearch: rows, tests against the first, slices, files, refusals."""

import json
from dataclasses import asdict

import pytest
from click.testing import CliRunner
from small_dataset import index_of

from langshift import output
from langshift.commands.evaluate import evaluate
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.plugin import metadata
from langshift.plugin.inventory import drop_all
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import measured_with
from langshift.retrieval.settings import read_setting

from .tls_proxy import proxy

TESTED_HEADS = ["measure", "setting", "mean", "difference", "95", "%", "interval", "p", "corrected", "p"]
PREFER = "dense --prefer-language .05"


def without(folder, language, made):
    """The dataset less the passages in a language: questions in it have no answer in their own."""
    made.mkdir()
    for name in ("corpus.jsonl", "languages.tsv", "qrels/test.tsv", "queries.jsonl"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = lines if name == "queries.jsonl" else [line for line in lines if f"-{language}" not in ids(name, line)]
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text("".join(kept), encoding="utf-8")
    return made


def ids(name, line):
    """The id of the document that a line is of."""
    if name == "corpus.jsonl":
        return json.loads(line)["_id"]
    return line.split("\t")[1 if name == "qrels/test.tsv" else 0]


@pytest.fixture(scope="module")
def fewer(folder, tmp_path_factory):
    return without(folder, "de", tmp_path_factory.mktemp("fewer") / "data")


@pytest.fixture(scope="module")
def small(client, fewer):
    name = index_of(client, fewer, 1.0)
    yield name
    drop_all(client, name)


def evaluated(command, *arguments):
    return CliRunner().invoke(evaluate, [command, *map(str, arguments)], catch_exceptions=False)


def of(settings):
    return [word for text in settings for word in ("--setting", text)]


@pytest.mark.usefixtures("cluster_env")
def test_rows_are_those_of_replays(folder, indices, tmp_path):
    settings, out = ("dense", "hybrid --fusion rrf", PREFER), tmp_path / "out"
    options = [word for name in indices for word in ("--index", name)]
    said = evaluated("modes", folder, *options, *of(settings), "--output", out, "--json")
    document = json.loads(said.stdout)
    written = ["dense", "hybrid --fusion rrf", "dense --prefer-language 0.05"]
    names = [f"{index}: {setting}" for index in indices for setting in written]
    assert [row["name"] for row in document["rows"]] == names
    assert set(document) == {"dataset", "test", "rows", "slices"}
    folders = [f"{index}-{setting.replace(' --', '-').replace(' ', '-')}" for index in indices for setting in written]
    assert said.stderr.endswith(f"Wrote a folder for each row to {out}: {', '.join(folders)}.\n")
    assert sorted(path.name for path in out.iterdir()) == sorted(folders)
    for row, place in zip(document["rows"], folders, strict=True):
        setting = read_setting(row["name"].split(": ")[1])
        assert row["setting"] == asdict(setting)
        words = row["name"].split(": ")[1].split()
        alone = ("replay", folder, "--index", row["index"], "--mode", *words, "--json", "--measures")
        replayed = json.loads(evaluated(*alone, "nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20 Top1").stdout)
        assert row["measures"] == replayed["measures"]
        assert row["queries"] == dict.fromkeys(replayed["measures"], 20)
        kept = json.loads((out / place / "result.json").read_text())
        assert (kept["setting"], kept["measures"]) == (row["setting"], row["measures"])
        assert row["top1"]["perfect"] == row["measures"]["Top1"]
        assert sum(row["top1"].values()) == pytest.approx(1)
        assert row["errors"] == 0
    first, *later = document["rows"]
    assert first["tests"] == {}
    for row in later:
        for name, test in row["tests"].items():
            assert test["difference"] == pytest.approx(row["measures"][name] - first["measures"][name])
            assert test["clusters"] == 5
        assert set(row["tests"]) == set(row["measures"])


@pytest.mark.usefixtures("cluster_env")
def test_every_mode_is_compared_with_dense_where_none_is_named(client, folder, indices, tmp_path):
    index = live(client, indices[1])
    kept = {"spread": 0.1, "strength": 1.0, "mode": "hybrid", "lexical_weight": 0.25}
    metadata.change(client, index.index, {metadata.ANCHORS: kept | {"measured_with": measured_with(index)}})
    try:
        said = evaluated("modes", folder, "--index", index.name, "--output", tmp_path / "out", "--json")
        shown = evaluated("replay", folder, "--index", index.name, "--mode", "auto").stdout
    finally:
        metadata.change(client, index.index, {metadata.ANCHORS: None})
    rows = {row["name"]: row for row in json.loads(said.stdout)["rows"]}
    assert [*rows] == [
        *("dense", "lexical", "hybrid", "balanced", "anchored", "auto"),
        *("dense --prefer-language 0.02", "dense --spread 0.02"),
    ]
    assert not rows["auto"]["warnings"]
    result = json.loads((tmp_path / "out" / "auto" / "result.json").read_text())
    assert (result["mode"], result["mode_from"], result["setting"]["mode"]) == ("hybrid", "calibration", "auto")
    assert result["resolved"] == result["setting"] | {"mode": "hybrid", "lexical_weight": 0.25}
    assert shown.startswith(f"{index.name}: 20 queries, auto (hybrid --lexical-weight 0.25), ")


@pytest.mark.usefixtures("cluster_env")
def test_compare_reads_the_folders_and_says_the_settings(folder, indices, tmp_path):
    options = ["--index", indices[1], *of(("dense", "lexical")), "--output", tmp_path]
    evaluated("modes", folder, *options)
    said = evaluated("compare", tmp_path / "dense", tmp_path / "lexical")
    assert said.stdout.splitlines()[:3] == [f"{folder}: 20 queries", "a (dense): dense", "b (lexical): lexical"]
    document = json.loads(evaluated("compare", tmp_path / "dense", tmp_path / "lexical", "--json").stdout)
    assert [run["setting"]["mode"] for run in document["runs"]] == ["dense", "lexical"]
    # Every question has an answer in its own language.
    assert document["slices"] == {}


def test_settings_take_turns_at_each_query(cluster_url, folder, indices, monkeypatch):
    name = indices[0]
    with proxy(cluster_url) as (address, server):
        monkeypatch.setenv("OPENSEARCH_URL", address)
        # What goes to both legs at once goes by another path.
        settings = ("dense", "hybrid --prefer-language .05", "lexical")
        evaluated("modes", folder, "--index", name, *of(settings), "--measures", "nDCG@20")
        seen = [path.split("?")[0].rsplit("/", 1) for path, _ in server.seen]
    kinds = [kind for index, kind in seen if index == f"/{name}-v0001" and kind in ("_search", "_msearch")]
    turn = ["_search", "_msearch", "_search", "_msearch", "_search", "_search", "_search", "_search", "_msearch"]
    assert kinds[-60:] == (turn * 7)[:60]


@pytest.mark.usefixtures("cluster_env")
def test_what_is_printed(folder, indices, monkeypatch):
    options = [folder, "--index", indices[1], *of(("dense", PREFER))]
    monkeypatch.setattr(output.out, "width", 160)
    wide = evaluated("modes", *options).stdout.splitlines()
    assert wide[0] == f"{folder}: 20 queries in 2 rows"
    heads = [
        "setting",
        "nDCG@20",
        "TLR@20",
        "SLR@20",
        "LPR",
        "Lang_nDCG@20",
        "perfect",
        "lang_fail",
        "sem_fail",
        "both_fail",
    ]
    times = [*("wall", "p50", "wall", "p95", "took", "p50", "took", "p95")]
    assert wide[1].split() == [*heads, *times]
    assert wide[2].startswith("dense  ")
    assert wide[3].startswith("dense --prefer-language 0.05  ")
    assert wide[4] == (
        "wall: milliseconds until the client had the response; took: as reported by the server; one query at a time."
    )
    assert wide[5].startswith(
        "* differs significantly from the first row, dense. Significant: p below 0.05 in a paired randomisation test "
        "that flips the signs of whole clusters (5 by group; all flips), corrected for multiple tests after "
        "Benjamini and Yekutieli "
    )
    # Every question has an answer in its own language: there are no slices, but every difference all the same.
    assert wide[7] == "All queries: 20 queries"
    assert wide[8].split() == TESTED_HEADS
    assert [line.split()[0] for line in wide[9:19:2]] == ["nDCG@20", "TLR@20", "SLR@20", "Lang_nDCG@20", "Top1"]
    assert [line.split()[-5:] for line in wide[9:19:2]] == [[line.split()[-5], *"----"] for line in wide[9:19:2]]
    assert [line.split()[:2] for line in wide[10:19:2]] == [["dense", "--prefer-language"]] * 5
    assert wide[19:] == [
        "The interval and p are for that one comparison alone: judge a loss by these, because a correction could hide "
        "it. The corrected p takes account of all 6 tests, all measures times rows after the first: judge a gain by it."
    ]
    monkeypatch.setattr(output.out, "width", 80)
    narrow = evaluated("modes", *options).stdout.splitlines()
    assert narrow[1].split() == heads[:6]
    assert narrow[4].split() == ["setting", *heads[6:]]
    assert narrow[7].split() == ["setting", *times]


@pytest.mark.usefixtures("cluster_env")
def test_questions_without_an_answer_in_their_language_stand_apart(fewer, small, tmp_path):
    options = [fewer, "--index", small, *of(("dense", PREFER, "dense --spread .05")), "--output", tmp_path]
    document = json.loads(evaluated("modes", *options, "--json").stdout)
    assert {part: found["queries"] for part, found in document["slices"].items()} == {"own": 10, "none": 10}
    dense, prefer, spread = document["rows"]
    english = [query.id for query in load_dataset(fewer).queries if query.language == "en"]
    rows = {
        name: {row["query"]: row["measures"] for row in map(json.loads, (tmp_path / name).read_text().splitlines())}
        for name in ("dense/per-query.jsonl", "dense-spread-0.05/per-query.jsonl")
    }
    before, after = (sum(found[query]["nDCG@20"] for query in english) / 10 for found in rows.values())
    own = document["slices"]["own"]
    assert [row["name"] for row in own["rows"]] == ["dense", "dense --prefer-language 0.05", "dense --spread 0.05"]
    directed = ["nDCG@20", "TLR@20", "SLR@20", "Lang_nDCG@20", "Top1"]
    assert list(own["rows"][0]["measures"]) == ["nDCG@20", "TLR@20", "SLR@20", "LPR", "Lang_nDCG@20", "Top1"]
    assert own["rows"][0]["measures"]["nDCG@20"] == pytest.approx(before)
    assert own["rows"][0]["tests"] == {}
    assert list(own["rows"][2]["tests"]) == directed
    test = own["rows"][2]["tests"]["nDCG@20"]
    assert test["difference"] == pytest.approx(after - before)
    low, high = test["interval"]
    assert low < test["difference"] < high
    # No German passage is there to be preferred: all scores are as they were.
    none = document["slices"]["none"]["rows"]
    assert none[1]["tests"]["nDCG@20"]["difference"] == 0
    # None of these has anything to be found in its own language.
    assert none[0]["measures"]["SLR@20"] is None
    assert list(none[1]["tests"]) == ["nDCG@20", "TLR@20", "Lang_nDCG@20", "Top1"]
    assert prefer["measures"]["SLR@20"] == spread["measures"]["SLR@20"] == dense["measures"]["SLR@20"] == 1
    compared = json.loads(evaluated("compare", tmp_path / "dense", tmp_path / "dense-spread-0.05", "--json").stdout)
    part = compared["slices"]["own"]
    assert part["queries"] == 10
    assert part["sections"]["all"]["nDCG@20"]["means"] == {"a": pytest.approx(before), "b": pytest.approx(after)}
    printed = evaluated("compare", tmp_path / "dense", tmp_path / "dense-spread-0.05").stdout.splitlines()
    at = printed.index("By answer in the searcher's language: a, and the change to b (* significant)")
    assert [line.split()[0] for line in printed[at + 1 : at + 4]] == ["answer", "yes", "no"]


@pytest.mark.usefixtures("cluster_env")
def test_every_measure_is_tested_in_each_slice(fewer, small, monkeypatch):
    monkeypatch.setattr(output.out, "width", 160)
    options = [fewer, "--index", small, *of(("dense", PREFER)), "--measures", "nDCG@20 SLR@20 LPR"]
    told = evaluated("modes", *options).stdout.splitlines()
    own, none = (
        told.index("Answer in the searcher's language: 10 queries"),
        told.index("No answer in the searcher's language: 10 queries"),
    )
    assert told[own + 1].split() == told[none + 1].split() == TESTED_HEADS
    measures = ["nDCG@20", "dense", "SLR@20", "dense", "LPR", "dense"]
    assert [line.split()[0] for line in told[own + 2 : own + 8]] == measures
    # The setting, a mean, no difference, the interval of three words, and two chances.
    assert told[none + 2].split()[0] == "nDCG@20"
    assert told[none + 3].split()[4:] == ["0", "0", "to", "0", "1.0000", "1.0000"]
    assert told[none + 4].split() == ["SLR@20", "every", "setting", "undefined", "-", "-", "-", "-"]
    assert told[none + 5].split() == ["LPR", "every", "setting", "undefined", "-", "-", "-", "-"]
    assert told[none + 6 :] == [
        "The interval and p are for that one comparison alone: judge a loss by these, because a correction could hide "
        "it. The corrected p takes account of all 3 tests, measures times slices times rows after the first: judge a "
        "gain by it."
    ]


def test_queries_that_fail_are_told(cluster_url, folder, indices, monkeypatch):
    busy = json.dumps({"error": {"reason": "rejected execution", "type": "x"}, "status": 429}).encode()
    with proxy(cluster_url) as (address, server):
        monkeypatch.setenv("OPENSEARCH_URL", address)
        server.rewrite = lambda path, status, content: (429, busy) if path.endswith("/_msearch") else (status, content)
        with pytest.raises(LangshiftError) as caught:
            evaluated(
                *("modes", folder, "--index", indices[0], "--measures", "nDCG@20"),
                *of(("dense", "hybrid --prefer-language .05")),
            )
    first = load_dataset(folder).queries[0].id
    assert str(caught.value) == (
        "hybrid --prefer-language 0.05: 20 of 20 queries failed and count as empty answers; the first, "
        f"{first}: The cluster answered 429: rejected execution."
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--setting", "fast"],
            "The setting 'fast' cannot be used: Invalid value for '--mode': 'fast' is not one of 'auto', 'dense', "
            "'lexical', 'hybrid', 'balanced', 'anchored'.",
        ),
        (
            ["--setting", "dense --fusion rrf"],
            "The setting 'dense --fusion rrf' cannot be used: --fusion needs --mode hybrid.",
        ),
        (
            ["--setting", "dense", "--setting", "dense --prefer-language 0"],
            "--setting 'dense --prefer-language 0' means 'dense', which is already given: settings must be unique.",
        ),
        (["--index", "news"], "--index names an index twice: the indices must be unique."),
        (["--measures", "LPR(x=1)"], "'LPR(x=1)' sets 'x', which is not an option of LPR: it has no options."),
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_cluster_is(folder, monkeypatch, given, told):
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:1")
    with pytest.raises(UsageError) as caught:
        evaluated("modes", folder, "--index", "news", *given)
    assert str(caught.value) == told
