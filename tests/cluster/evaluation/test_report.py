"""A report on what replays of a live index left behind, in one and another setting."""

from __future__ import annotations

import json

import pytest
from command_line import langshift
from offline_data import small_dataset


@pytest.mark.usefixtures("cluster_env")
def test_a_report_on_replays_in_two_settings(tmp_path, index_name, cluster_url):
    data = small_dataset(tmp_path / "data")
    corpus = data / "corpus.jsonl"
    done = [
        langshift("ingest", corpus, "--index", index_name, url=cluster_url),
        langshift(
            *("evaluate", "replay", data, "--index", index_name, "--setting", "dense", "--setting", "lexical"),
            *("--output", tmp_path / "out", "--measures", "nDCG@20 LPR"),
            url=cluster_url,
        ),
    ]
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    places = [tmp_path / "out" / name for name in ("dense", "lexical")]
    said = langshift("evaluate", "compare", *places, "--report", tmp_path / "out", "--json")
    assert (said.returncode, said.stderr.splitlines()) == (
        0,
        [
            "Warning: b (lexical) has no answer for 1 queries, which count as 0.",
            f"Wrote the report {tmp_path / 'out' / 'report.html'}, and its figures to "
            f"{tmp_path / 'out' / 'report.csv'}.",
        ],
    )
    document = json.loads(said.stdout)
    assert [run["setting"]["mode"] for run in document["runs"]] == ["dense", "lexical"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for key in ("frontier", "latency", "run"):
        assert f'<h2 id="{key}">' in page
    assert f"{index_name}-v0001" in page
