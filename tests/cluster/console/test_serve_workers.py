"""``langshift serve --workers``: several processes answer at one address, are counted together, and end together."""

import re
import time
from contextlib import suppress

import httpx
import psutil
import pytest
from console_process import serving

MANY = 40
SECONDS = 60


def answered(console, path="api/indices"):
    """The answer to a request by a connection of its own; None while a process that has ended is still asked."""
    with suppress(httpx.HTTPError):
        return httpx.get(f"{console.url}{path}", timeout=60, trust_env=False)


def workers(console):
    """The processes that serve; beside them one watches over what they share."""
    found = []
    for one in psutil.Process(console.process.pid).children():
        # One that was killed is there, as a zombie, until it is replaced.
        with suppress(psutil.NoSuchProcess):
            found += [one] if "spawn_main" in " ".join(one.cmdline()) else []
    return found


def counted(console):
    """How many requests for the indices all processes have answered."""
    found = re.search(
        r'^langshift_requests_total{path="/api/indices",status="200"} (\S+)$', answered(console, "metrics").text, re.M
    )
    return 0 if found is None else int(float(found[1]))


def until(holds):
    stop = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < stop
        time.sleep(0.2)


def test_all_are_counted_replaced_and_end(cluster_url, tmp_path):
    with serving("--api", "--metrics", "--workers", 2, url=cluster_url, home=tmp_path) as console:
        until(lambda: answered(console) is not None)
        before = counted(console)
        for _ in range(MANY):
            assert answered(console).status_code == 200
        assert counted(console) == before + MANY
        first, second = workers(console)
        first.kill()
        until(lambda: len(others := workers(console)) == 2 and first not in others)
        assert counted(console) == before + MANY
        until(lambda: answered(console) is not None and answered(console).status_code == 200)
        ending = workers(console)
        assert second in ending
        code, said = console.stop()
        assert code == 0
        assert said.endswith("The console has stopped.\n")
        assert "ended with code -9; another takes its place." in said
        assert not any(one.is_running() for one in ending)
    with pytest.raises(httpx.ConnectError):
        httpx.get(console.url, trust_env=False)
