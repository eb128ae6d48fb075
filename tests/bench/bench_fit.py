"""A million given pairs: how long fitting them takes beside bare reading, and how much memory.

Run with ``make bench``. Machines differ and are shared: look at the ratio, not at the seconds.
"""

import json
import statistics
import sys

import pytest
from made_pairs import write_pairs
from measured_process import measured

ROWS, DIMENSION = 1_000_000, 384
REPETITIONS = 5
_MOST_MEMORY = 300  # MB

# Read in the batches in which a fit reads; each in a process of its own.
_START = """
import json, sys, time
from pathlib import Path
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.precomputed import vector_spec_of
from langshift.debias.fitting.fit import fit
from langshift.debias.fitting.sums import BatchEncoder
from langshift.debias.parallel import open_parallel
began = time.perf_counter()
source = open_parallel(Path(sys.argv[1]))
encoder = open_encoder("given", vector_spec=vector_spec_of(source))
"""
_READ = "rows = sum(len(batch.places) for batch in source.batches(BatchEncoder(source, encoder).batch))\n"
_FIT = "rows = fit(source, ['en'], encoder)['en'].pairs['de']\n"
_END = """
seconds = time.perf_counter() - began
print(json.dumps({"rows": rows, "seconds": seconds}))
"""


def measure(work, path):
    printed, process = measured(sys.executable, "-c", _START + work + _END, path)
    return {**json.loads(printed), "megabytes": process["megabytes"]}


@pytest.mark.parametrize("name", ["pairs", "pairs.parquet"])
def test_a_million_pairs_are_fitted_about_as_fast_as_they_are_read(tmp_path, name):
    path = tmp_path / name
    write_pairs(path, ROWS, DIMENSION)
    works = {"reading": _READ, "fitting": _FIT}
    runs = {work: [] for work in works}
    for _ in range(REPETITIONS):
        for work, code in works.items():
            runs[work].append(measure(code, path))
    print(f"\n{ROWS:,} pairs of {DIMENSION} dimensions in {name}, {REPETITIONS} repetitions in turn")
    print(f"{'':8} {'median s':>9} {'least':>7} {'most':>7} {'peak MB':>8}")
    for work, results in runs.items():
        seconds = [one["seconds"] for one in results]
        peak = max(one["megabytes"] for one in results)
        print(f"{work:8} {statistics.median(seconds):9.2f} {min(seconds):7.2f} {max(seconds):7.2f} {peak:8.0f}")
    medians = {work: statistics.median(one["seconds"] for one in results) for work, results in runs.items()}
    print(f"fitting takes {medians['fitting'] / medians['reading']:.2f} times as long as reading")
    assert {one["rows"] for results in runs.values() for one in results} == {ROWS}
    assert max(one["megabytes"] for one in runs["fitting"]) < _MOST_MEMORY
