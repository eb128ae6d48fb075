"""A load by the workers of a Ray cluster of two machines becomes what a plain one becomes; and refusals."""

import pytest
from command_line import langshift, program, refusal
from many_lines import write_many_lines
from parted import GIVEN
from ray_kills import require_same_through_kills

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_killed_once_it_becomes_what_a_plain_load_becomes(became, proxy, nodes, index, tmp_path):
    require_same_through_kills(became, proxy, nodes, index, tmp_path, kills=1, lines=3000)


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
