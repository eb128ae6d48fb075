"""Loads by the workers of a Ray cluster: what is refused before any begins; what they do is in evidence/workers/."""

from command_line import langshift, refusal
from many_lines import write_many_lines
from parted import GIVEN


def test_what_cannot_be_is_refused(index, cluster_url, tmp_path):
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
    assert not (tmp_path / "state").exists()
