"""Loads by the workers of a Ray cluster: killed anywhere, without a store, by lines that end workers, and refused."""

import itertools
import json
import os
import time

import orjson
import pytest
from command_line import langshift, program, refusal, started
from faults import cut_before, delayed, whole
from many_lines import write_many_lines
from parted import GIVEN, letters_of, require_became
from ray_kills import ray_options, require_same_through_kills
from ray_nodes import Nodes, until
from server_words import pressed
from several_files import made_lines, written

from langshift.ingest.workers import run
from langshift.plugin import versions

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
KILLS = int(os.environ.get("LANGSHIFT_KILLS", "2"))


def test_killed_at_random_it_becomes_what_a_plain_load_becomes(became, proxy, nodes, index, tmp_path):
    lines = 60_000 if KILLS >= 20 else 20_000
    require_same_through_kills(became, proxy, nodes, index, tmp_path, min(KILLS, 20), lines)


def test_a_store_that_stays_away_for_a_while_is_waited_for(became, cluster_url, store, nodes, index, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 6000)
    plain, state = became(corpus, options=GIVEN), store.uri("state")
    back, seen = [0.0], set()

    async def away(exchange):
        for point in ("corpus.jsonl", "state/attempts", "state/parts/0", "state/parts/late", "state/making"):
            if point in exchange.path and point not in seen and exchange.method in ("GET", "PUT"):
                seen.add(point)
                back[0] = time.monotonic() + 10
        return await (cut_before(exchange) if time.monotonic() < back[0] else exchange.forward())

    store.put("corpus.jsonl", corpus.read_bytes())
    store.proxy.inject("", itertools.repeat(away))
    load = ("ingest", store.uri("corpus.jsonl"), *ray_options(index, state, nodes))
    with started(*load, OPENSEARCH_URL=cluster_url) as running:
        out, err = running.communicate(timeout=600)
    assert running.returncode == 3, err
    assert len(seen) == 5
    documents, letters, made = became.left(index, state)
    letters = [one._replace(corpus=str(corpus)) for one in letters]
    require_became(json.loads(out), (documents, letters, made), plain)


def test_several_files_whose_lines_are_numbered_over_all(became, cluster_url, nodes, index, tmp_path):
    files, _ = written(tmp_path / "in", made_lines(3))
    plain = became(*files)
    options = [one for one in ray_options(index, tmp_path / "state", nodes) if one not in GIVEN]
    done = program("ingest", *files, *options, "--encoder", "use-m", url=cluster_url)
    assert done.returncode == 3, done.stderr
    require_became(json.loads(done.stdout), became.left(index, tmp_path / "state"), plain)


def test_a_line_that_ends_its_workers_is_given_up(proxy, nodes, index, tmp_path):
    corpus, state, line = write_many_lines(tmp_path / "corpus.jsonl", 1200), tmp_path / "state", 100
    proxy.inject("_bulk", itertools.repeat(delayed(0.3)))
    seen = set()

    def tries():
        found = {one.name for one in (state / "attempts").glob("0*")} - seen
        return {one for one in found if int(one.split("-")[0]) <= line <= int(one.split("-")[1])}

    with started(
        "ingest", corpus, *ray_options(index, state, nodes), "--workers", 1, OPENSEARCH_URL=proxy.url
    ) as running:
        while until(tries, running):
            seen |= tries()
            until(nodes.kill_workers, running)
        out, err = running.communicate()
    assert running.returncode == 3, err
    assert sum(one.startswith(f"{line:012}-{line:012}") for one in seen) == 1
    (given_up,) = (one for one in letters_of(state) if one.type == "worker_died")
    assert (given_up.line, given_up.reason) == (
        line,
        "has ended 4 workers, one of which did nothing else.",
    )
    assert json.loads(out)["lines"] == 1200


def test_all_workers_together_keep_to_the_requests(proxy, nodes, index, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 6000)
    proxy.inject("_bulk", [*itertools.repeat(delayed(0.2, whole(pressed())), 6), *itertools.repeat(delayed(0.2), 200)])
    load = ("ingest", corpus, *ray_options(index, tmp_path / "state", nodes), "--requests", 3)
    with started(*load, OPENSEARCH_URL=proxy.url) as running:
        _, err = running.communicate(timeout=300)
    assert running.returncode == 3, err
    assert max(bulk.under_way for bulk in proxy.bulks) in (1, 2, 3)
    assert len(proxy.bulks) > 20


def other_making(job):
    return job._replace(making=orjson.dumps(orjson.loads(job.making) | {"encoder": "st:nowhere/at-all"}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda job: job._replace(version="0.0.1"), "is installed there, and 0.0.1 here: install the same on every"),
        (lambda job: job._replace(fingerprint={**job.fingerprint, "revision": "x"}), "install the same model on every"),
        (other_making, "st:"),
    ],
)
def test_a_worker_that_cannot_do_it_says_why(change, why, nodes, index, client, cluster_url, tmp_path, monkeypatch):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 20)
    usual = run.WorkersRun._job
    monkeypatch.setattr(run.WorkersRun, "_job", lambda *given: change(usual(*given)))
    load = ("ingest", corpus, *ray_options(index, tmp_path / "state", nodes))
    said = refusal(langshift(*load, url=cluster_url))
    assert said.startswith("A worker on ")
    assert why in said
    # Nothing was written, so that nothing is left.
    assert versions.unfinished(client, index) == {}
    assert not (tmp_path / "state" / "load.json").exists()


def test_what_is_on_this_machine_is_refused_where_there_are_others(index, cluster_url, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 20)
    others = Nodes(node_ip_address="127.0.0.2")
    try:
        load = ("ingest", corpus, *ray_options(index, "s3://bucket/state", others))
        said = refusal(program(*load, url=cluster_url))
    finally:
        others.close()
    assert said == (
        f"{corpus} is on this machine, and the Ray cluster has others: give an address in a store (s3://, gs://)."
    )
