"""A load by the workers of a Ray cluster, some of which are killed at random, as are a machine and the load itself."""

import asyncio
import itertools
import json
import random
from contextlib import ExitStack

from command_line import started
from http_exchange import Cut
from many_lines import write_many_lines
from parted import GIVEN, require_became
from ray_nodes import until
from same_answer import require_same

from langshift import open_index

KINDS = ("worker", "writer", "machine", "driver")


def ray_options(index, state, nodes):
    own = ("--index", index, *GIVEN, "--max-refused", 1, "--json", "--state", state)
    return (*own, "--runner", "ray", "--address", nodes.address)


def searched(name):
    """What searches find: among all documents, and among the few that an update has changed."""
    chance, found = random.Random(0), []
    with open_index(name) as index:
        for filters in ({}, {"year": {"lt": 2000}}):
            for mode, language in (("dense", None), ("dense", "de"), ("balanced", "th")):
                vector = [chance.gauss(0, 1) for _ in range(8)]
                answer = index.search("Text", vector=vector, mode=mode, language=language, filters=filters)
                found.append([[hit.id, hit.score] for hit in answer.hits])
    assert all(map(len, found))
    return found


def require_same_through_kills(became, proxy, nodes, index, folder, kills, lines):
    """Load a corpus so; what it becomes must be what a plain load makes of it."""
    corpus, chance = write_many_lines(folder / "corpus.jsonl", lines), random.Random(kills)
    plain, state = became(corpus, options=GIVEN, name=f"{index}-plain"), folder / "state"
    kinds = [kind for _ in range(0, kills, len(KINDS)) for kind in chance.sample(KINDS, len(KINDS))]
    armed = []

    async def written(exchange):
        await asyncio.sleep(0.2)
        reply = await exchange.forward()
        if armed:
            armed.clear()
            await asyncio.to_thread(nodes.kill_workers)
            raise Cut
        return reply

    proxy.inject("_bulk", itertools.repeat(written))
    with ExitStack() as stack:

        def start():
            load = ("ingest", corpus, *ray_options(index, state, nodes), "--resume", "--requests", 4)
            return stack.enter_context(started(*load, OPENSEARCH_URL=proxy.url))

        running = start()
        for number, kind in enumerate(kinds[:kills]):
            due = len(proxy.bulks) + chance.randint(1, 3)
            assert until(lambda due=due: len(proxy.bulks) >= due and nodes.workers(), running), (number, running.poll())
            if kind == "driver":
                running.kill()
                running.wait()
                running = start()
            elif kind == "machine":
                nodes.kill_second()
            elif kind == "writer":
                armed.append(kind)
                until(lambda: not armed, running)
            else:
                nodes.kill_workers(1)
        out, err = running.communicate(timeout=600)
    assert running.returncode == 3, err
    require_became(json.loads(out), became.left(index, state), plain)
    require_same(searched(index), searched(f"{index}-plain"), within=1e-5)
