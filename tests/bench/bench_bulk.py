"""What bulk indexing costs, beside the client library's helpers: time, processor time and memory of the client.

Run with ``make bench-bulk``. All candidates write the same vectors to indices of their own, in turn. ``written`` is
when the server has confirmed everything, langshift's journal included; ``searchable`` after a refresh too, and
langshift's final check. Machines differ and are shared: look at the ratios, not at the seconds.
"""

import json
import os
import statistics
import subprocess
import sys
import uuid
from pathlib import Path

import bulk_candidate
import numpy as np
import pytest

DOCUMENTS, DIMENSION = 20_000, 512
MANY = 200_000
REPETITIONS = 5
CHUNKS = (100, 250, 500, 1000, 2000)
TRIED_WITH = 6000
THREADS = os.cpu_count() or 1
COLUMNS = (
    ("written", "written, s", ".2f"),
    ("searchable", "searchable, s", ".2f"),
    ("cpu", "client CPU, s", ".2f"),
    ("megabytes", "client peak, MB", ".0f"),
)
WAYS = ["helpers.bulk", "helpers.parallel_bulk", "langshift"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("bulk") / "vectors.f32"
    made = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(MANY // 1000):
            made.standard_normal((1000, DIMENSION), np.float32).tofile(file)
    return path


@pytest.fixture
def measure(client, cluster_url, vectors):
    """A function that measures one candidate in a process of its own, on a new index, which is removed."""

    def run(way, kind, documents, chunk):
        name = f"langshift-test-{uuid.uuid4().hex[:8]}"
        bulk_candidate.make_index(client, name, kind, DIMENSION)
        given = [way, cluster_url, name, vectors, documents, DIMENSION, chunk, THREADS]
        try:
            done = subprocess.run(
                [sys.executable, Path(bulk_candidate.__file__), *map(str, given)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)
        finally:
            client.indices.delete(index=name)

    return run


def spread(runs, name, form):
    found = [run[name] for run in runs]
    return f"{statistics.median(found):{form}} ({min(found):{form}} to {max(found):{form}})"


@pytest.mark.parametrize("kind", list(bulk_candidate.BODY))
def test_beside_the_helpers(measure, kind):
    tried = {chunk: measure("helpers.parallel_bulk", kind, TRIED_WITH, chunk)["written"] for chunk in CHUNKS}
    chunk = min(tried, key=tried.__getitem__)
    runs = {way: [] for way in WAYS}
    for _ in range(REPETITIONS):
        for way in WAYS:
            runs[way].append(measure(way, kind, DOCUMENTS, 500 if way == "helpers.bulk" else chunk))
    print(f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions, {kind} field, {REPETITIONS} repetitions in turn")
    print(f"parallel_bulk with {THREADS} threads and its best chunk size, {chunk} (of {CHUNKS})")
    print(f"{'':22}" + "".join(f"{head:>22}" for _, head, _ in COLUMNS))
    for way, results in runs.items():
        print(f"{way:22}" + "".join(f"{spread(results, name, form):>22}" for name, _, form in COLUMNS))
    for name, words in (("written", "as fast as"), ("searchable", "as fast as"), ("cpu", "less processor time than")):
        for way in WAYS[:-1]:
            ratios = [theirs[name] / ours[name] for theirs, ours in zip(runs[way], runs["langshift"], strict=True)]
            middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
            print(f"{name:10} langshift: {middle:.2f} times {words} {way} ({least:.2f} to {most:.2f})")


def test_memory_does_not_grow(measure):
    peaks = {count: measure("langshift", "plain", count, 0)["megabytes"] for count in (DOCUMENTS, MANY)}
    for count, peak in peaks.items():
        print(f"\nlangshift, plain field, {count:,} documents: peak {peak:.0f} MB", end="")
    print(f"\nratio {peaks[MANY] / peaks[DOCUMENTS]:.3f}")
