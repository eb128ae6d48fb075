"""The same file with its journal on this machine, and in parts in a folder: processor time and memory of the client.

Run with ``make bench-bulk``. The two are loaded in turn; LANGSHIFT_LINES gives another number of documents.
"""

import json
import os
import shutil
from statistics import median

from command_line import LANGSHIFT
from large_corpus import write_given
from measured_process import measured

from langshift.plugin.inventory import drop_all

DOCUMENTS, DIMENSION, REPETITIONS = int(os.environ.get("LANGSHIFT_LINES", "20000")), 64, 5


def shown(values, form):
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def test_a_load_with_its_state_in_a_folder(client, cluster_env, index_name, tmp_path):
    corpus, state = tmp_path / "corpus.jsonl", tmp_path / "state"
    write_given(corpus, DOCUMENTS, DIMENSION)
    command = [LANGSHIFT, "ingest", corpus, "--index", index_name, "--encoder", "given", "--alpha", "0", "--json"]
    seconds, memory = {"plain": [], "state": []}, {"plain": [], "state": []}
    for turn in range(REPETITIONS):
        for kind in ("plain", "state") if turn % 2 else ("state", "plain"):
            more = ["--state", state] if kind == "state" else []
            said, figures = measured(*command, *more, OPENSEARCH_URL=cluster_env)
            assert json.loads(said)["present"] == DOCUMENTS
            seconds[kind].append(figures["cpu"])
            memory[kind].append(figures["megabytes"])
            drop_all(client, index_name)
            shutil.rmtree(state, ignore_errors=True)
    print(f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions, {REPETITIONS} times in turn; the client's processes")
    for kind in seconds:
        print(f"{kind:6} CPU {shown(seconds[kind], '.2f')} s, peak memory {shown(memory[kind], ',.0f')} MB")
    ratios = [one / other for one, other in zip(seconds["state"], seconds["plain"], strict=True)]
    print(f"CPU with the state beside plain: {shown(ratios, '.2f')}")
