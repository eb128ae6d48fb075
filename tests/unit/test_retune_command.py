"""``langshift retune``: what is wrong use, said before anything is asked of a cluster."""

import pytest
from given_data import Made, run
from shifted_index import refused

BOTH = "--gate and --fail-if belong together: give {}, too."


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "There is nothing to retune to: give --alpha, --alpha-for or --vectors."),
        (["--alpha", 1, "--gate", "xquad"], BOTH.format("conditions with --fail-if")),
        (["--alpha", 1, "--fail-if", "SLR@20 < 0"], BOTH.format("a dataset with --gate")),
        (
            ["--alpha", 1, "--encoder", "use-m"],
            "Nothing is encoded without --gate: leave --encoder and --trust-remote-code out.",
        ),
    ],
)
def test_wrong_use(options, told):
    assert refused(run("retune", "news", *options)) == (told, 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--alpha", "1.1"], "Invalid value for '--alpha': 1.1 is not in the range 0<=x<=1."),
        (["--alpha", "nan"], "Invalid value for '--alpha': nan is not in the range 0<=x<=1."),
        (["--alpha-for", "th=1.1"], "Invalid value for '--alpha-for': 1.1 is not in the range 0<=x<=1."),
        (["--alpha-for", "0.3"], "Invalid value for '--alpha-for': 0.3 names no language with a scale: write th=0.3."),
        (["--alpha-for", "th"], "Invalid value for '--alpha-for': th names no language with a scale: write th=0.3."),
        (["--alpha-for", "th=x"], "Invalid value for '--alpha-for': 'x' is not a valid float range."),
        (
            ["--alpha-for", "th=0.3", "--alpha-for", "tha=0.4"],
            "Invalid value for '--alpha-for': th is named twice: name each language once.",
        ),
        (["--throttle", "0"], "Invalid value for '--throttle': 0.0 is not in the range x>0."),
    ],
)
def test_numbers_that_are_none(options, told):
    done = run("retune", "news", *options)
    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == f"Error: {told}"


@pytest.mark.parametrize(
    ("folder", "condition", "told"),
    [
        (
            "none",
            "SLR@20 < 0",
            "There is no dataset folder {}: a dataset folder holds corpus.jsonl, queries.jsonl and qrels/test.tsv.",
        ),
        (
            "data",
            "SLR@20 in fr < 0",
            "--fail-if 'SLR@20 in fr < 0': there are no queries in 'fr'; there are some in en.",
        ),
    ],
)
def test_a_gate_is_read_before_a_cluster_is_asked_anything(tmp_path, monkeypatch, folder, condition, told):
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9")
    Made(tmp_path)
    sentence, code = refused(run("retune", "news", "--alpha", 1, "--gate", tmp_path / folder, "--fail-if", condition))
    assert sentence == told.format(tmp_path / folder)
    assert code == 2
