"""The console in this process, and what of the time of its pages was whose."""

import os
import socket
import threading
import time
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple

import pytest
import urllib3
import uvicorn

from langshift.client import Json
from langshift.retrieval.searcher import Searcher
from langshift.settings import Settings
from langshift.web.app import make_app
from langshift.web.context import AppContext
from langshift.web.security import Access


class Page(NamedTuple):
    """What one page took.

    Attributes:
        whole: milliseconds until the whole page was there.
        cluster: of them, while a request to the cluster was under way.
        encoding: of the rest, while a query was encoded.
        json: of what is the console's own, while the cluster's answers were read as JSON.
        asked: how many requests the cluster got.
    """

    whole: float
    cluster: float
    encoding: float
    json: float
    asked: int

    @property
    def own(self):
        return self.whole - self.cluster - self.encoding

    @property
    def share(self):
        return self.own / self.whole

    @property
    def share_but_json(self):
        return (self.own - self.json) / self.whole


@contextmanager
def serving(url, folder):
    """The console in this process, on a free port."""
    console = AppContext(Settings.from_env({**os.environ, "OPENSEARCH_URL": url}), folder)
    port = _free_port()
    app = make_app(console, Access("127.0.0.1", port))
    # As `langshift serve` runs it.
    options = {"http": "h11", "loop": "asyncio", "ws": "none", "log_config": None, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(app, port=port, **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield console, port
    finally:
        server.should_exit = True
        thread.join()


class Clock:
    """When the cluster was asked, queries were encoded and answers were read: (begin, end), in seconds."""

    def __init__(self):
        self.cluster, self.encoding, self.json = [], [], []

    def clear(self):
        self.cluster.clear()
        self.encoding.clear()
        self.json.clear()

    def page(self, whole):
        """What a page took that took so many seconds in all."""
        cluster = _length(self.cluster)
        encoding = _length([*self.cluster, *self.encoding]) - cluster
        parts = (one * 1000 for one in (whole, cluster, encoding, _length(self.json)))
        return Page(*parts, len(self.cluster))


@contextmanager
def watched():
    """A clock of all requests to the cluster and of all encoding in this process."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for kind, name, spans in (
            (urllib3.HTTPConnectionPool, "urlopen", clock.cluster),
            (Searcher, "encode", clock.encoding),
            (Json, "loads", clock.json),
        ):
            patch.setattr(kind, name, _timed(getattr(kind, name), spans))
        yield clock


def _timed(function, spans):
    def timed(*arguments, **options):
        began = perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            spans.append((began, perf_counter()))

    return timed


def _length(spans):
    """Seconds in which at least one of the spans lasted."""
    total, until = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
