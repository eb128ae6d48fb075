"""Replay in every mode against a real OpenSearch: steps, group scores, faults between steps, going on."""

import json
import re

import pytest
from click.testing import CliRunner
from tls_proxy import client_of, proxy

from langshift.commands.evaluate import evaluate
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, open_journals
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.evaluate.replay.result import result
from langshift.plugin import metadata
from langshift.retrieval.calibration.stored import measured_with, remarks
from langshift.retrieval.question import USUAL_STRENGTH
from langshift.retrieval.request import SearchSettings, read_setting
from langshift.retrieval.searcher import Searcher

SETTINGS = (
    "dense",
    "dense --prefer-language .05",
    "dense --spread .05",
    "lexical",
    "lexical --prefer-language .05",
    "hybrid",
    "hybrid --prefer-language .05",
    "hybrid --lexical-weight .6",
    "hybrid --fusion rrf",
    "hybrid --fusion rrf --spread .05",
    "balanced",
    "balanced --prefer-language .05",
    "anchored",
    "anchored --prefer-language .05",
    "anchored --spread .05",
)


@pytest.fixture(scope="module")
def index(indices):
    return indices[1]


def run(*arguments):
    return CliRunner().invoke(evaluate, ["replay", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize("text", SETTINGS)
def test_group_scores_are_those_of_the_run_and_there_are_some_below_its_cut(client, index, dataset, text):
    # Each leg looks at a hundred documents all the same.
    setting = read_setting(text)
    plan = ReplayOptions([setting], measures=["LPR", "nDCG@20"], group_scores=True, depth=4)
    (found,) = replay_all([client], ReplayPlan.of([Searcher(client, index)], dataset, plan), plan)
    assert not found.failed
    assert found.setting == setting
    assert list(found.group_scores) == [query.id for query in dataset.queries]
    both = below = 0
    for answer in found.answers:
        given, hits = found.group_scores[answer.query], dict(answer.hits)
        assert set(given) == set(dataset.qrels[answer.query])
        for name, score in given.items():
            if name in hits:
                assert score == pytest.approx(hits[name], abs=1e-4, rel=1e-4)
                both += 1
            elif score is not None:
                below += 1
                assert score <= min(hits.values()) + 1e-4
    assert both
    # Words match few passages in other languages.
    assert below or setting.mode == "lexical"
    assert found.scores["LPR"].queries == 20


@pytest.mark.usefixtures("cluster_env")
def test_the_setting_stands_in_what_is_printed_and_written(folder, index, tmp_path):
    options = [folder, "--index", index, "--setting", "hybrid --prefer-language .05", "--output", tmp_path / "out"]
    said = run(*options)
    assert said.stdout.splitlines()[0] == f"{index}: 20 queries, hybrid --prefer-language 0.05, alpha 1"
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert document["mode"] == "hybrid"
    wanted = SearchSettings("hybrid", prefer_language=0.05)
    assert document["setting"] == {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    tags = {line.split()[5] for line in (tmp_path / "out" / "run.trec").read_text().splitlines()}
    assert tags == {f"{index}_hybrid_--prefer-language_0.05"}


def steps(server):
    """The kinds of the searches that went through a proxy, in order."""
    paths = [path.split("?")[0] for path, _ in server.seen]
    return [path.rsplit("/", 1)[1] for path in paths if path.endswith(("/_search", "/_msearch"))]


def test_the_times_of_all_steps_are_added(client, cluster_url, index, dataset):
    plan = ReplayOptions([read_setting("dense --one-per-group")], load=LoadProfile(warm_up=0))
    asked = ReplayPlan.of([Searcher(client, index)], dataset, plan)
    with proxy(cluster_url) as (address, server), client_of(address) as other:
        server.rewrite = lambda _, status, content: (status, re.sub(rb'"took":\d+', b'"took":10', content))
        (found,) = replay_all([other], asked, plan)
        seen = steps(server)
    assert seen == ["_search", "_search"] * 20
    assert {answer.took for answer in found.answers} == {20.0}
    assert all(answer.wall > 0 for answer in found.answers)
    # One document of each of the five topics, in the language of the query where there is one.
    assert {len(answer.hits) for answer in found.answers} == {5}
    for answer in found.answers:
        assert {dataset.documents[name].language for name, _ in answer.hits} == {found.languages[answer.query]}
    assert found.warnings == [
        "Only one document of each translation group counts as found, so recall of the others is low."
    ]


def test_a_step_that_fails_fails_its_query_alone(client, cluster_url, index, dataset):
    plan = ReplayOptions([read_setting("dense --one-per-group")], load=LoadProfile(warm_up=0))
    asked = ReplayPlan.of([Searcher(client, index)], dataset, plan)
    busy = json.dumps({"error": {"reason": "rejected execution", "type": "x"}, "status": 429}).encode()
    seen = []

    def rewrite(path, status, content):
        if not path.endswith("/_search"):
            return status, content
        seen.append(path)
        # The second steps of the third and of the fourth query.
        if len(seen) == 6:
            return 429, busy
        if len(seen) == 8:
            return 500, json.dumps({"error": {"reason": "out of memory", "type": "x"}, "status": 500}).encode()
        return status, content

    with proxy(cluster_url) as (address, server), client_of(address) as other:
        server.rewrite = rewrite
        (found,) = replay_all([other], asked, plan)
    assert [answer.query for answer in found.failed] == [query.id for query in dataset.queries[2:4]]
    assert [answer.error for answer in found.failed] == [
        "The cluster answered 429: rejected execution.",
        "The cluster answered 500: out of memory.",
    ]
    assert all((answer.hits, answer.took, answer.wall) == ((), None, None) for answer in found.failed)
    assert found.complete
    assert found.sending.answered == 18


def dying(server, after):
    """A proxy's rewrite that lets so many requests of several searches through, and then closes the door for good."""
    passed = []

    def rewrite(path, status, content):
        if path.endswith("/_msearch"):
            passed.append(path)
            if len(passed) == after:
                server.shutdown()
                server.socket.close()
        return status, content

    return rewrite


@pytest.mark.parametrize(
    "setting",
    [
        "hybrid --prefer-language .05",
        "hybrid --prefer-language .05 --one-per-group",
        "hybrid --fusion rrf --spread .05",
        "anchored --spread .05",
    ],
)
def test_a_mode_of_several_searches_is_gone_on_with(cluster_url, folder, index, tmp_path, monkeypatch, setting):
    out = tmp_path / "out"
    command = [folder, "--index", index, "--warm-up", 0, "--setting", setting, "--output", out]
    with proxy(cluster_url) as (address, server):
        server.rewrite = dying(server, 7)
        monkeypatch.setenv("OPENSEARCH_URL", address)
        with pytest.raises(LangshiftError, match="queries failed and count as empty answers; the first, "):
            run(*command)
    kept = [json.loads(line) for line in (out / "per-query.jsonl").read_text().splitlines()]
    answered = [row for row in kept if row["error"] is None]
    assert answered
    assert len(answered) < 20
    assert all(row["how"] for row in answered)

    monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    with pytest.raises(UsageError) as caught:
        run(folder, "--index", index, "--warm-up", 0, "--setting", "dense", "--output", out, "--resume")
    option = "spread" if "--spread" in setting else "prefer_language"
    assert str(caught.value).startswith(
        f"{out} contains an unfinished replay that differs from this one "
        f"(setting mode {setting.split()[0]}, not dense; setting {option} 0.05, not 0.0; "
    )
    resumed = json.loads(run(*command, "--resume", "--json").stdout)
    assert (resumed["complete"], resumed["errors"], resumed["load"]["kept"]) == (True, 0, len(answered))
    again = (folder, "--index", index, "--setting", setting, "--output", tmp_path / "whole", "--json")
    whole = json.loads(run(*again).stdout)
    assert resumed["measures"] == whole["measures"]
    for file in ("run.trec", "group-scores.jsonl"):
        assert (out / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_figures_of_anchored_hold_what_they_rest_on(client, index, dataset, tmp_path):
    """A calibration in between makes it another replay, and one that is not calibrated says so."""
    plan = ReplayOptions([read_setting("anchored")], measures=["nDCG@20"])
    searcher = Searcher(client, index)
    asked = ReplayPlan.of([searcher], dataset, plan)
    (found,) = replay_all([client], asked, plan)
    assert found.trust == searcher.trust
    assert result(found, "3.6.0")["trust"] == {**searcher.trust.to_dict(), "calibrated": False}
    (due,) = remarks(searcher.index, plan.settings[0])
    assert due in found.warnings
    for journal in open_journals(tmp_path, asked, plan):
        journal.__exit__()
    for journal in open_journals(tmp_path, asked, plan):
        journal.__exit__()
    version = searcher.index.index
    kept = {"strength": 0.25, "mode": "anchored", "lexical_weight": None, "rerank": {}}
    kept = searcher.trust.to_dict() | kept | {"measured_with": measured_with(searcher.index)}
    metadata.change(client, version, {metadata.ANCHORS: kept})
    try:
        with pytest.raises(UsageError) as caught:
            open_journals(tmp_path, ReplayPlan.of([Searcher(client, index)], dataset, plan), plan)
    finally:
        metadata.change(client, version, {metadata.ANCHORS: None})
    assert str(caught.value) == (
        f"{tmp_path} contains an unfinished replay that differs from this one (trust strength {USUAL_STRENGTH}, not "
        "0.25): name another --output, or resume it with the command that started it."
    )
    both = ReplayOptions([read_setting("dense"), read_setting("auto")], measures=["nDCG@20"])
    dense, auto = replay_all([client], ReplayPlan.of([searcher], dataset, both), both)
    assert (dense.trust, result(dense, "3.6.0")["trust"]) == (None, None)
    # Nothing is calibrated.
    assert [answer.hits for answer in auto.answers] == [answer.hits for answer in dense.answers]
    document = result(auto, "3.6.0")
    assert (document["mode"], document["mode_from"], document["setting"]["mode"]) == ("dense", "default", "auto")
    # A search without options does not say it either.
    assert auto.warnings == dense.warnings
