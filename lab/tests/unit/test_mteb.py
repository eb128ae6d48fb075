"""Figures of a run as MTEB keeps them."""

import json

import pytest
from click.testing import CliRunner
from data_folder import write_dataset, write_run

from langshift.commands.compare import compare


def test_figures_as_mteb_reads_them(tmp_path):
    documents = {f"d{n}": ("de", None, f"text {n}") for n in range(5)}
    queries = {f"q-{n}": ("de", None, None, f"Frage {n}?") for n in range(4)}
    qrels = {"q-0": {"d0": 2, "d1": 0}, "q-1": {"d1": 1}, "q-2": {"d3": 3}, "q-3": {"d4": 1}}
    judged = write_dataset(tmp_path / "judged", documents, queries, qrels)
    run = write_run(tmp_path / "run.trec", {"q-0": ["d1", "d0"], "q-3": ["d4"]})
    done = CliRunner().invoke(compare, [str(run), "--dataset", str(judged), "--mteb", str(tmp_path / "m.json")])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "m.json").read_text())
    assert (found["task_name"], found["mteb_version"]) == ("judged", None)
    (subset,) = found["scores"]["test"]
    assert (subset["hf_subset"], subset["languages"]) == ("de", ["deu-Latn"])
    assert subset["main_score"] == subset["ndcg_at_10"] == pytest.approx((1 / 1.5849625 + 1) / 4)
    assert subset["recall_at_1"] == pytest.approx(1 / 4)
    assert subset["mrr_at_10"] == pytest.approx(1.5 / 4)
