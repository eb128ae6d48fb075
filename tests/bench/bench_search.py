"""What a search takes in each mode, beside plain dense on the same index: the client's time and the server's.

Run with ``make bench-search``. XQuAD in eight languages where it is there (LANGSHIFT_DATA), else the demo's corpus;
then 20,000 made-up documents. Every query is asked in all modes in turn, several times; a ratio is of the same query's
times. Encoding is no part of it. Machines differ and are shared: look at the ratios, not at the times.
"""

import os
from time import perf_counter

import numpy as np
import pytest
from given_data import run
from large_corpus import LargeCorpus

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.calibration.stored import store_calibration
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchSettings
from langshift.retrieval.steps import execute

QUESTIONS, WARM_UP, ROUNDS = 160, 16, 3
SIZES = (20, 100)
BETA = 0.02
PLAIN = "dense"
STILL = "anchored, strength 0"
# Way -> setting, and whether the legs are put together by the client.
WAYS = {
    PLAIN: (SearchSettings(), False),
    "dense, preference": (SearchSettings(preference=BETA), False),
    "dense, spread": (SearchSettings(preference=-BETA), False),
    "lexical": (SearchSettings("lexical"), False),
    "hybrid, plugin": (SearchSettings("hybrid"), False),
    "hybrid, client": (SearchSettings("hybrid"), True),
    "balanced": (SearchSettings("balanced"), False),
    "anchored": (SearchSettings("anchored"), False),
    STILL: (SearchSettings("anchored"), False),
    "one per group": (SearchSettings(one_per_group=True), False),
}
GOALS = {"dense, preference": 1.2, "anchored": 2.5, STILL: 1.03}
CLOCKS = {"wall": "client's", "took": "server's"}


def test_xquad(client, index_name, dataset):
    making = build_pipeline(open_encoder("use-m"), open_detector(), None, 1.0)
    load(client, str(dataset.folder / "corpus.jsonl"), index_name, making)
    searcher = opened(client, index_name)
    questions = ReplayPlan.of([searcher], dataset, ReplayOptions()).targets[0].questions
    step = max(1, len(questions) // QUESTIONS)
    compare(client, searcher, questions[::step][:QUESTIONS])


@pytest.mark.usefixtures("cluster_env")
def test_larger(client, index_name, tmp_path):
    corpus = LargeCorpus()
    corpus.write(tmp_path / "corpus.jsonl")
    done = run("ingest", tmp_path / "corpus.jsonl", "--index", index_name, "--encoder", "given", "--alpha", 0)
    assert done.exit_code == 0, (done.output, done.exception)
    compare(client, opened(client, index_name), corpus.questions(QUESTIONS))


def opened(client, name):
    """The index with one segment, as it is when nothing has been written to it for long."""
    client.indices.forcemerge(index=name, params={"max_num_segments": 1, "timeout": 600})
    client.indices.refresh(index=name)
    return Searcher(client, name)


def compare(client, searcher, questions):
    index = searcher.index
    # The one that is open goes on as it was opened, in an index without a calibration.
    store_calibration(client, index, {"spread": searcher.trust.spread, "strength": 0.0, "mode": "dense"})
    searchers = dict.fromkeys(WAYS, searcher) | {STILL: Searcher(client, index.name)}
    print(f"\n{index.documents:,} documents of {index.fingerprint.dimension} dimensions, {len(questions)} questions")
    for size in SIZES:
        before = os.getloadavg()[0]
        found = measured(client, searchers, questions, size)
        print(f"\nsize {size}, load of the machine {before:.1f} before and {os.getloadavg()[0]:.1f} after")
        show(found)


def measured(client, searchers, questions, size):
    """Clock -> way -> each question's milliseconds: the median of the rounds by the client, the mean by the server."""
    times = {clock: {way: np.empty((ROUNDS, len(questions))) for way in WAYS} for clock in CLOCKS}
    ways = list(WAYS)
    for question in questions[:WARM_UP]:
        for way in ways:
            ask(client, searchers[way], question, way, size)
    for number in range(ROUNDS):
        for place, question in enumerate(questions):
            # Who comes first goes round, so that none has always the same one before it.
            first = (place + number) % len(ways)
            for way in ways[first:] + ways[:first]:
                wall, took = ask(client, searchers[way], question, way, size)
                times["wall"][way][number, place], times["took"][way][number, place] = wall, took
    # The server tells whole milliseconds, of which a median would be none the finer.
    return {
        "wall": {way: np.median(found, axis=0) for way, found in times["wall"].items()},
        "took": {way: np.mean(found, axis=0) for way, found in times["took"].items()},
    }


def ask(client, searcher, question, way, size):
    setting, by_client = WAYS[way]
    began = perf_counter()
    exchange = searcher.plan(question, setting, size=size, source=False, legs=by_client)
    found = execute(client, searcher.index.index, exchange)
    return (perf_counter() - began) * 1000, found.took


def show(found):
    print(f"{'':20}" + "".join(f"{f'{whose} ms':>26}{'ratio to dense':>24}" for whose in CLOCKS.values()))
    for way in WAYS:
        cells = ""
        for clock in CLOCKS:
            ours, plain = found[clock][way], found[clock][PLAIN]
            # A search that takes no millisecond each time has no ratio.
            ratios = ours[plain > 0] / plain[plain > 0]
            cells += f"{quartiles(ours, '.2f'):>26}{quartiles(ratios, '.2f'):>24}"
        goal = f"   goal {GOALS[way]}" if way in GOALS else ""
        print(f"{way:20}{cells}{goal}")


def quartiles(figures, form):
    if not len(figures):
        return "-"
    low, middle, high = np.quantile(figures, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"
