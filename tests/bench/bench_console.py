"""What the console adds to a search, and what a slider that moves costs beside it.

Run with ``make bench-search``. The real application on uvicorn in this process, asked over HTTP. Of the time of each
page that is taken away which passed while a request to the cluster was under way (from its first byte sent to its last
received, reading its JSON is the console's own) or a query was encoded; what is left is the console's own: HTTP, the
detection of the language, JSON, ranking, the template. New queries, the same ones again (nothing to encode), and
sliders come in turn. Machines differ and are shared: look at the shares, not at the times.
"""

import http.client
import os
from contextlib import closing
from time import perf_counter
from urllib.parse import urlencode

import numpy as np
import pytest
from documents import DATA
from timed_console import serving, watched

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.searcher import Searcher
from langshift.web.search.searching import SearchCache

QUESTIONS, WARM_UP, ROUNDS = 40, 8, 3
SIZES = (10, 50)
GOAL = 0.1
# What a browser's script says that fetches a page, and what a person's navigation says.
SCRIPT, PERSON = {"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Mode": "navigate"}
NEW, AGAIN = "new query", "same query again"
# A slider's move -> what it changes on the right side; each question is seen at another place of it.
MOVES = {
    "preference moved": lambda place: {"right.prefer": 0.005 * (1 + place % 10)},
    "weight moved": lambda place: {"right.mode": "hybrid", "right.weight": 0.01 * (1 + place % 90)},
    "alpha moved": lambda place: {"right.alpha": 0.01 * (1 + place % 90)},
}


@pytest.mark.usefixtures("cluster_env")
def test_demo(client, cluster_url, index_name, tmp_path):
    compare(client, cluster_url, index_name, load_dataset(FOLDER), tmp_path)


@pytest.mark.usefixtures("cluster_env")
@pytest.mark.skipif(not (DATA / "xquad").is_dir(), reason="XQuAD is not there")
def test_xquad(client, cluster_url, index_name, dataset, tmp_path):
    compare(client, cluster_url, index_name, dataset, tmp_path)


def compare(client, url, name, dataset, folder):
    names, encoder = (f"{name}-plain", f"{name}-shifted"), open_encoder("use-m")
    for side, alpha in zip(names, (0.0, 1.0), strict=True):
        load(client, str(dataset.folder / "corpus.jsonl"), side, build_pipeline(encoder, open_detector(), None, alpha))
        client.indices.refresh(index=side)
    searcher = Searcher(client, names[0])
    asked = [one.words for one in ReplayPlan.of([searcher], dataset, ReplayOptions()).targets[0].questions]
    questions = asked[:: max(1, len(asked) // QUESTIONS)][:QUESTIONS]
    print(f"\n{searcher.index.documents:,} documents, {len(questions)} questions, {ROUNDS} times each")
    for size in SIZES:
        with serving(url, folder) as (console, port), watched() as clock:
            before = os.getloadavg()[0]
            with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                found = measured(Browser(console, connection, clock, names, size), questions)
            print(f"\nsize {size}, load of the machine {before:.1f} before and {os.getloadavg()[0]:.1f} after")
            show(found)


class Browser:
    """Asks for pages over one connection, and tells what each took."""

    def __init__(self, console, connection, clock, names, size):
        self._console, self._connection, self._clock = console, connection, clock
        self._state = {"left": names[0], "right": names[1], "size": size}

    def page(self, way, words, place):
        """A page of a way."""
        if way == NEW:
            self._console._shared.pop(SearchCache, None)
        changes = MOVES[way](place) if way in MOVES else {}
        return self._get("/search", {**self._state, "q": words, **changes}, SCRIPT if way in MOVES else PERSON)

    def fetch_vectors(self, words):
        """What the page itself does once it is shown."""
        self._get("/search/vectors", {**self._state, "q": words}, SCRIPT)

    def _get(self, path, state, headers):
        self._clock.clear()
        began = perf_counter()
        self._connection.request("GET", f"{path}?{urlencode(state)}", headers=headers)
        answer = self._connection.getresponse()
        content = answer.read()
        whole = perf_counter() - began
        assert answer.status in {200, 204}, content
        return self._clock.page(whole)


def measured(browser, questions):
    """Way -> the pages of all questions in all rounds."""
    found = {way: [] for way in (NEW, AGAIN, *MOVES)}
    others = [AGAIN, *MOVES]
    for number in range(ROUNDS):
        for place, words in enumerate(questions):
            # A query is new but once; what comes after it goes round.
            first = (place + number) % len(others)
            pages = {NEW: browser.page(NEW, words, place)}
            for way in others[first:] + others[:first]:
                browser.fetch_vectors(words)
                pages[way] = browser.page(way, words, place)
            if number or place >= WARM_UP:
                for way, page in pages.items():
                    found[way].append(page)
    return found


# Heading of a column -> what of a page is in it, and how it is written.
COLUMNS = {
    "whole, ms": ("whole", ".1f"),
    "cluster, ms": ("cluster", ".1f"),
    "encoding, ms": ("encoding", ".1f"),
    "own, ms": ("own", ".1f"),
    "own share": ("share", ".0%"),
    "JSON left out": ("share_but_json", ".0%"),
}


def show(found):
    print(f"{'':18}" + "".join(f"{heading:>24}" for heading in COLUMNS) + f"{'asked':>6}")
    for way, pages in found.items():
        cells = [quartiles([getattr(page, name) for page in pages], form) for name, form in COLUMNS.values()]
        asked = f"{np.median([page.asked for page in pages]):.0f}"
        goal = f"   goal {GOAL:.0%}" if way == NEW else ""
        print(f"{way:18}" + "".join(f"{cell:>24}" for cell in cells) + f"{asked:>6}{goal}")
    for way in MOVES:
        ratios = [page.whole / new.whole for page, new in zip(found[way], found[NEW], strict=True)]
        print(f"{way}: {quartiles(ratios, '.0%')} of a new query's time")
    asked = {way: sum(page.asked for page in found[way]) for way in MOVES}
    print(f"requests to the cluster by {sum(len(found[way]) for way in MOVES)} moves: {sum(asked.values())}")
    assert not any(asked.values()), asked


def quartiles(figures, form):
    low, middle, high = np.quantile(figures, [0.25, 0.5, 0.75])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"
