"""``evaluate replay`` in several settings against a real OpenSearch, compared by ``evaluate compare --brief``."""

import json

import pytest
from click.testing import CliRunner
from msgspec import to_builtins
from small_dataset import index_of
from tls_proxy import proxy

from langshift.commands.evaluate import evaluate
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.runs import read_run
from langshift.plugin import metadata
from langshift.plugin.inventory import drop_all
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import measured_with
from langshift.retrieval.request import read_setting

TESTED_HEADS = ["measure", "run", "mean", "difference", "95", "%", "interval", "p", "corrected", "p"]
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
def test_as_many_hits_of_each_query_as_the_depth_says(fewer, small, tmp_path):
    options = ["--depth", 3, "--measures", "R@4", "--output", tmp_path / "run"]
    said = evaluated("replay", fewer, "--index", small, "--setting", "hybrid", *options)
    assert said.exit_code == 0, said.output
    assert "Warning: R@4 looks at more than the 3 hits of each query that were taken" in said.stderr
    assert json.loads((tmp_path / "run" / "result.json").read_text())["top_k"] == 3
    assert {len(hits) for hits in read_run(tmp_path / "run" / "run.trec").values()} == {3}
    (row,) = json.loads(evaluated("board", tmp_path, "--json").stdout)["retrievers"]
    assert (row["name"], row["setting"]) == ("run", "hybrid")


def compared(output, names, *options):
    return evaluated("compare", *(output / name for name in names), *options)


def replayed(data, index, settings, output, *options):
    said = evaluated("replay", data, "--index", index, *of(settings), "--output", output, *options)
    assert said.exit_code == 0
    return said


MEASURES = "nDCG@20 TLR@20 SLR@20 LPR Lang_nDCG@20 Top1"


@pytest.mark.usefixtures("cluster_env")
def test_each_setting_of_each_index_has_the_folder_of_a_replay(folder, indices, tmp_path):
    settings, out = ("dense", "hybrid --fusion rrf", PREFER), tmp_path / "out"
    options = [word for name in indices for word in ("--index", name)]
    said = evaluated("replay", folder, *options, *of(settings), "--output", out, "--json", "--measures", MEASURES)
    document = json.loads(said.stdout)
    written = ["default", "dense", "hybrid --fusion rrf", "dense --prefer-language 0.05"]
    asked = [(index, setting) for index in indices for setting in written]
    names = [f"{index}-{setting.replace(' --', '-').replace(' ', '-')}" for index, setting in asked]
    assert [*document["runs"]] == names
    assert (document["drift"], document["verdicts"]) == ([], [])
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    for name, (index, words) in zip(names, asked, strict=True):
        run = document["runs"][name]
        assert (run["index"], run["setting"]) == (index, to_builtins(read_setting(words)))
        alone = ("replay", folder, "--index", index, "--setting", words, "--json", "--measures", MEASURES)
        assert run["measures"] == json.loads(evaluated(*alone).stdout)["measures"]
        kept = json.loads((out / name / "result.json").read_text())
        assert (kept["setting"], kept["measures"]) == (run["setting"], run["measures"])
        assert run["errors"] == 0
    told = json.loads(compared(out, names, "--json", "--measures", MEASURES).stdout)
    figures = {name: one for section in reversed(told["sections"].values()) for name, one in section.items()}
    for letter, name in zip("abcdefgh", names, strict=True):
        assert {measure: figures[measure]["means"][letter] for measure in MEASURES.split()} == pytest.approx(
            document["runs"][name]["measures"]
        )
    first = {measure: [test for test in one["tests"] if test["before"] == "a"] for measure, one in figures.items()}
    for measure in MEASURES.split():
        assert [test["after"] for test in first[measure]] == [*"bcdefgh"]
        assert {test["clusters"] for test in first[measure]} == {5}
    outcomes = figures["Top1"]["tables"]["a"]["cells"]["all"]
    assert outcomes["perfect"]["mean"] == figures["Top1"]["means"]["a"]
    assert sum(cell["mean"] for cell in outcomes.values()) == pytest.approx(1)
    assert [set(run["latency_ms"]) for run in told["runs"]] == [{"took", "wall", "wall_corrected"}] * 8


@pytest.mark.usefixtures("cluster_env")
def test_what_a_replay_says_of_its_folders(folder, indices, tmp_path):
    said = replayed(folder, indices[1], ("dense", PREFER), tmp_path)
    assert said.stdout.startswith(f"{indices[1]}: 20 queries, default (dense), alpha 1")
    assert f"{indices[1]}: 20 queries, dense, alpha 1" in said.stdout
    assert f"{indices[1]}: 20 queries, dense --prefer-language 0.05, alpha 1" in said.stdout
    names = ["default", "dense", "dense-prefer-language-0.05"]
    assert f"Wrote a folder for each run to {tmp_path}: {', '.join(names)}.\n" in said.stderr
    assert said.stderr.endswith(f" evaluate compare --brief {' '.join(str(tmp_path / name) for name in names)}\n")


@pytest.mark.usefixtures("cluster_env")
def test_auto_is_what_the_index_was_calibrated_to(client, folder, indices, tmp_path):
    index = live(client, indices[1])
    kept = {"spread": 0.1, "strength": 1.0, "mode": "hybrid", "lexical_weight": 0.25, "rerank": {}}
    metadata.change(client, index.index, {metadata.ANCHORS: kept | {"measured_with": measured_with(index)}})
    try:
        replayed(folder, index.name, ("dense", "auto"), tmp_path)
        shown = evaluated("replay", folder, "--index", index.name).stdout
    finally:
        metadata.change(client, index.index, {metadata.ANCHORS: None})
    result = json.loads((tmp_path / "default" / "result.json").read_text())
    assert (result["mode"], result["mode_from"], result["setting"]["mode"]) == ("hybrid", "calibration", "auto")
    assert result["resolved"] == result["setting"] | {"mode": "hybrid", "lexical_weight": 0.25}
    assert shown.startswith(f"{index.name}: 20 queries, default (hybrid --lexical-weight 0.25), ")


@pytest.mark.usefixtures("cluster_env")
def test_compare_reads_the_folders_and_says_the_settings(folder, indices, tmp_path):
    replayed(folder, indices[1], ("dense", "lexical"), tmp_path)
    said = compared(tmp_path, ("dense", "lexical"))
    assert said.stdout.splitlines()[:3] == [f"{folder}: 20 queries", "a (dense): dense", "b (lexical): lexical"]
    document = json.loads(compared(tmp_path, ("dense", "lexical"), "--json").stdout)
    assert [run["setting"]["mode"] for run in document["runs"]] == ["dense", "lexical"]
    # Every question has an answer in its own language.
    assert document["slices"] == {}


def test_settings_take_turns_at_each_query(cluster_url, folder, indices, monkeypatch):
    name = indices[0]
    with proxy(cluster_url) as (address, server):
        monkeypatch.setenv("OPENSEARCH_URL", address)
        # What goes to both legs at once goes by another path.
        settings = ("dense", "hybrid --prefer-language .05", "lexical")
        evaluated("replay", folder, "--index", name, *of(settings), "--measures", "nDCG@20", "--warm-up", "0")
        seen = [path.split("?")[0].rsplit("/", 1) for path, _ in server.seen]
    kinds = [kind for index, kind in seen if index == f"/{name}-v0001" and kind in ("_search", "_msearch")]
    turn = ["_search", "_search", "_msearch", "_search"]
    assert kinds[-80:] == [turn[(at + query) % 4] for query in range(20) for at in range(4)]


@pytest.mark.usefixtures("cluster_env")
def test_what_is_printed(folder, indices, tmp_path, monkeypatch):
    replayed(folder, indices[1], ("dense", PREFER), tmp_path)
    runs = [tmp_path / "dense", tmp_path / "dense-prefer-language-0.05", "--brief", "--measures", MEASURES]
    monkeypatch.setenv("COLUMNS", "180")
    wide = evaluated("compare", *runs).stdout.splitlines()
    later = "b (dense-prefer-language-0.05)"
    assert wide[:3] == [f"{folder}: 20 queries", "a (dense): dense", f"{later}: dense --prefer-language 0.05"]
    figures = ["run", "nDCG@20", "LPR", "Lang_nDCG@20", "SLR@20", "TLR@20"]
    outcomes = ["perfect", "lang_fail", "sem_fail", "both_fail"]
    times = [*("wall", "p50", "wall", "p95", "took", "p50", "took", "p95")]
    assert wide[3].split() == [*figures, *outcomes, *times]
    assert wide[4].startswith("a (dense)  ")
    assert wide[5].startswith(f"{later}  ")
    assert wide[6] == "wall: milliseconds until the client had the response; took: as reported by the server."
    assert wide[7] == (
        "* differs significantly from the first run, a (dense). Significant: p below 0.05 in a paired randomisation "
        "test that flips the signs of whole clusters (5 by group; all flips), corrected for multiple tests after Holm."
    )
    # Every question has an answer in its own language: there are no slices, but every difference all the same.
    assert wide[9] == "All queries: 20 queries"
    assert wide[10].split() == TESTED_HEADS
    assert [line.split()[0] for line in wide[11:23:2]] == [*figures[1:4], "Top1", *figures[4:]]
    assert [line.split()[-4:] for line in wide[11:23:2]] == [[*"----"]] * 6
    assert [line.split()[:2] for line in wide[12:23:2]] == [later.split()] * 6
    assert wide[23:] == [
        "The interval and p are for that one comparison alone: judge a loss by these, because a correction could hide "
        "it. The corrected p takes account of all pairs of runs, measures and parts of the queries: judge a gain by it."
    ]
    monkeypatch.setenv("COLUMNS", "100")
    narrow = evaluated("compare", *runs).stdout.splitlines()
    assert narrow[3].split() == figures
    assert narrow[6].split() == ["run", *outcomes]
    assert narrow[9].split() == ["run", *times]


@pytest.mark.usefixtures("cluster_env")
def test_questions_without_an_answer_in_their_language_stand_apart(fewer, small, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    names = ("dense", "dense-prefer-language-0.05", "dense-spread-0.05")
    replayed(fewer, small, ("dense", PREFER, "dense --spread .05"), tmp_path)
    document = json.loads(compared(tmp_path, names, "--json").stdout)
    assert {part: found["queries"] for part, found in document["slices"].items()} == {"own": 10, "none": 10}
    english = [query.id for query in load_dataset(fewer).queries if query.language == "en"]
    rows = {
        name: {row["query"]: row["measures"] for row in map(json.loads, (tmp_path / name).read_text().splitlines())}
        for name in ("dense/per-query.jsonl", "dense-spread-0.05/per-query.jsonl")
    }
    before, after = (sum(found[query]["nDCG@20"] for query in english) / 10 for found in rows.values())
    own, none = (document["slices"][part]["sections"] for part in ("own", "none"))
    assert {name: [*section] for name, section in own.items()} == {
        "all": ["nDCG@20", "R@20", "MostShown@20", "LPR"],
        "same-language": ["SLR@20", "own@1", "own@3"],
        "cross-language": ["TLR@20"],
    }
    means = own["all"]["nDCG@20"]["means"]
    assert (means["a"], means["c"]) == (pytest.approx(before), pytest.approx(after))
    tests = {(test["before"], test["after"]): test for test in own["all"]["nDCG@20"]["tests"]}
    assert tests["a", "c"]["difference"] == pytest.approx(after - before)
    low, high = tests["a", "c"]["interval"]
    assert low < after - before < high
    # No German passage is there to be preferred: all scores are as they were.
    assert none["all"]["nDCG@20"]["tests"][0]["difference"] == 0
    # None of these has anything to be found in its own language.
    assert none["same-language"]["SLR@20"]["means"] == dict.fromkeys("abc")
    assert none["same-language"]["SLR@20"]["tests"] == []
    assert [test["after"] for test in none["cross-language"]["TLR@20"]["tests"]] == ["b", "c", "c"]
    printed = compared(tmp_path, names).stdout.splitlines()
    at = printed.index("By answer in the searcher's language: a, and the change to b (* significant)")
    assert [line.split()[0] for line in printed[at + 1 : at + 4]] == ["answer", "yes", "no"]
    told = compared(tmp_path, names[:2], "--brief", "--measures", "nDCG@20 SLR@20").stdout.splitlines()
    own, none = (
        told.index("Answer in the searcher's language: 10 queries"),
        told.index("No answer in the searcher's language: 10 queries"),
    )
    assert told[own + 1].split() == told[none + 1].split() == TESTED_HEADS
    assert [line.split()[0] for line in told[own + 2 : own + 6]] == ["nDCG@20", "b", "SLR@20", "b"]
    # The run, a mean, no difference, the interval of three words, and two chances.
    assert told[none + 3].split()[3:] == ["0", "0", "to", "0", "1.0000", "1.0000"]
    assert told[none + 4].split() == ["SLR@20", "every", "run", "undefined", "-", "-", "-", "-"]


def test_queries_that_fail_are_told(cluster_url, folder, indices, monkeypatch):
    busy = json.dumps({"error": {"reason": "rejected execution", "type": "x"}, "status": 429}).encode()
    with proxy(cluster_url) as (address, server):
        monkeypatch.setenv("OPENSEARCH_URL", address)
        server.rewrite = lambda path, status, content: (429, busy) if path.endswith("/_msearch") else (status, content)
        with pytest.raises(LangshiftError) as caught:
            evaluated(
                *("replay", folder, "--index", indices[0], "--measures", "nDCG@20"),
                *of(("dense", "hybrid --prefer-language .05")),
            )
    first = load_dataset(folder).queries[0].id
    assert str(caught.value) == (
        "hybrid-prefer-language-0.05: 20 of 20 queries failed and count as empty answers; the first, "
        f"{first}: The cluster answered 429: rejected execution."
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--setting", "fast"],
            "The setting 'fast' cannot be used: There is no search mode 'fast': choose one of auto, dense, lexical, "
            "sparse, hybrid, balanced, anchored.",
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
        evaluated("replay", folder, "--index", "news", *given)
    assert str(caught.value) == told
