"""A load whose journal is in parts in S3: killed between an answer and its part, without its store, taken over."""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time

import orjson
import parted_load
import pytest
from command_line import langshift
from faults import cut_before
from parted import GIVEN, require_became, vectored
from several_files import made_lines

from langshift.ingest.parts import run
from langshift.plugin import versions
from langshift.plugin.inventory import drop_all

JSON = ("--max-refused", 1, "--json")


@pytest.fixture
def process(cluster_url, index_name, tmp_path):
    """A function that begins a load, with parts of 25 lines, in a process and with a home of its own."""
    begun, homes = [], itertools.count()

    def start(corpus, state, *options):
        home = tmp_path / f"home-{next(homes)}"
        home.mkdir()
        env = os.environ | {"LANGSHIFT_HOME": str(home)}
        env.setdefault("OPENSEARCH_URL", cluster_url)
        command = [sys.executable, parted_load.__file__, 25, 40, "ingest", corpus, "--index", index_name, *GIVEN, *JSON]
        command += ["--state", state, *options]
        piped = subprocess.PIPE
        begun.append(found := subprocess.Popen([*map(str, command)], env=env, stdout=piped, stderr=piped, text=True))
        return found

    yield start
    for one in begun:
        one.kill()
        one.communicate()


@pytest.fixture
def corpus(tmp_path, request):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, vectored(made_lines(getattr(request, "param", 5))))))
    return path


@pytest.fixture
def plain(became, corpus):
    """What a plain load of the corpus becomes."""
    return became(corpus, options=GIVEN)


def at(store, pattern, after, action):
    """Have something done when the store is to write a file, before it does."""
    seen = itertools.count()

    async def acting(exchange):
        if exchange.method == "PUT" and re.search(pattern, exchange.path) and next(seen) == after:
            return await action(exchange)
        return await exchange.forward()

    store.proxy.clear()
    store.proxy.inject("", itertools.repeat(acting))


KILLS = [
    ("load.json", 1),
    ("state/parts/0", 0),
    ("state/parts/0", 1),
    ("state/dead/0", 1),
    ("state/late/0", 0),
    ("state/parts/0", 1),
    ("state/parts/late", 0),
    ("state/dead/late", 0),
    ("state/parts/late", 1),
    ("making.json", 0),
    ("load.json", 1),
]


@pytest.mark.parametrize("corpus", [5, 6], indirect=True)
def test_killed_anywhere_it_is_resumed_from_another_home(process, became, plain, store, index_name, corpus, client):
    state = store.uri("state")
    for pattern, after in KILLS:
        running = process(corpus, state, "--resume")

        async def kill(exchange, running=running):
            running.kill()
            running.wait()
            return await cut_before(exchange)

        at(store, pattern, after, kill)
        _, err = running.communicate(timeout=120)
        assert running.returncode == -9, (pattern, after, err)
    store.proxy.clear()
    running = process(corpus, state, "--resume")
    out, err = running.communicate(timeout=120)
    assert running.returncode == 3, err
    assert "already handled" in err
    require_became(json.loads(out), became.left(index_name, state), plain)
    again = process(corpus, state, "--resume")
    _, err = again.communicate(timeout=120)
    assert f"This load into {index_name} is already complete: there is nothing to resume." in err
    drop_all(client, index_name)


def test_a_store_that_stays_away_for_a_while_is_waited_for(became, plain, store, corpus, monkeypatch):
    monkeypatch.setattr(run, "LINES", 25)
    back, seen = [0.0], set()

    async def away(exchange):
        for point in ("state/load.json", "state/parts/0", "state/dead/0", "state/parts/late", "state/making"):
            if point in exchange.path and exchange.method == "PUT" and point not in seen:
                seen.add(point)
                back[0] = time.monotonic() + 1
        if exchange.method == "GET" and len(seen) == 4 and "check" not in seen and "parts/late" in exchange.path:
            seen.add("check")
            back[0] = time.monotonic() + 1
        return await (cut_before(exchange) if time.monotonic() < back[0] else exchange.forward())

    store.proxy.inject("", itertools.repeat(away))
    said, *found = became(corpus, state=store.uri("state"), options=GIVEN)
    assert len(seen) == 6
    require_became(said, found, plain)


def test_a_store_that_stays_away_for_good_takes_nothing_back(
    client, cluster_url, became, plain, store, corpus, index_name, monkeypatch
):
    monkeypatch.setattr(run, "LINES", 25)
    state = store.uri("state")
    load = ("ingest", corpus, "--index", index_name, *GIVEN, *JSON, "--state", state)
    # Before the first part nothing is left, after it all is.
    for after in (0, 2):
        gone = []
        writes = itertools.count()

        async def counting(exchange, gone=gone, after=after, writes=writes):
            if exchange.method == "PUT" and "state/parts/0" in exchange.path and next(writes) >= after:
                gone.append(exchange.path)
            return await (cut_before(exchange) if gone else exchange.forward())

        store.proxy.inject("", itertools.repeat(counting))
        done = langshift(*load, "--patience", 1, url=cluster_url)
        store.proxy.clear()
        assert done.returncode == 1
        assert "cannot be written, because S3 does not answer: " in done.stderr
        assert ("handled: continue with --resume." in done.stderr) == bool(after)
        assert versions.unfinished(client, index_name).keys() == ({f"{index_name}-v0001"} if after else set())
    done = langshift(*load, "--resume", url=cluster_url)
    assert done.returncode == 3, done.stderr
    said = json.loads(done.stdout)
    assert said["resumed"] > 20
    require_became(said, became.left(index_name, state), plain)
    drop_all(client, index_name)


def test_what_another_process_takes_over_stops(process, became, plain, store, corpus, index_name, client):
    state = store.uri("state")
    first = process(corpus, state)
    others = []

    async def another(exchange):
        others.append(process(corpus, state, "--resume"))
        out, err = await asyncio.to_thread(others[0].communicate, timeout=120)
        assert others[0].returncode == 3, err
        others.append(json.loads(out))
        return await exchange.forward()

    at(store, "state/parts/0", 1, another)
    out, err = first.communicate(timeout=120)
    assert (first.returncode, out) == (1, "")
    assert err.splitlines()[-1] == (
        f"Error: Another process has taken over the load with the state {state}: this one stops."
    )
    require_became(others[1], became.left(index_name, state), plain)
    drop_all(client, index_name)
