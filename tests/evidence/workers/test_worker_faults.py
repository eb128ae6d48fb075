"""Loads by the workers of a Ray cluster: killed anywhere, without a store, by lines that end workers, and refused."""

import asyncio
import itertools
import json
import os
import re
import resource
import time
from itertools import pairwise

import orjson
import pytest
from command_line import langshift, program, refusal, started
from embeddings_server import embeddings_server
from faults import cut_before, delayed, whole
from http_exchange import Cut
from many_lines import write_many_lines
from parted import GIVEN, require_became, told
from ray_kills import ray_options, require_same_through_kills
from ray_nodes import Nodes
from server_words import pressed
from several_files import made_lines, require_same, written

from langshift.ingest.workers import engine
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


def test_hundreds_of_documents_that_are_encoded(became, cluster_url, nodes, index, tmp_path):
    corpus, encoder = tmp_path / "corpus.jsonl", ("--encoder", "e5-small")
    lines = [{**line, "_id": f"{seed}-{line['_id']}"} for seed in range(10) for line in made_lines(seed)]
    assert sum("text" in line for line in lines) > 600
    corpus.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    plain = became(corpus, options=encoder)
    options = [one for one in ray_options(index, tmp_path / "state", nodes) if one not in GIVEN]
    done = program("ingest", corpus, *options, *encoder, url=cluster_url)
    assert done.returncode == 3, done.stderr
    require_became(json.loads(done.stdout), became.left(index, tmp_path / "state"), plain)


def deadly(nodes, here):
    """Kills the workers where something is in a request; whatever has sent it has no answer."""

    async def fault(exchange):
        if here(exchange) and nodes.workers():
            await asyncio.to_thread(nodes.kill_workers)
            raise Cut
        return await exchange.forward()

    return itertools.repeat(fault)


def test_lines_that_end_their_workers_are_given_up(became, proxy, nodes, index, tmp_path):
    corpus, state = write_many_lines(tmp_path / "corpus.jsonl", 1200), tmp_path / "state"
    plain = became(corpus, options=GIVEN)
    document = {"text": "A text.", "language": "de", "year": 2000, "note": "", "embedding": [0.5] * 8}
    more = [document | {"_id": "deadly", "text": "deadly"}, document | {"_id": "good"}]
    late = [{"_id": "good", "_op": "update", "note": "deadly"}, {"_id": "good", "_op": "update", "year": 2001}]
    with corpus.open("ab") as file:
        file.writelines(orjson.dumps(one) + b"\n" for one in [*more, *late])
    proxy.inject("_bulk", deadly(nodes, lambda exchange: b'"deadly"' in exchange.body))
    load = ("ingest", corpus, *ray_options(index, state, nodes), "--workers", 1)
    done = program(*load, OPENSEARCH_URL=proxy.url)
    assert done.returncode == 3, done.stderr
    documents, letters, _ = became.left(index, state)
    assert documents.pop("good")["year"] == 2001
    require_same(documents, plain[1])
    given_up = [one for one in letters if one.type == "worker_died"]
    why = "has ended 4 workers, two of which did nothing else."
    assert [(one.line, one.id, one.reason) for one in given_up] == [(1201, "deadly", why), (1203, "good", why)]
    assert told([one for one in letters if one not in given_up]) == told(plain[2])
    assert json.loads(done.stdout)["lines"] == 1204


def test_a_line_that_ends_its_workers_when_it_is_read_ends_the_load(became, cluster_url, store, nodes, index, tmp_path):
    corpora = [write_many_lines(tmp_path / f"{name}.jsonl", 1000, seed=name) for name in ("good", "deadly")]
    plain, state = became(*corpora, options=GIVEN), tmp_path / "state"
    addresses = [store.put(one.name, one.read_bytes()) for one in corpora]
    store.proxy.inject("deadly", deadly(nodes, lambda exchange: exchange.method == "GET"))
    load = ("ingest", *addresses, *ray_options(index, state, nodes), "--workers", 1)
    said = refusal(program(*load, url=cluster_url))
    assert re.sub("on [^ ]+ stopped", "on X stopped", said) == (
        f"A worker on X stopped: Line 1 of {addresses[1]} has ended 5 workers, the last one as it was read: "
        "give workers more memory, or load the corpus without that line. 964 lines of 2 files "
        f"({addresses[0]} to {addresses[1]}) handled: continue with --resume."
    )
    store.proxy.clear()
    done = program(*load, "--resume", url=cluster_url)
    assert done.returncode == 3, done.stderr
    documents, letters, made = became.left(index, state)
    letters = [one._replace(corpus=str(tmp_path / one.corpus.rpartition("/")[2])) for one in letters]
    require_became(json.loads(done.stdout), (documents, letters, made), plain)


def test_a_full_disk_of_a_worker_ends_the_load_and_it_is_gone_on_with(became, proxy, nodes, index, tmp_path):
    corpus, state = write_many_lines(tmp_path / "corpus.jsonl", 6000), tmp_path / "state"
    plain = became(corpus, options=GIVEN)

    async def full(exchange):
        for one in nodes.workers():
            resource.prlimit(one.pid, resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        return await exchange.forward()

    proxy.inject("_bulk", [*itertools.repeat(delayed(0.1), 15), *itertools.repeat(full, 100)])
    load = ("ingest", corpus, *ray_options(index, state, nodes))
    said = refusal(program(*load, OPENSEARCH_URL=proxy.url))
    assert re.match(r"A worker on [^ ]+ stopped: /[^ ]+ cannot be (read or )?written \(", said), said
    assert "the disk" in said
    assert said.endswith(f" lines of {corpus} handled: continue with --resume.")
    assert [one.name for one in state.rglob("*") if one.suffix not in ("", ".json", ".jsonl", ".parquet")] == []
    proxy.clear()
    done = program(*load, "--resume", OPENSEARCH_URL=proxy.url)
    assert done.returncode == 3, done.stderr
    require_became(json.loads(done.stdout), became.left(index, state), plain)


def test_all_workers_together_keep_to_the_requests(proxy, nodes, index, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 9000, dimension=None)
    begun, refused, state = [], delayed(0.2, whole(pressed())), tmp_path / "state"
    attempts, encoded = set(), []

    async def busy(exchange):
        begun.append(time.monotonic())
        encoded.append(sum(map(len, encoder.asked)))
        attempts.update(tuple(map(int, one.name.split("-")[:2])) for one in state.glob("attempts/0*"))
        return await (refused if begun[-1] < begun[0] + 20 else delayed(0.2))(exchange)

    proxy.inject("_bulk", itertools.repeat(busy))
    with embeddings_server() as encoder:
        options = [one for one in ray_options(index, state, nodes) if one not in GIVEN]
        load = ("ingest", corpus, *options, "--encoder", encoder.name, "--alpha", 0, "--requests", 3)
        with started(*load, OPENSEARCH_URL=proxy.url) as running:
            _, err = running.communicate(timeout=300)
    assert running.returncode == 3, err
    assert max(bulk.under_way for bulk in proxy.bulks) in (1, 2, 3)
    assert sum(bulk.status == 429 for bulk in proxy.bulks) > 4
    # Nothing is encoded meanwhile but what two workers are at, of five such parts.
    meanwhile = max(many for at, many in zip(begun, encoded, strict=True) if at < begun[0] + 20)
    assert meanwhile < encoded[-1] / 2
    # What one tries ends where what another tries begins: nobody dies of lines that others have.
    assert len(attempts) > 4
    assert all(last < first for (_, last), (first, _) in pairwise(sorted(attempts)))
    assert sum(bulk.status == 200 for bulk in proxy.bulks) > 6


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
    usual = engine.WorkersRun._job
    monkeypatch.setattr(engine.WorkersRun, "_job", lambda *given: change(usual(*given)))
    load = ("ingest", corpus, *ray_options(index, tmp_path / "state", nodes))
    said = refusal(langshift(*load, url=cluster_url))
    assert said.startswith("A worker on ")
    assert why in said
    # Nothing was written, so that nothing is left.
    assert versions.unfinished(client, index) == {}
    assert not (tmp_path / "state" / "load.json").exists()


def test_a_cluster_that_is_not_there_or_has_no_gpus_is_told(nodes, index, cluster_url, tmp_path):
    corpus, state = write_many_lines(tmp_path / "corpus.jsonl", 20), tmp_path / "state"
    load = ("ingest", corpus, "--index", index, *GIVEN, "--runner", "ray", "--state", state)
    assert refusal(langshift(*load, "--address", "127.0.0.1:1", url=cluster_url)) == (
        "--address 127.0.0.1:1: no Ray cluster answers there: start one (`ray start --head`), or leave --address out "
        "to use this machine alone."
    )
    no_gpu = program(*load, "--address", nodes.address, "--gpus-per-worker", 1, url=cluster_url)
    assert refusal(no_gpu) == (
        "--gpus-per-worker 1: the Ray cluster has 0 GPUs: leave it out, or add machines that have some."
    )
    assert not state.exists()


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
