"""The service under twice the load that it can take: every answer is right or 429, and its memory does not grow."""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from statistics import median, quantiles

import httpx
import numpy as np
import psutil
import pytest
from console_process import serving
from given_data import run
from large_corpus import LargeCorpus

from langshift.web.api.service import AT_ONCE

CLIENTS, SECONDS, SEARCHES = 50, 60, 20_000
# Seconds for which its capacity is measured.
MEASURED = 15
QUESTIONS, SIZE = 100, 10
# Seconds beyond its wait in the queue that an answer may take: some searches are before it where eight run at once.
SLACK = 5.0
MOST_GROWTH = 32 << 20  # bytes
NAME = "langshift-evidence-service"


@pytest.fixture(scope="module")
def bodies(tmp_path_factory, request):
    """Searches as JSON, each with what it must find."""
    from searched import drop

    client = request.getfixturevalue("client")
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("OPENSEARCH_URL", request.getfixturevalue("cluster_url"))
    corpus, path = LargeCorpus(), tmp_path_factory.mktemp("given") / "corpus.jsonl"
    corpus.write(path)
    drop(client, NAME)
    done = run("ingest", path, "--index", NAME, "--encoder", "given", "--alpha", 0)
    assert done.exit_code == 0, done.output
    yield [
        {"index": NAME, "query": "q", "language": "en", "mode": "dense", "size": SIZE, "fields": []}
        | {"vector": np.asarray(question.vector, np.float64).round(6).tolist()}
        for question in corpus.questions(QUESTIONS)
    ]
    drop(client, NAME)
    monkeypatch.undo()


@pytest.fixture
def service(bodies, cluster_url, tmp_path):
    """A function that gives the service, whose answers to all searches are known."""

    @contextmanager
    def service(queue=5.0):
        with serving("--api", "--queue-seconds", queue, url=cluster_url, home=tmp_path) as running:
            with running.client() as asking:
                running.wanted = [_ids(asking.post("/api/search", json=body)) for body in bodies]
            yield running

    return service


def test_every_answer_under_twice_its_load_is_right_or_says_that_it_is_busy(service, bodies):
    """50 clients, each of which asks again as soon as it has an answer, whatever that says.

    A request may wait for a quarter of the time that the others need that wait, so that most are refused.
    """
    with service() as console:
        capacity = len(asked(console, bodies, AT_ONCE, MEASURED)) / MEASURED
    queue = max(0.1, (CLIENTS - AT_ONCE) / capacity / 4)
    with service(queue) as console:
        told = asked(console, bodies, CLIENTS, SECONDS)
    counted = Counter(status for status, _, _ in told)
    taken = [seconds for status, _, seconds in told if status == 200]
    asked_for, answered = len(told) / SECONDS, counted[200] / SECONDS
    middle, high = median(taken), quantiles(taken, n=20)[-1]
    print(f"\n{CLIENTS} clients, {SECONDS} s, {queue:.2f} s in the queue at most: {dict(counted)}")
    print(f"{asked_for:.0f} requests a second, {answered:.0f} answered; {capacity:.0f} answered with {AT_ONCE} clients")
    print(f"seconds of an answer: median {middle:.2f}, p95 {high:.2f}, longest {max(taken):.2f}")
    assert set(counted) == {200, 429}
    assert all(right for _, right, _ in told)
    assert max(seconds for *_, seconds in told) < queue + SLACK


def asked(console, bodies, clients, seconds):
    """The status of each answer, whether it is right, and the seconds that it took."""
    told, lock, stop = [], threading.Lock(), time.monotonic() + seconds

    def ask(place):
        with console.client() as asking:
            while time.monotonic() < stop:
                place = (place + 7) % len(bodies)
                began = time.perf_counter()
                try:
                    answer = asking.post("/api/search", json=bodies[place])
                    right = answer.status_code == 429 or _ids(answer) == console.wanted[place]
                    status = answer.status_code
                except httpx.HTTPError as error:
                    status, right = type(error).__name__, False
                with lock:
                    told.append((status, right, time.perf_counter() - began))

    with ThreadPoolExecutor(clients) as pool:
        for one in [pool.submit(ask, number) for number in range(clients)]:
            one.result()
    return told


def test_memory_does_not_grow(service, bodies):
    seen = []
    with service() as console, console.client() as asking, ThreadPoolExecutor(AT_ONCE) as pool:
        process = psutil.Process(console.process.pid)
        for _ in range(10):
            bodies_of_a_tenth = islice(cycle(bodies), SEARCHES // 10)
            answers = pool.map(lambda body: asking.post("/api/search", json=body), bodies_of_a_tenth)
            assert all(answer.status_code == 200 for answer in answers)
            seen.append(process.memory_info().rss)
    print(f"\n{SEARCHES:,} searches; resident after each tenth: {[one >> 20 for one in seen]} MiB")
    assert max(seen[5:]) < max(seen[:5]) + MOST_GROWTH


def _ids(answer):
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in json.loads(answer.content)["hits"]]
