"""Whether texts of several requests for embeddings are better encoded together than one request after another.

Run with ``make bench``. Clients ask for one short text each, as soon as the last one is there, of the encoder
``e5-small``, as ``/v1/embeddings`` does it: at most eight are let in at once. Machines differ and are shared: look at
the ratios.
"""

import statistics
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import pytest

from langshift.debias.encoders.e5_small import E5Small
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.web.api.turns import AT_ONCE

TEXTS, ROUNDS = 80, 9
GOAL = 1.1


class OneByOne:
    """Each request is encoded alone, and one at a time."""

    def __init__(self, encoder):
        self._encoder, self._lock = encoder, threading.Lock()

    def encode(self, text):
        with self._lock:
            return self._encoder.encode_queries([text])[0]


class Together:
    """Whoever's turn it is encodes all that wait; nobody waits for others to come."""

    def __init__(self, encoder):
        self._encoder, self._lock, self._waiting = encoder, threading.Lock(), deque()

    def encode(self, text):
        mine = [text, None]
        self._waiting.append(mine)
        with self._lock:
            if mine[1] is None:
                taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
                for one, vector in zip(taken, self._encoder.encode_queries([text for text, _ in taken]), strict=True):
                    one[1] = vector
        return mine[1]


def shown(figures, form=".1f"):
    return f"{statistics.median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


@pytest.mark.parametrize("clients", [8, 16])
def test_embeddings_a_second(clients):
    encoder = E5Small()
    texts = [query.text for query in load_dataset(FOLDER).queries][::6][:TEXTS]
    ways, speeds, made = {"one by one": OneByOne, "together": Together}, {}, {}
    for number in range(ROUNDS):
        for name in sorted(ways, reverse=bool(number % 2)):
            way, turns = ways[name](encoder), threading.Semaphore(AT_ONCE)

            def ask(text, way=way, turns=turns):
                with turns:
                    return way.encode(text)

            with ThreadPoolExecutor(clients) as pool:
                began = perf_counter()
                made[name] = np.array(list(pool.map(ask, texts)))
                speeds.setdefault(name, []).append(len(texts) / (perf_counter() - began))
    length = sum(map(len, texts)) / len(texts)
    print(f"\n{clients} clients, {len(texts)} texts of {length:.0f} characters, {ROUNDS} rounds in turn")
    for name, of in speeds.items():
        print(f"{name:12} {shown(of)} embeddings a second")
    ratios = [b / a for a, b in zip(speeds["one by one"], speeds["together"], strict=True)]
    apart = np.abs(made["one by one"] - made["together"]).max()
    print(f"together / one by one: {shown(ratios, '.2f')}, goal {GOAL}; vectors differ by {apart:.1e} at most")
