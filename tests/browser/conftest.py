"""A real browser for the console's pages: the system's Chromium, driven by Playwright."""

import os
import uuid
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import pytest
from browsers import ABSENT, find_browser
from console_page import DESK
from console_process import serving
from fault_proxy import fault_proxy
from faults import cut_before
from playwright.sync_api import expect, sync_playwright
from small_dataset import write_topics

from langshift.commands.demo import demo as demo_command
from langshift.plugin.inventory import drop_all
from langshift.retrieval.service import open_index

# Of what is waited for, not of what is measured: a loaded machine takes long over a report of two runs.
PATIENCE = 120_000
# Of the demo's 44 topics every eleventh: 48 passages, 96 questions.
EVERY = 11


@pytest.fixture(scope="session")
def chromium():
    """The program; without one the tests are skipped, and fail where LANGSHIFT_REQUIRE_BROWSER=1."""
    found = find_browser()
    if found is None:
        reason = f"no browser to test with: {ABSENT}"
        if os.environ.get("LANGSHIFT_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def browser(chromium):
    """One Chromium for all tests of a file.

    Not for longer: as long as Playwright runs, no other test of this process can run an event loop.
    """
    # Its sandbox needs another user than root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield running
        running.close()


class Demo(NamedTuple):
    """The demo over some of its topics.

    Attributes:
        plain: the index without the shift.
        paper: the one with the paper's alone.
        shifted: the one that is as recommended.
        results: the results folder, with the demo's own.
        dataset: the folder of its dataset, called ``few``.
    """

    plain: str
    paper: str
    shifted: str
    results: Path
    dataset: Path


@pytest.fixture(scope="session")
def demo(chromium, client, cluster_url, tmp_path_factory):  # noqa: ARG001 - nothing is indexed where no browser is
    """``langshift demo`` over every fourth topic, under names that no one else uses."""
    place, own = tmp_path_factory.mktemp("demo"), f"langshift-test-{uuid.uuid4().hex[:8]}"
    made = Demo(f"{own}-plain", f"{own}-paper", f"{own}-shifted", place / "results", place / "few")
    write_topics(made.dataset, slice(None, None, EVERY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        for module in ("evaluate.demo", "commands.demo"):
            patch.setattr(f"langshift.{module}.PLAIN", made.plain)
            patch.setattr(f"langshift.{module}.PAPER", made.paper)
            patch.setattr(f"langshift.{module}.SHIFTED", made.shifted)
            patch.setattr(f"langshift.{module}.FOLDER", made.dataset)
        demo_command.callback(made.results / "demo", as_json=True)
    yield made
    for name in (made.plain, made.paper, made.shifted):
        drop_all(client, name)


class Way:
    """The way from the console to the cluster: counted, or cut.

    Attributes:
        url: where it begins.
        asked: paths of the requests that came by since ``count``.
    """

    def __init__(self, proxy):
        self._proxy, self.url, self.asked = proxy, proxy.url, []

    def count(self):
        """Begin to count requests."""
        self.asked = asked = []

        async def counted(exchange):
            asked.append(exchange.path)
            return await exchange.forward()

        self._set(counted)

    def cut(self):
        """Let the cluster go away."""
        self._set(cut_before)

    def clear(self):
        """Let everything pass."""
        self._proxy.clear()

    def _set(self, fault):
        self._proxy.clear()
        self._proxy.inject("", repeat(fault))


@pytest.fixture(scope="session")
def _proxy(cluster_url):
    with fault_proxy(cluster_url) as running:
        yield running


@pytest.fixture
def way(_proxy):
    """The console's way to the cluster; open again after the test."""
    _proxy.clear()
    yield Way(_proxy)
    _proxy.clear()


@pytest.fixture(scope="session")
def console(_proxy, demo, tmp_path_factory):
    """``langshift serve``, one for all tests."""
    folder = tmp_path_factory.mktemp("served")
    with serving("--results", demo.results, url=_proxy.url, home=folder) as running:
        yield running
        code, said = running.stop()
        assert (code, said) == (0, "The console has stopped.\n")


class Sessions:
    """Browser sessions of a test, all watched: what goes wrong in any of them is told at the end.

    Attributes:
        expected: HTTP statuses that pages of this test answer on purpose, beside those below 400.
        elsewhere: whether pages of this test come from elsewhere than the console, such as from disk.
    """

    def __init__(self, browser, url):
        self._browser, self._url, self._open = browser, url, ExitStack()
        self.expected, self.wrong, self.requests = set(), [], []

    def page(self, **options):
        """A page of a session of its own."""
        given = {"viewport": DESK, "base_url": self._url, "reduced_motion": "reduce", **options}
        session = self._open.enter_context(self._browser.new_context(**given))
        session.set_default_timeout(PATIENCE)
        session.on("console", self._said)
        session.on("weberror", lambda error: self.wrong.append(f"error in a script: {error.error}"))
        session.on("request", lambda request: self.requests.append(request.url))
        session.on("dialog", self._asked)
        return session.new_page()

    def close(self):
        """End all sessions, and say what went wrong."""
        self._open.close()
        abroad = [url for url in self.requests if not url.startswith((self._url, "file:", "data:"))]
        assert (self.wrong, abroad) == ([], [])

    def _said(self, message):
        passing = [f"the server responded with a status of {status} " for status in self.expected]
        if message.type in {"error", "warning"} and not any(words in message.text for words in passing):
            self.wrong.append(f"{message.type} on {message.location['url']}: {message.text}")

    def _asked(self, dialog):
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def sessions(browser, console):
    """Sessions that end with the test; none may have met an error, or asked anybody but the console."""
    made = Sessions(browser, console.url)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def page(sessions):
    """A page of a session of its own."""
    return sessions.page()


@pytest.fixture(scope="session")
def indices(cluster_url):
    """A function that opens an index of the library once."""
    with ExitStack() as opened:
        known = {}

        def of(name):
            if name not in known:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("OPENSEARCH_URL", cluster_url)
                    known[name] = opened.enter_context(open_index(name))
            return known[name]

        yield of


@pytest.fixture
def found(indices):
    """A function that searches as a user of the library does: the hits."""
    return lambda index, words, **how: indices(index).search(words, **how).hits
