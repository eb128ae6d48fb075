"""Loads by the workers of a Ray cluster of two machines: they become what plain loads become."""

import itertools
import json

import orjson
import pytest
from command_line import langshift, program, refusal
from fault_proxy import fault_proxy
from faults import delayed, whole
from many_lines import write_many_lines
from parted import GIVEN, letters_of, require_became
from ray_kills import ray_options, require_same_through_kills
from ray_nodes import Nodes, loading, until
from server_words import pressed
from several_files import made_lines, written

from langshift.ingest.workers import run
from langshift.plugin import versions
from langshift.plugin.inventory import drop_all

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def nodes():
    made = Nodes()
    yield made
    made.close()


@pytest.fixture
def proxy(cluster_url):
    with fault_proxy(cluster_url) as proxy:
        yield proxy


@pytest.fixture
def index(client, index_name):
    yield index_name
    drop_all(client, index_name)


def test_killed_at_random_it_becomes_what_a_plain_load_becomes(became, proxy, nodes, index, tmp_path):
    require_same_through_kills(became, proxy, nodes, index, tmp_path, kills=3, lines=6000)


def test_several_files_whose_lines_are_numbered_over_all(became, cluster_url, nodes, index, tmp_path):
    files, _ = written(tmp_path / "in", made_lines(3))
    plain = became(*files)
    options = [one for one in ray_options(index, tmp_path / "state", nodes) if one not in GIVEN]
    done = program("ingest", *files, *options, "--encoder", "use-m", "--runner", "ray", url=cluster_url)
    assert done.returncode == 3, done.stderr
    require_became(json.loads(done.stdout), became.left(index, tmp_path / "state"), plain)


def test_a_line_that_ends_its_workers_is_given_up(proxy, nodes, index, tmp_path):
    corpus, state, line = write_many_lines(tmp_path / "corpus.jsonl", 1200), tmp_path / "state", 100
    proxy.inject("_bulk", itertools.repeat(delayed(0.3)))
    seen = set()

    def tries():
        found = {one.name for one in (state / "attempts").glob("0*")} - seen
        return {one for one in found if int(one.split("-")[0]) <= line <= int(one.split("-")[1])}

    with loading(corpus, *ray_options(index, state, nodes), "--workers", 1, OPENSEARCH_URL=proxy.url) as running:
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
    load = (corpus, *ray_options(index, tmp_path / "state", nodes), "--requests", 3)
    with loading(*load, OPENSEARCH_URL=proxy.url) as running:
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
    load = ("ingest", corpus, *ray_options(index, tmp_path / "state", nodes), "--runner", "ray")
    said = refusal(langshift(*load, url=cluster_url))
    assert said.startswith("A worker on ")
    assert why in said
    # Nothing was written, so that nothing is left.
    assert versions.unfinished(client, index) == {}
    assert not (tmp_path / "state" / "load.json").exists()


def test_what_cannot_be_is_refused(nodes, index, cluster_url, tmp_path):
    corpus = write_many_lines(tmp_path / "corpus.jsonl", 20)
    plain = ("ingest", corpus, "--index", index, *GIVEN)
    load = (*plain, "--runner", "ray")
    state = ("--state", tmp_path / "state")

    def refused(*command):
        return refusal(langshift(*command, url=cluster_url))

    assert refused(*plain, "--workers", 2) == "--workers concerns the workers of --runner ray: give that, too."
    assert refused(*load) == ("--runner ray keeps the state of the load where all workers can write it: give --state.")
    standard = ("-" if one is corpus else one for one in load)
    assert refused(*standard, *state) == (
        "Standard input cannot be read by several workers: give a file, or leave --runner ray out."
    )
    assert refused(*load, *state, "--address", "127.0.0.1:1") == (
        "--address 127.0.0.1:1: no Ray cluster answers there: start one (`ray start --head`), or leave --address out "
        "to use this machine alone."
    )
    no_gpu = program(*load, *state, "--address", nodes.address, "--gpus-per-worker", 1, url=cluster_url)
    assert refusal(no_gpu) == (
        "--gpus-per-worker 1: the Ray cluster has 0 GPUs: leave it out, or add machines that have some."
    )
    assert not (tmp_path / "state").exists()
