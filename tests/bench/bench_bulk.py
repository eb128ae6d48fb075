"""What bulk indexing costs, beside the client library's helpers: time, processor time and memory of the client.

Run with ``make bench-bulk``; ``pytest -k whole`` is the whole command alone. All candidates write the same vectors to
indices of their own, in turn. Machines differ and are shared: look at the ratios, not at the seconds.

Of the sending alone, from arrays in memory, ``written`` is when the server has confirmed everything, langshift's
journal included; ``searchable`` after a refresh too, and langshift's final check. The whole command is what a user
runs: a process that begins with a file and ends when its documents can be searched, beside a script that only sends.
"""

import json
import os
import statistics
import sys
import uuid
from itertools import cycle

import bulk_candidate
import numpy as np
import orjson
import plain_bulk
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import LANGSHIFT
from measured_process import measured

from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.demo import FOLDER

DOCUMENTS, DIMENSION = 20_000, 512
MANY = 200_000
REPETITIONS, WHOLE_REPETITIONS = 5, 3
CHUNKS = (100, 250, 500, 1000, 2000)
TRIED_WITH = 6000
THREADS = os.cpu_count() or 1
CLIENT = (("cpu", "client CPU, s", ".2f"), ("megabytes", "client peak, MB", ".0f"))
COLUMNS = (("written", "written, s", ".2f"), ("searchable", "searchable, s", ".2f"), *CLIENT)
WAYS = ["helpers.bulk", "helpers.parallel_bulk", "langshift"]
WHOLE = (("wall", "whole, s", ".2f"), ("server", "server CPU, s", ".2f"), *CLIENT)
FORMATS = {"jsonl": "JSONL", "parquet": "Parquet"}
MAPPED = {"_id": "id", "text": "body", "language": "locale"}
MAPPING = ("--id-field", "id", "--text-field", "body", "--language-field", "locale")
COMPARED = {
    "written": "as fast as",
    "searchable": "as fast as",
    "wall": "as fast as",
    "server": "less of the server's processor time than",
    "cpu": "less processor time than",
    "megabytes": "less memory than",
}


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
            printed, process = measured(sys.executable, bulk_candidate.__file__, *given)
            return {**json.loads(printed), "megabytes": process["megabytes"]}
        finally:
            client.indices.delete(index=name)

    return run


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """German passages with given vectors as JSON Lines and as Parquet: of so many documents, in this format."""
    folder = tmp_path_factory.mktemp("corpora")
    demo = map(orjson.loads, (FOLDER / "corpus.jsonl").read_bytes().splitlines())
    texts = cycle([one["text"] for one in demo if one["_id"].endswith("-de")])
    made, paths = np.random.default_rng(0), {}
    for count in (TRIED_WITH, DOCUMENTS):
        rows = [
            {"_id": f"d{number}", "text": text, "language": "de", "embedding": vector}
            for number, text, vector in zip(
                range(count), texts, made.standard_normal((count, DIMENSION), np.float32), strict=False
            )
        ]
        for form in FORMATS:
            paths[count, form] = folder / f"{count}.{form}"
        with paths[count, "jsonl"].open("wb") as file:
            for row in rows:
                file.write(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
        pq.write_table(pa.Table.from_pylist(rows), paths[count, "parquet"])
        paths[count, "mapped"] = folder / f"{count}-mapped.jsonl"
        with paths[count, "mapped"].open("wb") as file:
            for row in rows:
                named = {MAPPED.get(name, name): value for name, value in row.items()}
                file.write(orjson.dumps(named, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
    return paths


@pytest.fixture
def measure_whole(client, cluster_url, corpora, processor, tmp_path):
    """A function that measures a whole process, from a file to what can be searched; its index is removed."""
    shift = np.random.default_rng(1).standard_normal(DIMENSION, np.float32)
    vectors = tmp_path / "vectors.safetensors"
    LanguageVectors("en", {"de": shift}, {"de": 1}, "given", "", "", DIMENSION, False, "made up").save(vectors)

    def run(way, form, documents, chunk):
        name, corpus = f"langshift-test-{uuid.uuid4().hex[:8]}", corpora[documents, form]
        own = (LANGSHIFT, "ingest", corpus, "--encoder", "given", "--vectors", vectors)
        command = {
            "langshift": (*own, "--index", name),
            "langshift, fields named": (*own, "--index", name, *MAPPING),
            "plain script": (sys.executable, plain_bulk.__file__, corpus, cluster_url, name, chunk, THREADS),
        }
        used = processor()
        try:
            _, figures = measured(*command[way], OPENSEARCH_URL=cluster_url, LANGSHIFT_HOME=tmp_path / name)
            assert client.count(index=name)["count"] == documents
            return {**figures, "server": processor() - used}
        finally:
            client.indices.delete(index=f"{name}*")

    return run


def best_chunk(sizes, measure_one):
    """Of several sizes of chunks the one that takes a helper of the client library least time, and how to print it."""
    tried = {size: measure_one(size) for size in sizes}
    best = min(tried, key=tried.__getitem__)
    return best, f"parallel_bulk with {THREADS} threads and its best chunk size, {best} (of {sizes})"


def show(columns, runs):
    """Print a row of medians and spreads for each candidate."""
    rows = [["", *(head for _, head, _ in columns)]]
    for way, results in runs.items():
        rows.append([way, *(spread([run[name] for run in results], form) for name, _, form in columns)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        print("  ".join([first.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip())


def compare(names, runs, ours, theirs):
    """Print how many times less one candidate took than another, round by round, of what could be measured."""
    for name in filter(runs[ours][0].__getitem__, names):
        ratios = [their[name] / our[name] for their, our in zip(runs[theirs], runs[ours], strict=True)]
        print(f"{name:10} {ours}: {spread(ratios, '.2f', ' times ' + COMPARED[name] + ' ' + theirs)}")


def spread(figures, form, words=""):
    return f"{statistics.median(figures):{form}}{words} ({min(figures):{form}} to {max(figures):{form}})"


@pytest.mark.parametrize("kind", list(bulk_candidate.BODY))
def test_sending_beside_the_helpers(measure, kind):
    chunk, words = best_chunk(CHUNKS, lambda size: measure("helpers.parallel_bulk", kind, TRIED_WITH, size)["written"])
    runs = {way: [] for way in WAYS}
    for _ in range(REPETITIONS):
        for way in WAYS:
            runs[way].append(measure(way, kind, DOCUMENTS, 500 if way == "helpers.bulk" else chunk))
    print(f"\nsending alone: {DOCUMENTS:,} documents of {DIMENSION} dimensions from arrays, {kind} field, ", end="")
    print(f"{REPETITIONS} repetitions in turn\n{words}")
    show(COLUMNS, runs)
    for way in WAYS[:-1]:
        compare(("written", "searchable", "cpu"), runs, "langshift", way)


def test_whole_command_beside_a_plain_script(measure_whole):
    chunk, words = best_chunk(
        CHUNKS[1:4], lambda size: measure_whole("plain script", "jsonl", TRIED_WITH, size)["wall"]
    )
    runs = {f"{way}, {form}": [] for form in FORMATS.values() for way in ("plain script", "langshift")}
    for _ in range(WHOLE_REPETITIONS):
        for form, shown in FORMATS.items():
            for way in ("plain script", "langshift"):
                runs[f"{way}, {shown}"].append(measure_whole(way, form, DOCUMENTS, chunk))
    print(f"\nwhole processes: {DOCUMENTS:,} documents of {DIMENSION} dimensions from a file, HNSW field, ", end="")
    print(f"{WHOLE_REPETITIONS} repetitions in turn\n{words}")
    show(WHOLE, runs)
    for shown in FORMATS.values():
        compare(("wall", "server", "cpu", "megabytes"), runs, f"langshift, {shown}", f"plain script, {shown}")


def test_whole_command_with_fields_of_other_names(measure_whole):
    forms = {"langshift": "jsonl", "langshift, fields named": "mapped"}
    runs = {way: [] for way in forms}
    for _ in range(REPETITIONS):
        for way, form in forms.items():
            runs[way].append(measure_whole(way, form, DOCUMENTS, 0))
    print(f"\n{DOCUMENTS:,} documents of {DIMENSION} dimensions from JSONL, the usual fields and other names, ", end="")
    print(f"{REPETITIONS} repetitions in turn")
    show(WHOLE, runs)
    compare(("wall", "cpu"), runs, "langshift, fields named", "langshift")


def test_memory_does_not_grow(measure):
    peaks = {count: measure("langshift", "plain", count, 0)["megabytes"] for count in (DOCUMENTS, MANY)}
    for count, peak in peaks.items():
        print(f"\nlangshift, plain field, {count:,} documents: peak {peak:.0f} MB", end="")
    print(f"\nratio {peaks[MANY] / peaks[DOCUMENTS]:.3f}")
