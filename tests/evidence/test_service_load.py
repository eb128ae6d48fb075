"""The service under twice the load that it can take: every answer is right or 429, and its memory does not grow."""

import json
import threading
import time
from collections import Counter
from statistics import quantiles

import httpx
import numpy as np
import psutil
import pytest
from console_process import serving
from given_data import run
from large_corpus import LargeCorpus

CLIENTS, SECONDS, QUEUE, SEARCHES = 50, 60, 2.0, 20_000
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
def console(bodies, cluster_url, tmp_path):
    with serving("--api", "--queue-seconds", QUEUE, url=cluster_url, home=tmp_path) as running:
        with running.client() as asking:
            running.wanted = [_ids(asking.post("/api/search", json=body)) for body in bodies]
        yield running


def test_every_answer_under_twice_its_load_is_right_or_says_that_it_is_busy(console, bodies):
    """50 clients, each of which asks again as soon as it has an answer."""
    told, lock, stop = [], threading.Lock(), time.monotonic() + SECONDS

    def ask(number):
        place = number
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
                if status == 429:
                    time.sleep(float(answer.headers["retry-after"]))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = Counter(status for status, _, _ in told)
    taken = [seconds for status, _, seconds in told if status == 200]
    print(f"\n{CLIENTS} clients, {SECONDS} s: {dict(counted)}; {counted[200] / SECONDS:.0f} answers a second; p95")
    print(f"{quantiles(taken, n=20)[-1]:.2f} s, longest {max(seconds for *_, seconds in told):.2f} s")
    assert set(counted) <= {200, 429}
    assert all(right for _, right, _ in told)
    assert max(seconds for *_, seconds in told) < QUEUE + SLACK


def test_memory_does_not_grow(console, bodies):
    process, seen = psutil.Process(console.process.pid), []
    with console.client() as asking:
        for number in range(SEARCHES):
            answer = asking.post("/api/search", json=bodies[number % len(bodies)])
            assert answer.status_code == 200
            if number % (SEARCHES // 10) == SEARCHES // 10 - 1:
                seen.append(process.memory_info().rss)
    print(f"\n{SEARCHES:,} searches; resident after each tenth: {[one >> 20 for one in seen]} MiB")
    assert max(seen[5:]) < max(seen[:5]) + MOST_GROWTH


def _ids(answer):
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in json.loads(answer.content)["hits"]]
