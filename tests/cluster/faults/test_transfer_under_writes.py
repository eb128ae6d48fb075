"""People write and search throughout; with the script that really shifts."""

import random
import threading
from dataclasses import replace

import numpy as np
import pytest
from opensearchpy.exceptions import AuthorizationException
from transferring import behind, everything, index, unwatched

from langshift.errors import ClusterError
from langshift.plugin import shift_script
from langshift.plugin.index_body import copied_body
from langshift.plugin.metadata import USUAL
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.transfer.run import roll_back, transfer
from langshift.plugin.transfer.state import ScriptTransform, TransferPlan

PATIENCE = 60.0
LANGUAGES = ("de", "th", "zh")
VECTORS = {tag: np.arange(4, dtype=np.float32) * 0.3 + number for number, tag in enumerate(LANGUAGES)}
OLD = StoredShift("aaaaaaaa", "en", VECTORS, 0.5)
NEW = replace(OLD, alpha=0.25)


def way(client, old, new):
    """From the one shift to the other."""

    def expected(sources):
        return [
            np.asarray(source["embedding"]) + (source["shift"]["alpha"] - new.alpha) * VECTORS[source["language"]]
            for source in sources
        ]

    params = shift_script.params(old, new, USUAL, pipeline=False)
    return ScriptTransform(shift_script.install(client), params, expected, "embedding", "shift")


def document(number, alpha):
    language = LANGUAGES[number % 3]
    vector = np.asarray([number, 1.0, 2.0, 3.5]) - alpha * VECTORS[language]
    stamp = {"vectors": OLD.hash, "alpha": alpha, "language": language, "method": "shift"}
    return {"n": number, "language": language, "embedding": vector.tolist(), "shift": stamp}


class Writers:
    """Threads that write, update and delete through the alias until they are told to stop, and one that searches.

    They stamp by the version that is live; while writing is held up they wait.
    """

    def __init__(self, client, name, first):
        self._client, self._name, self._first = client, name, first
        self._over = threading.Event()
        self.trouble = []
        self.held_up = self.searches = self.writes = 0

    def __enter__(self):
        self._threads = [threading.Thread(target=self._go, args=(action,)) for action in (self._write, self._search)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _go(self, action):
        random_ = random.Random(5)
        while not self._over.is_set():
            try:
                action(random_)
            except Exception as error:
                if not isinstance(error, AuthorizationException) or "index write" not in str(error):
                    self.trouble.append(repr(error))
                    return
                self.held_up += 1
                self._over.wait(0.02)

    def _write(self, random_):
        number = random_.randrange(self._first + 100)
        alias = {"index": self._name, "id": str(number)}
        chance = random_.random()
        if chance < 0.3:
            self._client.delete(**alias, ignore=404)
        else:
            self._client.index(**alias, body=document(number, 0.5), params={"require_alias": "true"})
        self.writes += 1

    def _search(self, _):
        answer = self._client.search(index=self._name, body={"size": 1, "query": {"match_all": {}}})
        assert answer["hits"]["hits"]
        self.searches += 1


def test_there_and_back_while_people_write_and_search_all_the_time(client, index_name):
    old = index(client, index_name, 0, number_of_shards=2)
    for number in range(300):
        client.index(index=old.index, id=str(number), body=document(number, 0.5))
    client.indices.refresh(index=old.index)
    with Writers(client, index_name, 300) as writers:
        asked = TransferPlan(index_name, copied_body(client, index_name), {"alpha": 0.25}, way(client, OLD, NEW))
        done = transfer(client, asked, watch=unwatched, patience=PATIENCE)
        rolled = roll_back(client, index_name, way(client, NEW, OLD), watch=unwatched, patience=PATIENCE)
    assert writers.trouble == []
    assert min(writers.searches, writers.writes, writers.held_up, done.documents, rolled.documents) > 0
    assert behind(client, index_name) == [old.index]
    # Some wrote after the swap with the alpha of before it: each document has what its stamp says.
    for _, source in everything(client, old.index).values():
        plain = np.asarray(document(source["n"], 0.0)["embedding"])
        shifted = plain - source["shift"]["alpha"] * VECTORS[source["language"]]
        np.testing.assert_allclose(source["embedding"], shifted, atol=1e-5)


@pytest.mark.parametrize("slices", [1, 2])
def test_a_document_that_was_shifted_by_other_vectors_is_named_by_the_script(client, index_name, slices):
    old = index(client, index_name, 0)
    for number in range(20):
        client.index(index=old.index, id=str(number), body=document(number, 0.5))
    strange = document(1, 0.5)
    strange["shift"]["vectors"] = "bbbbbbbb"
    client.index(index=old.index, id="strange", body=strange)
    asked = TransferPlan(
        index_name, copied_body(client, index_name), {"alpha": 0.25}, way(client, OLD, NEW), slices=slices
    )
    with pytest.raises(ClusterError, match="strange") as raised:
        transfer(client, asked, watch=unwatched, patience=PATIENCE)
    assert "runtime error" not in str(raised.value)
    assert behind(client, index_name) == [old.index]
