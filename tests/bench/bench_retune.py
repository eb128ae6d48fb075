"""Retuning beside a plain ``_reindex`` of the same index: the same documents, mapping and settings, and no script.

Run with ``make bench``. Both copy the same version in turn, the one that begins changes every round; both are done
when everything can be searched, and a retune's catching up, checking and swapping are in its time. The graphs of the
vectors take most of either. Machines differ and are shared: look at the ratios, not at the seconds, and where others
are at work on the machine at those of the server's processor time.
"""

import statistics
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from given_data import run
from shifted_index import language_vectors, saved

from langshift.plugin.index_body import copied_body
from langshift.plugin.retune import RetuneRequest, retune, roll_back
from langshift.plugin.versions import live

DOCUMENTS, DIMENSION, ROUNDS = 100_000, 512, 3
GOAL = 1.25
LANGUAGES = ("en", "de", "th", "zh-TW")
BATCH, WORDS = 5000, 60
LONGEST = 3600  # seconds
POLL = 0.1  # seconds


@pytest.fixture
def corpus(tmp_path):
    """A Parquet file of texts and vectors."""
    numbers = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5000)])
    path = tmp_path / "corpus.parquet"
    kinds = [
        ("_id", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("embedding", pa.list_(pa.float32())),
    ]
    schema = pa.schema(kinds)
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, DOCUMENTS, BATCH):
            ids = range(first, min(first + BATCH, DOCUMENTS))
            rows = {
                "_id": [str(number) for number in ids],
                "text": [" ".join(some) for some in numbers.choice(words, (len(ids), WORDS))],
                "language": [LANGUAGES[number % len(LANGUAGES)] for number in ids],
                "embedding": list(numbers.standard_normal((len(ids), DIMENSION), np.float32)),
            }
            writer.write_table(pa.table(rows, schema))
    return path


@pytest.fixture
def name(client, index_name, corpus, tmp_path):
    """An index of the corpus, at rest."""
    vectors = saved(tmp_path, language_vectors(dimension=DIMENSION))
    done = run("ingest", corpus, "--index", index_name, "--encoder", "given", "--vectors", vectors, "--alpha", 0.5)
    assert done.exit_code == 0, (done.output, done.exception)
    client.indices.flush(index=index_name, params={"timeout": LONGEST})
    return index_name


def plain(client, name, index, processor):
    """Seconds and processor time of a plain ``_reindex``; as in a retune, nothing is refreshed meanwhile."""
    body = copied_body(client, live(client, name).index)
    body["settings"]["index"]["refresh_interval"] = "-1"
    began, before = time.perf_counter(), processor()
    client.indices.create(index=index, body=body)
    # As a task: the answer to one that is waited for has a header for every batch, more than Python takes.
    task = client.reindex(
        body={"source": {"index": name}, "dest": {"index": index}},
        params={"wait_for_completion": "false", "refresh": "true"},
    )["task"]
    while not (found := client.tasks.get(task_id=task))["completed"]:
        time.sleep(POLL)
    told = found["response"]
    taken = time.perf_counter() - began, processor() - before
    assert (told["created"], told["failures"]) == (DOCUMENTS, [])
    client.indices.delete(index=index)
    return taken


def retuned(client, name, processor):
    """Seconds of a retune, its processor time and its write block; and of the way back, which leaves all as it was."""
    began, before = time.perf_counter(), processor()
    done = retune(client, name, RetuneRequest(alpha=0.75))
    taken = time.perf_counter() - began, processor() - before
    assert done.documents == DOCUMENTS
    began = time.perf_counter()
    back = roll_back(client, name)
    back_seconds = time.perf_counter() - began
    client.indices.delete(index=done.index)
    return *taken, done.blocked, back_seconds, back.blocked


@pytest.mark.usefixtures("cluster_env")
def test_a_retune_takes_little_longer_than_a_plain_reindex(client, index_name, name, processor):
    copied, moved = ("reindex", "reindex, CPU"), ("retune", "retune, CPU", "blocked", "rollback", "back, blocked")
    times = {kind: [] for kind in (*copied, *moved)}
    print()
    for number in range(ROUNDS):
        for turn in range(2):
            if (number + turn) % 2:
                kinds, found = moved, retuned(client, name, processor)
            else:
                kinds, found = copied, plain(client, name, f"{index_name}-plain", processor)
            for kind, seconds in zip(kinds, found, strict=True):
                times[kind].append(seconds)
            # A run takes long on a small machine: what is measured is not lost with it.
            print(", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in zip(kinds, found, strict=True)), flush=True)
    print(f"{DOCUMENTS:,} documents of {DIMENSION} dimensions with HNSW, {ROUNDS} rounds in turn")
    for kind, seconds in times.items():
        print(f"{kind:13} {statistics.median(seconds):7.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    for kind in ("", ", CPU"):
        pairs = zip(times[f"retune{kind}"], times[f"reindex{kind}"], strict=True)
        ratios = [one / other for one, other in pairs if other]
        if ratios:
            told = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            print(f"retune / reindex{kind}: {told}{'' if kind else f', goal at most {GOAL}'}")
