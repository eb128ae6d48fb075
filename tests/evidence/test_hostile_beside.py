"""Searches beside clients who send what is refused: each is refused with a sentence, and the searches hardly wait."""

import statistics
import threading
import time
from itertools import cycle

import pytest
from console_process import serving
from hostile_filters import REFUSED
from searched import a_name, documents, drop, make_index

DOCUMENTS, SEARCHES, ROUNDS = 6_000, 40, 3


@pytest.fixture(scope="module")
def index(client, tmp_path_factory):
    """More documents than a filter that runs over them could hide."""
    usual, name = list(documents()), a_name()
    lines = [{**usual[number % len(usual)], "_id": str(number)} for number in range(DOCUMENTS)]
    make_index(client, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", name, lines=lines)
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def asking(cluster_url, tmp_path_factory):
    """A client of the interface, in a process of its own."""
    with serving("--api", url=cluster_url, home=tmp_path_factory.mktemp("home")) as served, served.client() as opened:
        yield opened


def hostile(index):
    """Requests that are refused: filters, bodies that are nested or no JSON, and what nobody knows."""
    for query, _ in REFUSED.values():
        yield {"json": {"index": index, "query": "tides", "dsl_filter": query}}
    for depth in (300, 3_000, 20_000, 200_000):
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            for content in (opened * depth, opened * depth + "1" + closed * depth, '{"index":' + opened * depth):
                yield {"content": content, "headers": {"content-type": "application/json"}}
    for more in ({"size": 10**9}, {"lang": "de"}, {"from": -1}, {"fields": ["a*" * 300]}, {"sort": ["a"] * 5_000}):
        yield {"json": {"index": index, "query": "tides", **more}}


def took(asking, index):
    """Seconds of each of so many searches, one after another."""
    seconds = []
    for number in range(SEARCHES):
        begun = time.perf_counter()
        answer = asking.post("/api/search", json={"index": index, "query": f"why does the sea rise {number}"})
        assert answer.status_code == 200, answer.text
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def test_searches_beside_what_is_refused_answer_within_twice_their_time(asking, index):
    known = list(hostile(index))
    for request in known:
        answer = asking.post("/api/search", **request)
        assert answer.status_code == 400, (str(request)[:200], answer.status_code)
        assert answer.json()["error"]["message"].endswith(".")
    took(asking, index)
    ratios = []
    for _ in range(ROUNDS):
        alone, ended = took(asking, index), threading.Event()

        def refuse(ended=ended):
            for request in cycle(known):
                if ended.is_set():
                    return
                asking.post("/api/search", **request)
                # As often as a person could, whose finger stays on the key.
                time.sleep(0.03)

        sending = threading.Thread(target=refuse)
        sending.start()
        try:
            beside = took(asking, index)
        finally:
            ended.set()
            sending.join()
        print(f"{alone:.3f} s alone, {beside:.3f} s beside")
        ratios.append(beside / alone)
    print(f"Beside {len(known)} requests that are refused, searches take {statistics.median(ratios):.2f} times as long")
    assert statistics.median(ratios) <= 2
