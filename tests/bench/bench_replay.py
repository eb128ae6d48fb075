"""What replay itself costs, what the shift costs in time, and what approximate search loses.

Run with ``make bench``. XQuAD in eight languages where it is there (LANGSHIFT_DATA), else the demo's corpus.
Machines differ and are shared: look at the ratios, which are of rounds taken in turn, not at the times.
"""

import statistics
from dataclasses import replace
from itertools import count
from threading import Lock, Thread
from time import perf_counter, process_time

import numpy as np

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.replay.journal import begin
from langshift.evaluate.replay.load_generator import percentiles, send
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import fetch_group_scores, replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.searcher import Searcher

ROUNDS = 7
DEPTHS = (20, 100)


def test_replay(client, index_name, dataset, tmp_path):
    searchers = []
    for kind, alpha in (("plain", 0.0), ("shifted", 1.0)):
        name = f"{index_name}-{kind}"
        load(
            client,
            str(dataset.folder / "corpus.jsonl"),
            name,
            build_pipeline(open_encoder("use-m"), open_detector(), None, alpha),
        )
        client.indices.forcemerge(index=f"{name}-v0001", max_num_segments=1)
        searchers.append(Searcher(client, name))
    print(f"\n{len(dataset.queries):,} questions, {len(dataset.documents):,} documents, {ROUNDS} rounds in turn")
    _throughput(client, searchers[0], dataset, tmp_path)
    _shifted(client, searchers, dataset)
    _recall(client, searchers, dataset)


def _throughput(client, searcher, dataset, folder):
    """Answers a second of replay, with its journal, beside a loop that sends the same bytes and forgets the answers."""
    for concurrency in (1, 4):
        plan = ReplayOptions(load=LoadProfile(concurrency=concurrency, warm_up=0))
        requests = ReplayPlan.of([searcher], dataset, plan).requests
        numbers = count()

        def ours(plan=plan, requests=requests, numbers=numbers):
            with begin(folder / f"journal-{plan.load.concurrency}-{next(numbers)}", {}, "") as journal:
                (_,), (sending,) = send([client], requests, 1, plan.load, [journal])
            assert sending.answered == len(requests)
            return sending.throughput

        def bare(concurrency=concurrency, requests=requests):
            return _bare(client, requests, concurrency)

        found, spent = _in_turn({"bare loop": bare, "replay": ours}, len(requests))
        print(f"\n{concurrency} at once: answers a second")
        _show(found, "{:10.1f}")
        _show_ratio(found["replay"], found["bare loop"])
        print(f"{concurrency} at once: the client's own CPU, ms a query")
        _show(spent, "{:10.3f}")
        _show_ratio(spent["replay"], spent["bare loop"])


def _bare(client, requests, concurrency):
    waiting, lock = iter(requests), Lock()

    def work():
        while True:
            with lock:
                request = next(waiting, None)
            if request is None:
                return
            client.search(index=request.target, body=request.first)

    threads = [Thread(target=work) for _ in range(concurrency)]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(requests) / (perf_counter() - start)


def _shifted(client, searchers, dataset):
    """Median time of a query on either index, query by query in turn."""
    plan = ReplayOptions(load=LoadProfile(warm_up=20))
    asked = ReplayPlan.of(searchers, dataset, plan)
    found = {clock: {"plain": [], "shifted": []} for clock in ("wall", "took")}
    for _ in range(ROUNDS):
        for name, one in zip(("plain", "shifted"), replay_all([client], asked, plan), strict=True):
            for clock, times in found.items():
                times[name].append(percentiles(getattr(answer, clock) for answer in one.answers)["p50"])
    for clock, times in found.items():
        print(f"\np50 of {clock}, ms, one at a time")
        _show(times, "{:10.3f}")
        _show_ratio(times["shifted"], times["plain"])


def _recall(client, searchers, dataset):
    """Share of the exact first k that the approximate first k have, by the question's language."""
    plan = ReplayOptions()
    asked = ReplayPlan.of(searchers, dataset, plan)
    print("\nRecall of approximate against exact search, by the question's language")
    print(f"{'':10}{'':>8}" + "".join(f"{f'plain@{k}':>12}{f'shifted@{k}':>12}" for k in DEPTHS))
    recalls = {}
    for place, one in enumerate(replay_all([client], asked, plan)):
        everything = {query.id: list(dataset.documents) for query in dataset.queries}
        heard = {answer.query: answer for answer in one.answers}
        scores, errors = fetch_group_scores(client, replace(asked, scored=everything), asked.targets[place], heard)
        assert not errors
        for answer in one.answers:
            given = {name: score for name, score in scores[answer.query].items() if score is not None}
            best = sorted(given, key=given.__getitem__, reverse=True)
            for k in DEPTHS:
                share = len({name for name, _ in answer.hits[:k]} & set(best[:k])) / k
                recalls.setdefault(asked.languages[answer.query], {}).setdefault((k, place), []).append(share)
    for language in sorted(recalls):
        shares = recalls[language]
        cells = "".join(f"{np.mean(shares[k, place]):12.4f}" for k in DEPTHS for place in range(2))
        print(f"{language:10}{len(shares[DEPTHS[0], 0]):8}{cells}")


def _in_turn(candidates, queries):
    """Name -> figures of all rounds, and CPU of a query; the order goes round, after a round that is not counted."""
    found, spent = ({name: [] for name in candidates} for _ in range(2))
    names = list(candidates)
    for number in range(ROUNDS + 1):
        for name in names[number % 2 :] + names[: number % 2]:
            start = process_time()
            figure = candidates[name]()
            if number:
                found[name].append(figure)
                spent[name].append((process_time() - start) * 1000 / queries)
    return found, spent


def _show(found, form):
    print(f"{'':10}{'median':>10}{'least':>10}{'most':>10}")
    for name, figures in found.items():
        print(f"{name:10}" + "".join(form.format(f(figures)) for f in (statistics.median, min, max)))


def _show_ratio(ours, theirs):
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    print(f"{'ratio':10}" + "".join(f"{f(ratios):10.3f}" for f in (statistics.median, min, max)))
