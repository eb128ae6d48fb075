"""Searches of the plugin that are cancelled, too slow, or many: none hangs, and none leaves anything behind."""

import json
import threading
import time
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from filtered_index import ENCODER, QUERY, FilteredIndex
from native_plugin import has_plugin
from opensearchpy.exceptions import OpenSearchException, TransportError

from langshift.client import make_client
from langshift.settings import Settings

VECTOR = ENCODER.encode_queries([QUERY])[0].tolist()
# How often a filter draws a root: a thousandth of a second or more for each document, also on a quick machine. More
# than a million rounds of one loop are an error.
ROOTS = 300_000
SEARCH = "indices:data/read/search"
MANY = 200
PATIENCE = 60


@pytest.fixture(scope="module", autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


@pytest.fixture(scope="module")
def index(client):
    made = FilteredIndex(client, chunked=False, count=800, shards=2)
    yield made
    made.drop()


def slow(loops=1):
    """A filter that takes long."""
    loop = f"double loop(double x) {{ for (int i = 0; i < {ROOTS}; ++i) {{ x = Math.sqrt(x + i); }} return x; }} "
    return {"script": {"script": loop + "double x = 1; " + "x = loop(x); " * loops + "return x > 0;"}}


def body(filters=None, mode="anchored", **more):
    """The body of a search by the query."""
    asked = {"text": QUERY, "vector": VECTOR, "language": "en", "mode": mode, "prefer_language": 0.1}
    return {"query": {"langshift": asked | ({"filter": filters} if filters else {})}, "_source": False, **more}


def ask(client, index, **how):
    return client.search(index=index.name, body=body(**how))


@contextmanager
def running(cluster_url, index):
    """A slow search that runs meanwhile; gives where its error comes to."""
    errors = []

    def search():
        with make_client(Settings.from_env(), cluster_url) as own:
            try:
                ask(own, index, filters=slow())
                errors.append(None)
            except OpenSearchException as error:
                errors.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    yield errors
    thread.join(PATIENCE)
    assert not thread.is_alive()


def tasks(client, index, actions="indices:data/read/*"):
    """The tasks of the index alone, by their names: others search the cluster, too."""
    found = client.tasks.list(params={"actions": actions, "detailed": "true"})["nodes"].values()
    return {name: one for node in found for name, one in node["tasks"].items() if index.name in one["description"]}


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_a_search_that_is_cancelled_ends(client, cluster_url, index):
    with running(cluster_url, index) as errors:
        for task in wait_for(lambda: tasks(client, index, SEARCH)):
            client.tasks.cancel(task_id=task, params={"ignore": 404})
        wait_for(lambda: errors)
    assert "cancelled" in str(errors[0].info)
    wait_for(lambda: not tasks(client, index))


def test_a_search_whose_client_goes_away_is_cancelled(client, cluster_url, index):
    # Where other tests leave the index of ended tasks red, nothing may be told of one: then another is asked.
    told = (_is_cancelled(client, cluster_url, index) for _ in range(5))
    assert next((one for one in told if one is not None), None)
    wait_for(lambda: not tasks(client, index))


def _is_cancelled(client, cluster_url, index):
    """Whether a search whose client went away is cancelled: seen while it runs, or told at its end, else None."""
    place = urlsplit(cluster_url)
    gone, witness = (HTTPConnection(place.hostname, place.port, timeout=2 * PATIENCE) for _ in range(2))
    with closing(gone), closing(witness):
        asked = json.dumps(body(filters=slow(20), mode="dense"))
        gone.request("POST", f"/{index.name}/_search", asked, {"Content-Type": "application/json"})
        (task,) = wait_for(lambda: tasks(client, index, SEARCH))
        # What is cancelled may end before it is looked for among those that run; who waits for its end is told. Others
        # wait for tasks, too: this one is known by its name.
        witness.request(
            "GET", f"/_tasks/{task}?wait_for_completion=true&timeout={PATIENCE}s", headers={"X-Opaque-Id": index.name}
        )
        wait_for(lambda: index.name in str(client.tasks.list(params={"actions": "cluster:monitor/task/get"})))
        gone.close()
        seen = False
        while task in (running := tasks(client, index, SEARCH)):
            seen |= running[task]["cancelled"]
        return seen or json.loads(witness.getresponse().read()).get("task", {}).get("cancelled")


def test_a_first_round_that_takes_too_long_is_an_error(client, index):
    with pytest.raises(TransportError) as late:
        ask(client, index, filters=slow(), timeout="50ms")
    wanted = f"[langshift] Not all shards of {index.name}-v0001 answered in time: try again."
    assert (late.value.status_code, late.value.info["error"]["reason"]) == (503, wanted)


def test_many_searches_leave_nothing_open(client, index):
    for place in range(MANY):
        mode = ["dense", "anchored", "balanced"][place % 3]
        with suppress(OpenSearchException):
            # Every tenth is refused.
            ask(client, index, mode=mode if place % 10 else "foo")
    # A busy server ends tasks of shards a moment after it has answered.
    wait_for(lambda: not tasks(client, index))
    stats = client.indices.stats(index=f"{index.name}-v0001", metric="search")["_all"]["total"]["search"]
    assert (stats["open_contexts"], stats["query_current"], stats["point_in_time_current"]) == (0, 0, 0)
