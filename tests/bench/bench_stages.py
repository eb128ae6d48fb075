"""What each stage of indexing costs, without and with the shift, in turn.

Run with ``make bench``. Machines differ and are shared: look at the shares and ratios, not the seconds.
"""

import statistics

from langshift.evaluate.demo import FOLDER
from langshift.ingest.detect import open_detector
from langshift.ingest.encoders import open_encoder
from langshift.ingest.load import load
from langshift.ingest.making import choose
from langshift.ingest.summary import STAGES
from langshift.plugin.versions import drop

REPETITIONS = 5
_SPREAD = (statistics.median, min, max)


def test_share_of_each_stage(client, index_name):
    encoder, detector = open_encoder("use-m"), open_detector()
    seconds = {alpha: {stage: [] for stage in STAGES} for alpha in (0.0, 1.0)}
    for _ in range(REPETITIONS):
        for alpha, stages in seconds.items():
            summary = load(client, str(FOLDER / "corpus.jsonl"), index_name, choose(encoder, detector, None, alpha))
            drop(client, index_name)
            for stage in STAGES:
                stages[stage].append(summary.seconds[stage])
    for alpha, stages in seconds.items():
        whole = sum(statistics.median(times) for times in stages.values())
        print(f"\nalpha {alpha:g}, {summary.documents} documents, {REPETITIONS} repetitions in turn")
        print(f"{'stage':8} {'share':>6} {'median ms':>10} {'least':>8} {'most':>8}")
        for stage, times in stages.items():
            share, middle, least, most = statistics.median(times) / whole, *(f(times) for f in _SPREAD)
            print(f"{stage:8} {share:6.1%} {middle * 1000:10.1f} {least * 1000:8.1f} {most * 1000:8.1f}")
