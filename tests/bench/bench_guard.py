"""What the guard of the embedded OpenSearch costs a search: two servers, one without it, asked in turn.

Run with ``python -m pytest -p no:randomly -s tests/bench/bench_guard.py``. Of each pair of searches another server is
asked first. Two servers of the same distribution differ by more than the guard costs: the servers change their parts
half way, and the difference of both halves is what counts.
"""

import http.client
import json
import shutil
from statistics import quantiles
from time import perf_counter
from urllib.parse import urlsplit

from opensearchpy import OpenSearch
from opensearchpy.helpers import bulk

from langshift import embedded
from langshift.embedded.artifacts import GUARD

DOCUMENTS, SEARCHES, WARM_UP, INDEX = 2_000, 1_000, 1_000, "guarded"
BODY = json.dumps({"query": {"match": {"text": "sea"}}, "size": 10})


def test_cost(new_home):
    homes = [new_home(), new_home()]
    times = {True: [], False: []}
    for guarded in (homes[0], homes[1]):
        for home in homes:
            embedded.down(home)
            lay_out(home, guarded=home is guarded)
        urls = {home is guarded: embedded.up(home).url for home in homes}
        for url in urls.values():
            fill(url)
        for has_guard, taken in asked_in_turn(urls).items():
            times[has_guard] += taken
    for has_guard, taken in times.items():
        low, median, high = (1e6 * edge for edge in quantiles(taken, n=4))
        print(f"{'with' if has_guard else 'without'}: median {median:.0f} µs, quartiles {low:.0f} to {high:.0f} µs")
    with_guard, without = (quantiles(times[which], n=4)[1] for which in (True, False))
    print(f"the guard: {1e6 * (with_guard - without):+.0f} µs a search, {100 * (with_guard / without - 1):+.1f} %")


def lay_out(home, *, guarded):
    """Give a home a distribution of its own, with the guard or without."""
    (shared,) = home.glob("opensearch-*")
    own = home / "own" / shared.name
    if not own.exists():
        shutil.copytree(shared.resolve(), own)
        (own / "plugins" / GUARD).rename(home / GUARD)
        (home / "own").chmod(0o755)
        shared.unlink()
        shared.symlink_to(own)
    here, there = home / GUARD, own / "plugins" / GUARD
    if guarded and here.exists():
        here.rename(there)
    elif not guarded and there.exists():
        there.rename(here)


def fill(url):
    """Index some short documents."""
    with OpenSearch(url) as client:
        client.indices.delete(index=f"{INDEX}*")
        client.indices.create(index=INDEX, body={"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        bulk(client, ({"_index": INDEX, "text": f"the sea {number}"} for number in range(DOCUMENTS)), refresh=True)


def asked_in_turn(urls):
    """Whether a server has the guard -> the seconds that each search took."""
    connections = {which: http.client.HTTPConnection(urlsplit(url).netloc, timeout=60) for which, url in urls.items()}
    taken = {which: [] for which in urls}
    for number in range(WARM_UP + SEARCHES):
        for which in sorted(urls, reverse=bool(number % 2)):
            start = perf_counter()
            connections[which].request("POST", f"/{INDEX}/_search", BODY, {"Content-Type": "application/json"})
            answer = connections[which].getresponse()
            answer.read()
            if number >= WARM_UP:
                taken[which].append(perf_counter() - start)
            assert answer.status == 200
    for connection in connections.values():
        connection.close()
    return taken
