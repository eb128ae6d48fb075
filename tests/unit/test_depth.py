"""How many hits of each query are taken, and measures that look further than a run goes."""

from __future__ import annotations

import json

import pytest
from offline_data import refusal, run, small_dataset

from langshift.errors import UsageError
from langshift.evaluate.runs import read_run, require_room, too_shallow


def test_a_run_goes_as_deep_as_it_should(tmp_path):
    data = small_dataset(tmp_path / "data")
    places = {}
    for depth in (1, 3):
        places[depth] = tmp_path / f"best-{depth}"
        options = ["--measures", "AP R@3", "--depth", depth, "--output", places[depth], "--cache", tmp_path / "cache"]
        said = run("offline", data, "--method", "none", *options)
        assert said.exit_code == 0, said.output
        result = json.loads((places[depth] / "result.json").read_text())
        assert result["top_k"] == depth
        assert {len(hits) for hits in read_run(places[depth] / "run.trec").values()} == {depth}
        shallow = "R@3 looks at more than the 1 hit of each query that were taken: evaluate with a higher --depth."
        assert (f"Warning: {shallow}\n" in said.stderr) is (depth == 1)
    said = run("compare", *places.values(), "--measures", "AP R@3", "--json")
    warnings = json.loads(said.stdout)["warnings"]
    assert f"a (best-1): {shallow}" not in warnings  # R@3 is TLR@3 and SLR@3, too
    assert any(one.startswith("a (best-1): R@3, SLR@3 and TLR@3 look at more than the 1 hit") for one in warnings)
    assert not any(one.startswith("b (best-3): ") for one in warnings)
    assert (
        "AP of these runs cannot be compared, because it depends on how many hits of each query were taken: 1 hit in "
        "a (best-1) and 3 hits in b (best-3). Give all runs the same --depth." in warnings
    )
    board = json.loads(run("board", *places.values(), "--measure", "R@3", "--json").stdout)
    assert f"{places[1]}: {shallow}" in board["remarks"]
    (remark,) = json.loads(run("board", *places.values(), "--measure", "AP", "--json").stdout)["remarks"]
    assert remark.endswith(
        f"were taken: 1 hit in {places[1]} and 3 hits in {places[3]}. Give all runs the same --depth."
    )


def test_no_measure_looks_at_more_documents_than_there_are():
    assert too_shallow(["R@200", "nDCG@20", "AP", "LPR"], 100, 1_000) == [
        "R@200 looks at more than the 100 hits of each query that were taken: evaluate with a higher --depth."
    ]
    assert too_shallow(["R@200", "nDCG@150"], 100, 100) == []
    assert too_shallow(["R@200", "nDCG@150"], 200, 1_000) == []


def test_what_does_not_fit_into_memory(tmp_path):
    require_room(20_000, 1_000)
    require_room(10**9, 100)
    with pytest.raises(UsageError) as refused:
        require_room(50_000, 1_000)
    assert str(refused.value) == (
        "The 1,000 best hits of 50,000 searches do not fit into memory: lower --depth to 400 or less, split the "
        "queries, or give fewer settings at a time."
    )
    said = run("offline", tmp_path, "--depth", 1001)
    assert said.exit_code == 2
    assert "1001 is not in the range 1<=x<=1000." in said.output
    assert refusal("offline", tmp_path / "none", "--depth", 1000)
