"""Replay under load against a real OpenSearch: alternation, open loop, faults, going on, group scores."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner
from command_line import langshift
from small_dataset import replayed
from tls_proxy import client_of, proxy

from langshift.commands.evaluate import evaluate
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.errors import FingerprintError, LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher


def run(*arguments):
    return CliRunner().invoke(evaluate, ["replay", *map(str, arguments)], catch_exceptions=False)


def rows(folder):
    return [json.loads(line) for line in (folder / "per-query.jsonl").read_text().splitlines()]


def searches(seen, name):
    """The paths of the searches of an index's versions, in order."""
    return [path for path, _ in seen if path.startswith(f"/{name}") and path.endswith("/_search")]


def test_indices_get_the_same_queries_in_alternation(client, cluster_url, indices, dataset):
    searchers = [Searcher(client, name) for name in indices]
    plan = ReplayOptions(load=LoadProfile(warm_up=2))
    asked = ReplayPlan.of(searchers, dataset, plan)
    with proxy(cluster_url) as (address, server), client_of(address) as other:
        found = replay_all([other], asked, plan)
        seen = [path.split("/")[1] for path, _ in server.seen if path.endswith("/_search")]
    plain, shifted = (searcher.index.index for searcher in searchers)
    warming, timed = seen[:4], seen[4:]
    assert Counter(warming) == {plain: 2, shifted: 2}
    assert timed == [plain, shifted, shifted, plain] * 10
    alone = [replayed(client, searcher, dataset) for searcher in searchers]
    for one, other in zip(found, alone, strict=True):
        assert [answer.hits for answer in one.answers] == [answer.hits for answer in other.answers]
        assert {name: scores.per_query for name, scores in one.scores.items()} == {
            name: scores.per_query for name, scores in other.scores.items()
        }


def test_several_at_once_find_the_same(client, indices, dataset):
    searcher = Searcher(client, indices[1])
    plan = ReplayOptions(load=LoadProfile(concurrency=6))
    (found,) = replay_all([client], ReplayPlan.of([searcher], dataset, plan), plan)
    alone = replayed(client, searcher, dataset)
    assert [(answer.query, answer.hits) for answer in found.answers] == [
        (answer.query, answer.hits) for answer in alone.answers
    ]
    assert found.sending.answered == 20


@pytest.mark.usefixtures("cluster_env")
def test_open_loop_of_two_indices(folder, indices, tmp_path):
    out = tmp_path / "out"
    said = run(folder, "--index", indices[0], "--index", indices[1], "--rate", 40, "--output", out, "--json")
    document = json.loads(said.stdout)
    assert set(document) == {"runs", "drift", "verdicts"}
    (verdict,) = document["verdicts"]
    assert [verdict["before"], verdict["after"]] == indices
    assert verdict["sentence"].startswith("Too few questions to tell: over 20 questions, nDCG@20 goes from .")
    for name in indices:
        one = document["runs"][name]
        assert one == json.loads((out / name / "result.json").read_text())
        assert (one["complete"], one["errors"], one["queries"]["asked"]) == (True, 0, 20)
        assert set(one["latency_ms"]) == {"took", "wall", "service"}
        assert (one["load"]["loop"], one["load"]["rate"], one["load"]["concurrency"]) == ("open", 40.0, 64)
        for row in rows(out / name):
            # From when it was due: what it waited for is in it.
            assert row["wall_ms"] >= row["waited_ms"] >= 0
        assert {path.name for path in (out / name).iterdir()} == {
            *("run.trec", "per-query.jsonl", "result.json", "group-scores.jsonl"),
        }
    (drift,) = json.loads((out / "drift.json").read_text())["drift"]
    assert [drift] == document["drift"]
    assert (drift["before"], drift["after"], drift["queries"], drift["left_out"]) == (*indices, 20, 0)
    # All 15 passages are among the first 20 of each.
    assert drift["Jaccard@20"] == 1
    assert 0 < drift["RBO(p=0.9)"] < 1
    assert drift["Share@20"]["before"] == pytest.approx({"de": 1 / 3, "en": 1 / 3, "th": 1 / 3})


@pytest.mark.usefixtures("cluster_env")
def test_a_log_without_judgements(dataset, indices, tmp_path):
    log = tmp_path / "log.jsonl"
    asked = dataset.queries[:6]
    lines = [{"timestamp": 1e9 + number / 5, "text": query.text} for number, query in enumerate(asked)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = run("--queries", log, "--speed", 10, "--index", indices[0], "--index", indices[1], "--mode", "lexical")
    shown = said.stdout.splitlines()
    assert shown[0] == f"{indices[0]}: 6 queries, lexical, alpha 0"
    assert "Milliseconds per query, at the log's times, at most 64 at a time" in shown
    heading = f"From {indices[0]} to {indices[1]}: overlap, and languages among the first 20"
    assert heading in shown
    # Words find the same in both: the shift is in the vectors alone.
    *languages, blank, verdict, heading, titles, judged = shown[shown.index(heading) + 2 :]
    assert {line.split()[2] for line in languages} == {"1.000"}
    assert (blank, verdict.partition(":")[0]) == ("", "No judgements to tell by")
    assert "of the documents that either finds among its first 20, 100% are found by both" in verdict
    # Where both find the same there is nothing to choose between.
    assert heading == "Next, the least effort first:"
    assert (titles[:2], judged[:2]) == ("1.", "2.")
    said = run("--queries", log, "--index", indices[0], "--speed", 10, "--json")
    document = json.loads(said.stdout)
    assert (document["dataset"], document["queries"]["asked"]) == (None, 6)
    # Which languages are shown is all that can be told of one index: beside what it holds of each.
    most = document["most_shown"]["MostShown@20"]
    assert document["measures"] == {"MostShown@20": most["shown"]}
    assert (most["beside"], most["fair"]) == ("the documents", pytest.approx(1 / 3))
    assert document["load"]["speed"] == 10


@pytest.mark.usefixtures("cluster_env")
def test_a_log_with_judgements(folder, dataset, indices, tmp_path):
    log = tmp_path / "log.jsonl"
    lines = [{"timestamp": 1e9, "text": query.text, "_id": query.id} for query in dataset.queries[:6]]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = json.loads(
        run(folder, "--queries", log, "--index", indices[1], "--measures", "R@20 LPR", "--json").stdout
    )
    assert document["measures"]["R@20"] == 1
    assert document["queries"] == {"asked": 6, "R@20": 6, "LPR": 6}


def exact_scores(client, searcher, dataset, vectors):
    """Query -> document -> (1 + cos) / 2, in NumPy, from the vectors that the index gives back."""
    body = {"size": 100, "query": {"match_all": {}}, "_source": ["embedding"]}
    hits = client.search(index=searcher.index.index, body=body)["hits"]["hits"]
    kept = {hit["_id"]: np.array(hit["_source"]["embedding"]) for hit in hits}
    return {
        query.id: {
            name: (1 + vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)) / 2
            for name, other in kept.items()
        }
        for query, vector in zip(dataset.queries, np.array(vectors, np.float64), strict=True)
    }


def test_group_scores_are_numpys_cosine_also_below_the_cut(client, indices, dataset):
    searcher = Searcher(client, indices[1])
    plan = ReplayOptions(measures=["LPR"], group_scores=True, depth=2)
    asked = ReplayPlan.of([searcher], dataset, plan)
    (found,) = replay_all([client], asked, plan)
    assert {len(answer.hits) for answer in found.answers} == {2}
    exact = exact_scores(client, searcher, dataset, [question.vector for question in asked.targets[0].questions])
    wanted = 0
    for query in dataset.queries:
        given = found.group_scores[query.id]
        assert set(given) == set(dataset.qrels[query.id])
        for name, score in given.items():
            assert score == pytest.approx(exact[query.id][name], abs=1e-5)
        best = max(given, key=lambda name: exact[query.id][name])
        wanted += dataset.documents[best].language == query.language
    assert found.scores["LPR"].mean == pytest.approx(wanted / 20)


def test_group_scores_of_words_are_those_of_the_run(client, indices, dataset):
    searcher = Searcher(client, indices[0])
    plan = ReplayOptions([SearchSettings("lexical")], group_scores=True)
    (found,) = replay_all([client], ReplayPlan.of([searcher], dataset, plan), plan)
    none = 0
    for answer in found.answers:
        run_scores = dict(answer.hits)
        for name, score in found.group_scores[answer.query].items():
            assert score == (pytest.approx(run_scores[name], rel=1e-5) if name in run_scores else None)
            none += score is None
    assert 0 < none < 60


def test_group_scores_that_cannot_be_had_are_told(client, cluster_url, indices, dataset):
    searcher = Searcher(client, indices[0])
    plan = ReplayOptions(measures=["LPR"], group_scores=True, load=LoadProfile(warm_up=0))
    asked = ReplayPlan.of([searcher], dataset, plan)
    busy = json.dumps({"error": {"reason": "rejected execution", "type": "x"}, "status": 429}).encode()
    with proxy(cluster_url) as (address, server), client_of(address) as other:
        server.rewrite = lambda path, status, content: (429, busy) if path.endswith("/_msearch") else (status, content)
        (found,) = replay_all([other], asked, plan)
    assert found.group_scores == {}
    assert found.warnings[0] == (
        "The group scores of 20 of 20 queries are not available, and LPR leaves these queries out; the first, "
        f"{dataset.queries[0].id}: The cluster answered 429: rejected execution."
    )


def dying(server, after):
    """A proxy's rewrite that lets so many searches through, and then closes the door for good."""
    passed = []

    def rewrite(path, status, content):
        if path.endswith("/_search") and b'"hits":[{' in content:
            passed.append(path)
            if len(passed) == after:
                server.shutdown()
                server.socket.close()
        return status, content

    return rewrite


def test_a_cluster_that_dies_leaves_a_result_that_can_be_gone_on_with(
    cluster_url, folder, dataset, indices, tmp_path, monkeypatch
):
    out, name = tmp_path / "out", indices[1]
    options = [folder, "--index", name, "--warm-up", 0, "--output", out]
    with proxy(cluster_url) as (address, server):
        server.rewrite = dying(server, 7)
        monkeypatch.setenv("OPENSEARCH_URL", address)
        with pytest.raises(LangshiftError) as caught:
            run(*options)
    told = str(caught.value)
    assert told.startswith(f"13 of 20 queries failed and count as empty answers; the first, {dataset.queries[7].id}: ")
    assert told.endswith(
        "The result is marked as incomplete: run the same command with --resume to send the 13 queries that "
        "did not reach the cluster."
    )
    partial = json.loads((out / "result.json").read_text())
    assert (partial["complete"], partial["errors"]) == (False, 13)
    assert partial["measures"]["R@20"] == pytest.approx(7 / 20)
    assert len((out / "run.trec").read_text().splitlines()) == 7 * 15
    # Seven answers and ten failures were heard; three queries were not sent at all.
    assert [row["error"] is None for row in rows(out)] == [True] * 7 + [False] * 10

    monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    with pytest.raises(UsageError) as caught:
        run(*options)
    assert str(caught.value) == (
        f"{out} contains an unfinished replay: resume it with --resume, name another --output, or "
        "remove the folder to start again."
    )
    with pytest.raises(UsageError) as caught:
        run(folder, "--index", indices[0], "--output", out, "--resume")
    assert str(caught.value).startswith(
        f"{out} contains an unfinished replay that differs from this one (index {name}-v0001, not {indices[0]}-v0001; "
    )

    with proxy(cluster_url) as (address, server):
        monkeypatch.setenv("OPENSEARCH_URL", address)
        resumed = json.loads(run(*options, "--resume", "--json").stdout)
        sent = searches(server.seen, name)
    assert (resumed["complete"], resumed["errors"]) == (True, 0)
    assert (resumed["load"]["kept"], resumed["load"]["sent_again"]) == (7, 10)
    # One search reads the index's languages; the others are the queries that were missing.
    assert len(sent) == 1 + 13
    assert {path.name for path in out.iterdir()} == {
        *("run.trec", "per-query.jsonl", "result.json", "group-scores.jsonl"),
    }
    monkeypatch.setenv("OPENSEARCH_URL", cluster_url)
    with pytest.raises(UsageError) as caught:
        run(*options, "--resume")
    assert str(caught.value) == f"{out} contains no unfinished replay: leave --resume out to start one."

    whole = json.loads(run(folder, "--index", name, "--output", tmp_path / "whole", "--json").stdout)
    assert resumed["measures"] == whole["measures"]
    for file in ("run.trec", "group-scores.jsonl"):
        assert (out / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


# Where the tests run in the background, SIGINT is ignored by their children too.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from langshift.entry import main; main()"
)


@pytest.mark.usefixtures("cluster_env")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_replay_that_is_cut_off_is_gone_on_with(folder, indices, tmp_path, ending):
    out = tmp_path / "out"
    command = ["evaluate", "replay", folder, "--output", out, "--rate", "10", "--json"]
    command += [word for name in indices for word in ("--index", name)]
    journals = [out / name / "per-query.jsonl" for name in indices]
    program = [sys.executable, "-c", INTERRUPTIBLE, *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not all(path.is_file() and path.read_bytes().count(b"\n") >= 3 for path in journals):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(ending)
        printed, said = process.communicate(timeout=60)
    assert printed == ""
    if ending == signal.SIGINT:
        assert process.returncode == 130
        kept_told = "The answers so far are saved: run the same command with --resume to send the rest."
        assert said.split("\n") == [kept_told, "", "Interrupted.", ""]
    kept = {}
    for name, path in zip(indices, journals, strict=True):
        assert json.loads((out / name / "result.json").read_text())["complete"] is False
        kept[name] = path.read_bytes().count(b"\n")
        assert 3 <= kept[name] < 20
    journals[0].write_bytes(journals[0].read_bytes() + b'{"query":"x","ranking":[["d')
    done = langshift(*command, "--resume")
    assert done.returncode == 0, done
    document = json.loads(done.stdout)["runs"]
    for name in indices:
        assert (document[name]["complete"], document[name]["errors"]) == (True, 0)
        assert document[name]["load"]["kept"] == kept[name]
        found = [row["query"] for row in rows(out / name)]
        assert found == [query.id for query in load_dataset(folder).queries]
        assert document[name]["measures"]["R@20"] == 1


def test_errors_of_the_cluster_are_kept_with_their_reason(cluster_url, dataset, client, indices):
    busy = json.dumps({"error": {"reason": "rejected execution", "type": "x"}, "status": 429}).encode()
    numbers = iter(range(1000))
    strange = {2: (429, busy), 3: (200, b'{"took": 1}'), 4: (200, b"<html>")}
    searcher = Searcher(client, indices[0])
    plan = ReplayOptions(load=LoadProfile(warm_up=0))
    asked = ReplayPlan.of([searcher], dataset, plan)
    with proxy(cluster_url) as (address, server), client_of(address) as other:
        server.rewrite = lambda path, status, content: (
            strange.get(next(numbers), (status, content)) if path.endswith("/_search") else (status, content)
        )
        (found,) = replay_all([other], asked, plan)
    assert [answer.query for answer in found.failed] == [query.id for query in dataset.queries[2:5]]
    first, second, third = (answer.error for answer in found.failed)
    assert first == "The cluster answered 429: rejected execution."
    for told, shown in ((second, '{"took":1}'), (third, "<html>")):
        assert told.startswith(
            f"The server at {address} answered POST /{indices[0]}-v0001/_search with something that "
        )
        assert f"({shown})" in told
    assert found.complete
    assert found.sending.answered == 17


def test_queries_behind_a_stop_of_the_cluster_carry_its_time(cluster_url, dataset, client, indices):
    """One connection, and the cluster stops for .5 s at the first query: the next ones were due meanwhile."""
    stopped = threading.Event()

    def stop(path, status, content):
        if path.endswith("/_search") and not stopped.is_set():
            stopped.set()
            time.sleep(0.5)
        return status, content

    searcher = Searcher(client, indices[0])
    plan = ReplayOptions(load=LoadProfile(concurrency=1, rate=200.0, warm_up=0))
    asked = ReplayPlan.of([searcher], dataset, plan)
    with proxy(cluster_url) as (address, server), client_of(address) as other:
        server.rewrite = stop
        (found,) = replay_all([other], asked, plan)
    # All 20 are due within .1 s, so each had to wait for at least .4 s.
    assert all(answer.wall >= 400 for answer in found.answers)
    assert all(answer.waited >= 400 for answer in found.answers[1:])


@pytest.mark.usefixtures("cluster_env")
def test_an_index_of_another_model_is_refused(client, folder, indices, index_name):
    encoder, detector = open_encoder("use-m"), open_detector()
    made = build_pipeline(encoder, detector, None, 0.0)
    load(client, str(folder / "corpus.jsonl"), index_name, made)
    mapping = client.indices.get_mapping(index=f"{index_name}-v0001")[f"{index_name}-v0001"]["mappings"]["_meta"]
    mapping["langshift"]["revision"] = "0123456789ab"
    client.indices.put_mapping(index=f"{index_name}-v0001", body={"_meta": mapping})
    with pytest.raises(FingerprintError) as caught:
        run(folder, "--index", indices[0], "--index", index_name)
    assert str(caught.value) == (
        f"Index {index_name} was built with revision 0123456789ab, not {encoder.revision}: "
        "search with the same encoder, or index the corpus again."
    )
