"""A report on what a replay of a live index left behind, in one or another setting."""

from __future__ import annotations

import json

import pytest
from command_line import langshift
from offline_data import small_dataset


@pytest.mark.usefixtures("cluster_env")
def test_a_report_on_replays_and_a_sweep(tmp_path, index_name, cluster_url):
    data = small_dataset(tmp_path / "data")
    corpus = data / "corpus.jsonl"
    done = [
        langshift("ingest", corpus, "--index", index_name, url=cluster_url),
        langshift(
            *("evaluate", "modes", data, "--index", index_name, "--setting", "dense", "--setting", "lexical"),
            *("--output", tmp_path / "out"),
            url=cluster_url,
        ),
        langshift("evaluate", "sweep", data, "--alpha", "0,1", "--prefer-language", "0,.1", "--json"),
    ]
    assert [one.returncode for one in done] == [0, 0, 0], [one.stderr for one in done]
    sweep = tmp_path / "sweep.json"
    sweep.write_text(done[2].stdout)
    places = [tmp_path / "out" / name for name in ("dense", "lexical")]
    said = langshift("evaluate", "report", *places, sweep, "--output", tmp_path / "out", "--json")
    assert (said.returncode, said.stderr) == (
        0,
        "Warning: b (lexical) has no answer for 1 queries, which count as 0.\n",
    )
    document = json.loads(said.stdout)
    assert document["files"]["html"] == str(tmp_path / "out" / "report.html")
    assert [run["setting"]["mode"] for run in document["comparison"]["runs"]] == ["dense", "lexical"]
    told = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| setting " in told
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for key in ("alpha", "frontier", "latency", "run"):
        assert f'<h2 id="{key}">' in page
    assert f"{index_name}-v0001" in page
