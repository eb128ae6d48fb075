"""The same file with its journal on this machine, in parts in a folder, and by a worker: processor time and memory.

Run with ``make bench-bulk``. The three are loaded in turn, as is a file of a few lines, which tells what the start
takes; LANGSHIFT_LINES gives another number of documents. The worker is in the client's process, without Ray. A second
test loads LANGSHIFT_MANY documents by it, and ten times as many.
"""

import json
import os
import shutil
import sys
from statistics import median

import worker_here
from command_line import LANGSHIFT
from large_corpus import write_given
from measured_process import measured

from langshift.plugin.inventory import drop_all

DOCUMENTS, DIMENSION, REPETITIONS = int(os.environ.get("LANGSHIFT_LINES", "20000")), 64, 5
MANY, SMALL = int(os.environ.get("LANGSHIFT_MANY", "100000")), 8
WORKER = [sys.executable, worker_here.__file__]


def shown(values, form):
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def test_a_load_with_its_state_in_a_folder(client, cluster_env, index_name, tmp_path):
    state, few = tmp_path / "state", 40
    corpora = {count: tmp_path / f"corpus-{count}.jsonl" for count in (few, DOCUMENTS)}
    for count, corpus in corpora.items():
        write_given(corpus, count, DIMENSION)
    own, kept = [LANGSHIFT], ["--state", state]
    ways = {
        "plain": (own, []),
        "state": (own, kept),
        "worker": (WORKER, [*kept, "--runner", "ray"]),
    }
    seconds = {(kind, count): [] for kind in ways for count in corpora}
    memory = {kind: [] for kind in ways}
    for turn in range(REPETITIONS):
        for kind in list(ways)[:: 1 if turn % 2 else -1]:
            program, more = ways[kind]
            for count, corpus in corpora.items():
                load = ["ingest", corpus, "--index", index_name, "--encoder", "given", "--alpha", "0", "--json", *more]
                said, figures = measured(*program, *load, OPENSEARCH_URL=cluster_env)
                assert json.loads(said)["present"] == count
                seconds[kind, count].append(figures["cpu"])
                drop_all(client, index_name)
                shutil.rmtree(state, ignore_errors=True)
            memory[kind].append(figures["megabytes"])
    print(f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions, {REPETITIONS} times in turn; the client's processes")
    lines = {}
    for kind in ways:
        start, whole = seconds[kind, few], seconds[kind, DOCUMENTS]
        lines[kind] = [(one - other) / (DOCUMENTS - few) * 1e6 for one, other in zip(whole, start, strict=True)]
        print(
            f"{kind:6} CPU {shown(whole, '.2f')} s, of which the start {shown(start, '.2f')}, each line "
            f"{shown(lines[kind], '.0f')} us; peak memory {shown(memory[kind], ',.0f')} MB"
        )
    for kind, other in (("state", "plain"), ("worker", "state"), ("worker", "plain")):
        ratios = [mine / theirs for mine, theirs in zip(lines[kind], lines[other], strict=True)]
        print(f"CPU a line, {kind} beside {other}: {shown(ratios, '.2f')}")


def test_the_memory_of_driver_and_worker(client, cluster_env, index_name, tmp_path):
    held = {}
    for count in (MANY, 10 * MANY):
        write_given(corpus := tmp_path / "corpus.jsonl", count, SMALL)
        state = tmp_path / f"state-{count}"
        load = ["ingest", corpus, "--index", index_name, "--encoder", "given", "--alpha", "0", "--json"]
        said, figures = measured(*WORKER, *load, "--runner", "ray", "--state", state, OPENSEARCH_URL=cluster_env)
        assert json.loads(said)["present"] == count
        held[count] = figures["megabytes"]
        print(f"{count:,} documents of {SMALL} dimensions: driver and worker hold {held[count]:,.0f} MB at most")
        drop_all(client, index_name)
    print(f"ratio {held[10 * MANY] / held[MANY]:.2f}, goal at most 1.2")
