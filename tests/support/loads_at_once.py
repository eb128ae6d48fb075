"""Loads that begin with one state at once, each in a process and with a home of its own, as on two machines.

As a program: langshift, which creates the state only once all of the others are about to do so as well.
"""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import orjson
from parted import GIVEN, require_became

from langshift import cli
from langshift.ingest.parts.folder import StateFolder

#: What the one that loses says, by how late it is.
LOSES = re.compile(
    r"Another process has begun a load with the state \S+ at the same time: this one has changed nothing\.|"
    r"Another process has just begun a load with the state \S+, or was interrupted as it began: wait for it, .*|"
    r"A load of \S+ into \S+ with the state \S+ is under way, or was interrupted after .*"
)
_SECONDS = 120


def require_one_wins(became, plain, state, corpus, folder, url, *, together=True):
    """Begin two loads with one state, of which one becomes what a plain load becomes, and the other changes nothing.

    Args:
        became: the fixture.
        plain: what it gave for the corpus.
        state: the state's folder or address, which is not there yet.
        corpus: the corpus.
        folder: where homes are made.
        url: the cluster's address.
        together: whether both create the state at the same moment; else the second begins while the first is at work.
    """
    name, meeting = f"{plain[0]['name']}-{folder.name}", folder / "meeting"
    meeting.mkdir(parents=True)
    command = [sys.executable, __file__, str(meeting), "2" if together else "0", "ingest", str(corpus), "--index", name]
    command += [*map(str, GIVEN), "--max-refused", "1", "--json", "--state", str(state)]
    loads = []
    for number in range(2):
        home = folder / f"home-{number}"
        home.mkdir()
        env = os.environ | {"LANGSHIFT_HOME": str(home)}
        env.setdefault("OPENSEARCH_URL", url)
        pipe = subprocess.PIPE
        loads.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True))
    said = [(*load.communicate(timeout=_SECONDS), load.returncode) for load in loads]
    (won, others, code), (nothing, why, lost) = sorted(said, key=lambda one: one[2] == 1)
    assert (code in (0, 3), lost, nothing) == (True, 1, ""), said
    assert LOSES.fullmatch(why.splitlines()[-1].removeprefix("Error: ")), why
    assert "Traceback" not in others + why
    require_became(json.loads(won), became.left(name, state), plain)
    return name


def in_turn(store):
    """Have an S3 of this machine's write one file after the other, as moto looks and writes in two steps."""
    turn = asyncio.Lock()

    async def forward(exchange):
        if exchange.method != "PUT":
            return await exchange.forward()
        async with turn:
            return await exchange.forward()

    store.proxy.inject("", itertools.repeat(forward))


def few_lines(path):
    """A corpus of 40 documents; its path."""
    path.write_bytes(b"\n".join(orjson.dumps({"_id": f"d{n}", "text": "A", "embedding": [1.0, n]}) for n in range(40)))
    return path


if __name__ == "__main__":
    meeting, count = Path(sys.argv[1]), int(sys.argv[2])
    create = StateFolder.create

    def meet(self, name, content):
        (meeting / str(os.getpid())).touch()
        deadline = time.monotonic() + _SECONDS
        while len(list(meeting.iterdir())) < count and time.monotonic() < deadline:
            time.sleep(0.001)
        return create(self, name, content)

    StateFolder.create = meet
    sys.argv[1:3] = []
    cli.main()
