"""With text to encode: how much longer the whole takes than the slower of encoding alone and writing alone.

Run with ``make bench``. The client is held to one core and the server to another, so that neither takes the
other's time; the whole and its parts are measured in turn.
"""

import json
import os
import statistics
import time

import psutil
import pytest

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.demo import FOLDER
from langshift.ingest.bulk.delivery import open_bulk_writer
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.open_corpus import open_source
from langshift.ingest.resume import LoadOptions
from langshift.ingest.transform import ActionBuilder, encoded_batches, index_batches
from langshift.plugin import version_writer
from langshift.plugin.inventory import drop_all

DOCUMENTS, REPETITIONS = 3000, 5


def refuse(refused):
    raise AssertionError(refused)


@pytest.fixture
def server(cluster_url):
    """The embedded server's process; only that can be held to a core."""
    found = [
        p for p in psutil.process_iter() if any(c.laddr.port == int(cluster_url.rpartition(":")[2]) for c in ports(p))
    ]
    if not found or (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores and the embedded OpenSearch")
    return found[0]


def ports(process):
    try:
        return [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    except psutil.Error:
        return []


@pytest.fixture
def pinned(server):
    """The client on the first core, the server on the second."""
    ours, theirs = psutil.Process(), server.cpu_affinity()
    before = ours.cpu_affinity()
    hold(ours, [before[0]])
    hold(server, [before[1]])
    yield
    hold(ours, before)
    hold(server, theirs)


def hold(process, cores):
    """Threads that are there already, too."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, cores)
    process.cpu_affinity(cores)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    with path.open("w", encoding="utf-8") as file:
        for number in range(DOCUMENTS):
            document = json.loads(lines[number % len(lines)])
            file.write(json.dumps({**document, "_id": str(number)}, ensure_ascii=False) + "\n")
    return str(path)


def encode(corpus, making):
    """All that comes before writing, and nothing else."""
    builder, items = ActionBuilder(making, refuse, 1 << 40, lambda _: False), []
    with open_source(corpus) as source:
        index_batches(encoded_batches(iter(list(source.read(()))), builder), builder, items.extend)
    return items


def write(client, name, making, items):
    target = version_writer.open_for_writing(client, name, making.fingerprint())
    with open_bulk_writer(client, target, lambda _: None, 60) as (stream, _):
        for item in items:
            stream.send(item)
    version_writer.publish(client, target)


@pytest.mark.usefixtures("pinned")
def test_encoding_and_writing_overlap(client, index_name, corpus):
    making = build_pipeline(open_encoder("use-m"), open_detector(), None, None)
    times = {"encoding": [], "writing": [], "whole": []}
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        items = encode(corpus, making)
        times["encoding"].append(time.perf_counter() - began)
        began = time.perf_counter()
        write(client, index_name, making, items)
        times["writing"].append(time.perf_counter() - began)
        drop_all(client, index_name)
        began = time.perf_counter()
        load(client, corpus, index_name, making, options=LoadOptions())
        times["whole"].append(time.perf_counter() - began)
        drop_all(client, index_name)
    print(f"\n{DOCUMENTS:,} texts, client and server on a core each, {REPETITIONS} repetitions in turn")
    for name, seconds in times.items():
        print(f"{name:9} {statistics.median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    ratios = [whole / max(e, w) for e, w, whole in zip(*times.values(), strict=True)]
    print(f"whole / slower part: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
