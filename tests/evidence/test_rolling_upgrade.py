"""Nodes are given another plugin, or none, one after the other, while others search and write: no answer is wrong."""

import json
import shutil
import threading
import time
import uuid
from collections import Counter
from functools import partial

import pytest
from built_server import newest_of
from filtered_index import ENCODER, LANGUAGES, QUERY, FilteredIndex
from native_agreement import require_same
from native_plugin import hits_of, packed_plugin
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, TransportError
from piped_index import made_shift, make_index, raw_vector
from server_kinds import skip_without_parts
from three_nodes import NAMES, running_with

from langshift.embedded.artifacts import read_lock
from langshift.embedded.node import ServerHome
from langshift.plugin import native
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

MODES = ("dense", "balanced", "anchored")
VECTOR = ENCODER.encode_queries([QUERY])[0].tolist()
SENTENCES = (
    "[langshift] Nodes that hold a part of",
    "unknown query [langshift]",
    "The nodes of this cluster have versions of the plugin that do not understand one another",
)
# What the cluster says, with whatever status, of a node that goes away in the middle of a search.
AWAY = ("node_not_connected_exception", "node_disconnected_exception", "[langshift] Not all shards of")
SECONDS_BETWEEN, SERVICE_UNAVAILABLE = 0.05, 503
REFUSED = "search: refused in a sentence"


@pytest.fixture(scope="module")
def nodes(new_home, quick_java, pytestconfig):
    home = new_home()
    packed = packed_plugin(home, pytestconfig.cache.mkdir("langshift")).whole
    with running_with(packed, home, quick_java, *NAMES) as made:
        yield made, home


def another(home, folder, version, form):
    """The plugin of another version, whose nodes send the query in another form or the same."""
    sources = folder / f"sources-{version}"
    shutil.copytree(native.source_folder(), sources)
    (file,) = sources.rglob("LangshiftQueryBuilder.java")
    text = file.read_text(encoding="utf-8")
    assert "int FORM = 1;" in text
    file.write_text(text.replace("int FORM = 1;", f"int FORM = {form};"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "source_folder", lambda: sources)
        patch.setattr(native, "VERSION", version)
        return native.build(read_lock(), home / "downloads", folder / version).whole


class Load:
    """Searches and writes of many clients, each of which asks one node after the other.

    Attributes:
        counts: what came of the requests -> how often.
        wrong: answers that are neither right nor a sentence.
        written: ids of documents that the cluster has said to have.
    """

    def __init__(self, three, index, wanted, target):
        self.counts, self.wrong, self.written = Counter(), [], []
        self._three, self._index, self._wanted, self._target = three, index, wanted, target
        self._over, self._lock = threading.Event(), threading.Lock()
        self._threads = [
            threading.Thread(target=one, daemon=True) for one in (self._searches, self._searches, self._writes)
        ]

    def __enter__(self):
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for one in self._threads:
            one.join()

    def _clients(self):
        return [OpenSearch(self._three.url(name), timeout=30, max_retries=0) for name in NAMES]

    def _searches(self):
        clients, at = self._clients(), 0
        while not self._over.is_set():
            mode, client = MODES[at % len(MODES)], clients[at % len(clients)]
            at += 1 + at // 3 % 2
            asked = {"text": QUERY, "vector": VECTOR, "language": "en", "mode": mode}
            body = {"query": {"langshift": asked}, "_source": False}
            try:
                found = client.search(index=self._index, body=body, params={"allow_partial_search_results": "false"})
                require_same(hits_of(found), self._wanted[mode])
            except AssertionError as error:
                self._tell("wrong", (mode, str(error)))
            except OpenSearchException as error:
                self._refused("search", error)
            else:
                self._tell("search: right")
            time.sleep(SECONDS_BETWEEN)

    def _writes(self):
        clients, at = self._clients(), 0
        while not self._over.is_set():
            at += 1
            body = {"embedding": raw_vector(), "language": LANGUAGES[1], "text": f"Ebbe {at}"}
            try:
                clients[at % len(clients)].index(index=self._target, id=str(at), body=body)
            except OpenSearchException as error:
                self._refused("write", error)
            else:
                self._tell("write: taken")
                self.written.append(str(at))
            time.sleep(SECONDS_BETWEEN)

    def _refused(self, what, error):
        info = json.dumps(error.info, default=str) if isinstance(error, TransportError) else str(error)
        if any(one in info for one in SENTENCES):
            self._tell(f"{what}: refused in a sentence")
        elif error.status_code in ("N/A", "TIMEOUT", SERVICE_UNAVAILABLE) or any(one in info for one in AWAY):
            self._tell(f"{what}: the node is away")
        elif what == "write" and "langshift" in info and "processor" in info:
            self._tell("write: refused in a sentence")
        else:
            self._tell("wrong", (what, info[:400]))

    def _tell(self, what, wrong=None):
        with self._lock:
            self.counts[what] += 1
            if wrong:
                self.wrong.append(wrong)


def prepared(three):
    """An index and what is to be found in it; one to be written to, and what its vectors become. Both have replicas."""
    with OpenSearch(three.url(NAMES[0]), timeout=60) as client:
        index = FilteredIndex(client, chunked=False, shards=3)
        client.indices.put_settings(index=index.name, body={"index.number_of_replicas": 1})
        searcher = Searcher(client, index.name, opened={"toy": ENCODER})
        wanted = {mode: searcher.search(QUERY, SearchSettings(mode), language="en").hits for mode in MODES}
        client.ingest.put_pipeline(id="shifting", body={"processors": [{"langshift": {}}]})
        target = make_index(client, f"rolling-{uuid.uuid4().hex[:8]}", made_shift(alpha=0.75))
        client.indices.put_settings(
            index=target, body={"index": {"default_pipeline": "shifting", "number_of_replicas": 2}}
        )
        client.cluster.health(params={"wait_for_status": "green", "timeout": "60s", "request_timeout": 90})
        client.index(index=target, id="0", body={"embedding": raw_vector(), "language": LANGUAGES[1], "text": "Ebbe"})
        shifted = client.get(index=target, id="0")["_source"]["embedding"]
    return index.name, wanted, target, shifted


def roll(three, steps):
    """Change one node after the other, under load; what came of the requests of each step."""
    index, wanted, target, shifted = prepared(three)
    told = {}
    with Load(three, index, wanted, target) as load:
        for name, what, change in steps:
            before = load.counts.copy()
            three.stop_one(name)
            change()
            three.up()
            with OpenSearch(three.url(name), timeout=60) as client:
                params = {"wait_for_status": "green", "timeout": "120s", "request_timeout": 150}
                assert client.cluster.health(params=params)["status"] == "green"
            time.sleep(3)
            told[f"{len(told) + 1}. {what} on {name}"] = dict(load.counts - before)
    print(json.dumps(told, indent=1))
    print(dict(load.counts))
    assert load.wrong == []
    assert min(load.counts["search: right"], load.counts["write: taken"]) > len(steps) * 10
    with OpenSearch(three.url(NAMES[0]), timeout=60) as client:
        client.indices.refresh(index=target)
        found = {name: client.get(index=target, id=name)["_source"]["embedding"] for name in load.written}
        assert len(found) == len(load.written)
        assert all(one == pytest.approx(shifted, abs=1e-6) for one in found.values())
        client.indices.delete(index=f"{index}-v0001,{target}")
    return told


def test_another_plugin_on_one_node_after_the_other(nodes, tmp_path):
    three, home = nodes

    def given(packed, name):
        def change():
            native.remove(three.plugins(name))
            if packed is not None:
                native.unpack(packed, three.plugins(name))

        return change

    same, other = another(home, tmp_path, "0.1.1", 1), another(home, tmp_path, "0.2.0", 2)
    steps = [(name, "0.1.1", given(same, name)) for name in NAMES]
    steps += [(name, "0.2.0", given(other, name)) for name in NAMES]
    steps += [(NAMES[2], "none", given(None, NAMES[2])), (NAMES[2], "0.2.0", given(other, NAMES[2]))]
    told = roll(three, steps)
    # While both forms are sent the same way, no search is refused.
    assert not [step for step, counts in told.items() if " 0.1.1 on " in step and REFUSED in counts]


def test_another_server_on_one_node_after_the_other(nodes):
    three, home = nodes
    skip_without_parts(newest=True)
    newest = newest_of(ServerHome.of(home))
    told = roll(three, [(name, "3.8", partial(three.give, name, newest)) for name in NAMES])
    assert not [step for step, counts in told.items() if REFUSED in counts]
