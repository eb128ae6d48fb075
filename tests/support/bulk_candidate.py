"""One way to write vectors in bulk, in a process of its own, which tells its time and processor time.

``python bulk_candidate.py WAY URL INDEX VECTORS DOCUMENTS DIMENSION CHUNK THREADS``; VECTORS is a file of float32.
"""

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from opensearchpy import OpenSearch, helpers

from langshift.client import address, make_client
from langshift.ingest.bulk import journal_store
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.delivery import open_bulk_writer
from langshift.ingest.bulk.journal import Journal, Ledger
from langshift.ingest.bulk.writer import BulkAction, bulk_lines
from langshift.ingest.publication import check
from langshift.plugin.versions import Target
from langshift.settings import Settings

_BLOCK = 1000
BODY = {
    "plain": {"mappings": {"properties": {"embedding": {"type": "float"}}}},
    "HNSW": {
        "settings": {"index": {"knn": True}},
        "mappings": {
            "properties": {
                "embedding": {
                    "type": "knn_vector",
                    "dimension": 0,
                    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
                }
            }
        },
    },
}


def make_index(client, name, kind, dimension):
    """An index with nothing but a vector; as for any load, it is not refreshed meanwhile."""
    body = json.loads(json.dumps(BODY[kind]))
    body.setdefault("settings", {}).setdefault("index", {})["refresh_interval"] = "-1"
    if kind == "HNSW":
        body["mappings"]["properties"]["embedding"]["dimension"] = dimension
    client.indices.create(index=name, body=body)


def rows(path, documents, dimension):
    """The vectors one after the other, a block of them read at a time."""
    with Path(path).open("rb") as file:
        for first in range(0, documents, _BLOCK):
            count = min(_BLOCK, documents - first)
            yield from np.fromfile(file, np.float32, count * dimension).reshape(count, dimension)


def actions(index, vectors):
    for number, row in enumerate(vectors):
        yield {"_index": index, "_id": str(number), "_source": {"embedding": row.tolist()}}


def by_bulk(client, index, vectors, chunk):
    for ok, told in helpers.streaming_bulk(client, actions(index, vectors), chunk_size=chunk):
        assert ok, told


def by_parallel_bulk(client, index, vectors, chunk, threads):
    for ok, told in helpers.parallel_bulk(client, actions(index, vectors), chunk_size=chunk, thread_count=threads):
        assert ok, told


def by_langshift(client, index, vectors, documents, written):
    """The engine with all that makes it lose nothing: journal, versions, and, once all is written, final check."""
    client = make_client(replace(Settings.from_env(), timeout=120), address(client), retries=0)
    uuid = client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
    target = Target(index, index, uuid, True, None, "fail")
    base, likely = 1 << 40, journal_store.priority_cutoff(documents)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.sqlite") as journal:
        journal.begin({"corpus": "rows"}, {})
        letters = DeadLetters(Path(folder) / "dead-letters.jsonl")
        ledger = Ledger(journal, letters, lambda line: ("rows", line), base, lambda *_: None)
        with open_bulk_writer(client, target, ledger.settle, 60) as (stream, _):
            for line, row in enumerate(vectors, start=1):
                name = str(line - 1)
                lines = bulk_lines("index", name, base + line, {"embedding": row})
                vector = (
                    row.tobytes() if journal_store.sample_priority(line) <= likely and journal.wants(line) else None
                )
                stream.send(BulkAction(line, name, "index", lines, lines, vector))
        written()
        checked = check(client, target, lambda: [journal], base)
        assert not checked.missing
        assert not checked.differing


def main(way, url, index, vectors, documents, dimension, chunk, threads):
    documents, chunk = int(documents), int(chunk)
    ways = {
        "helpers.bulk": lambda: by_bulk(client, index, some, chunk),
        "helpers.parallel_bulk": lambda: by_parallel_bulk(client, index, some, chunk, int(threads)),
        "langshift": lambda: by_langshift(client, index, some, documents, lambda: times.append(time.perf_counter())),
    }
    client = OpenSearch(hosts=[url], pool_maxsize=16, timeout=120, max_retries=0)
    some = rows(vectors, documents, int(dimension))
    times, cpu = [time.perf_counter()], time.process_time()
    ways[way]()
    if len(times) == 1:
        times.append(time.perf_counter())
    client.indices.refresh(index=index)
    began, written, searchable = *times, time.perf_counter()
    cpu = time.process_time() - cpu
    assert client.count(index=index)["count"] == documents
    print(json.dumps({"written": written - began, "searchable": searchable - began, "cpu": cpu}))


if __name__ == "__main__":
    main(*sys.argv[1:])
