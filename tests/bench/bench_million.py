"""A million documents with given vectors through the command: speed, and the client's memory as it goes.

Run with ``make bench-bulk``. The curve shows what the process holds after each tenth of the documents.
"""

import json
import os
import subprocess
import time

import psutil
from command_line import LANGSHIFT
from large_corpus import write_given

DOCUMENTS, DIMENSION = 1_000_000, 64
LOOK_EVERY = 0.5  # seconds


def written(client, name):
    stats = client.indices.stats(index=f"{name}-v*", metric="indexing")
    return int(stats["_all"]["primaries"].get("indexing", {}).get("index_total", 0))


def test_a_million_documents(client, cluster_env, index_name, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    write_given(corpus, DOCUMENTS, DIMENSION)
    command = [LANGSHIFT, "ingest", corpus, "--index", index_name, "--encoder", "given", "--alpha", "0", "--json"]
    env = {**os.environ, "LANGSHIFT_HOME": str(tmp_path / "home"), "OPENSEARCH_URL": cluster_env}
    began = time.perf_counter()
    load = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process, curve, peak = psutil.Process(load.pid), [], 0
    while load.poll() is None:
        try:
            held = process.memory_info().rss / 1e6
            cpu = sum(process.cpu_times()[:2])
        except psutil.Error:
            break
        peak = max(peak, held)
        if written(client, index_name) >= len(curve) * DOCUMENTS // 10:
            curve.append((written(client, index_name), time.perf_counter() - began, held))
        time.sleep(LOOK_EVERY)
    out, err = load.communicate()
    seconds = time.perf_counter() - began
    assert load.returncode == 0, err
    assert json.loads(out)["present"] == DOCUMENTS
    size = corpus.stat().st_size / 1e6
    print(
        f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions, {size:,.0f} MB of JSONL, HNSW, journal and final check"
    )
    print(
        f"{seconds:.0f} s, {DOCUMENTS / seconds:,.0f} documents/s, {cpu:.0f} s of the client's CPU, peak {peak:.0f} MB"
    )
    print(f"{'documents':>10} {'seconds':>8} {'client MB':>10}")
    for documents, at, held in curve:
        print(f"{documents:10,} {at:8.0f} {held:10.0f}")
