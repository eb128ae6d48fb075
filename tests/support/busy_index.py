"""An index that people write to and search all the time, and what has to be in it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException
from shifted_index import DIMENSION, LANGUAGES

from langshift.debias.vectors import LanguageVectors

# Seconds: between two actions of somebody, and before what a write block has refused is sent again. Without pauses the
# server would have nothing to do but to answer.
_PAUSE = 0.02
_LONGEST = 120.0  # seconds, for which a write block is borne
_AFTER = 0.5  # seconds
Document = dict[str, Any]


class Writer:
    """Writes, updates, deletes and makes anew documents of its own through the alias, and keeps what was confirmed.

    Vectors are sent as an encoder gives them, with the language: the pipeline of the index shifts them. Whoever writes
    tries again what the block of the last steps refuses, and nothing else.

    Attributes:
        held: id -> what was confirmed last of each document that it has not deleted.
        confirmed: how many writes were.
        refused: how many tries a write block refused.
    """

    def __init__(self, client: OpenSearch, name: str, number: int, *, batch: int = 1) -> None:
        self._client, self._name, self._batch = client, name, batch
        self._ids = [f"w{number}-{one}" for one in range(5 * max(batch, 10))]
        self._chance, self._numbers = random.Random(number), np.random.default_rng(number)
        self.held: dict[str, Document] = {}
        self.confirmed = self.refused = 0

    def write(self) -> None:
        """One write of any kind."""
        name = self._chance.choice(self._ids)
        if self._batch > 1:
            self._send_many(self._chance.sample(self._ids, self._batch))
        elif name not in self.held:
            self._send(name)
        else:
            self._chance.choice([self._send, self._update, self._delete, self._anew])(name)

    def _send(self, name: str) -> None:
        document = self._document(name)
        self._tried(lambda: self._client.index(index=self._name, id=name, body=document))
        self.held[name] = document

    def _update(self, name: str) -> None:
        seen = self._chance.randrange(1000)
        self._tried(lambda: self._client.update(index=self._name, id=name, body={"doc": {"seen": seen}}))
        self.held[name] = {**self.held[name], "seen": seen}

    def _delete(self, name: str) -> None:
        self._tried(lambda: self._client.delete(index=self._name, id=name))
        del self.held[name]

    def _anew(self, name: str) -> None:
        self._delete(name)
        self._send(name)

    def _send_many(self, names: list[str]) -> None:
        left = {name: self._document(name) for name in names}
        deadline = time.monotonic() + _LONGEST
        while left:
            assert time.monotonic() < deadline, "writes are blocked for too long"
            body = [line for name, one in left.items() for line in ({"index": {"_id": name}}, one)]
            for item in self._client.bulk(index=self._name, body=body)["items"]:
                result = item["index"]
                if "error" not in result:
                    self.held[result["_id"]] = left.pop(result["_id"])
                    self.confirmed += 1
                    continue
                assert result["error"]["type"] == "cluster_block_exception", result
                self.refused += 1
            if left:
                time.sleep(_PAUSE)

    def _tried(self, action: Callable[[], object]) -> None:
        deadline = time.monotonic() + _LONGEST
        while True:
            try:
                action()
            except AuthorizationException as error:
                if error.error != "cluster_block_exception":
                    raise
                assert time.monotonic() < deadline, "writes are blocked for too long"
                self.refused += 1
                time.sleep(_PAUSE)
            else:
                self.confirmed += 1
                return

    def _document(self, name: str) -> Document:
        language = self._chance.choice([tag for tag in LANGUAGES if tag != "und"])
        vector = (5 * self._numbers.standard_normal(DIMENSION)).astype(np.float32)
        return {"text": f"Text {name}", "language": language, "embedding": vector.tolist()}


class Searcher:
    """Searches through the alias, by a vector and by words in turn, as somebody who tries nothing twice.

    Attributes:
        answers: how many there were.
        versions: the versions that they came from.
    """

    def __init__(self, client: OpenSearch, name: str, number: int) -> None:
        self._client, self._name = client, name
        self._numbers = np.random.default_rng(number)
        self.answers = 0
        self.versions: set[str] = set()

    def search(self) -> None:
        """One search, whose answer must be whole."""
        vector = self._numbers.standard_normal(DIMENSION).tolist()
        by_vector = {"knn": {"embedding": {"vector": vector, "k": 5}}}
        query = by_vector if self.answers % 2 else {"match": {"text.de": "Text"}}
        found = self._client.search(index=self._name, body={"query": query, "size": 5, "_source": False})
        assert not found["timed_out"], found
        assert (found["_shards"]["failed"], found["_shards"]["successful"]) == (0, found["_shards"]["total"]), found
        assert len(found["hits"]["hits"]) == 5, found
        (index,) = {hit["_index"] for hit in found["hits"]["hits"]}
        self.answers += 1
        self.versions.add(index)


@contextmanager
def busy(*actions: Callable[[], None]) -> Iterator[None]:
    """Each action again and again in a thread of its own, until a little after the block; fails where one does."""
    ended, failures = threading.Event(), []

    def again(action: Callable[[], None]) -> None:
        try:
            while not ended.is_set():
                action()
                time.sleep(_PAUSE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=again, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    try:
        yield
        time.sleep(_AFTER)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def require_held(
    client: OpenSearch, index: str, held: dict[str, Document], vectors: LanguageVectors, alpha: float
) -> None:
    """A version holds these documents and no others, each shifted by this scale and stamped so."""
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 10_000})["hits"]["hits"]
    stored = {hit["_id"]: hit["_source"] for hit in hits}
    assert stored.keys() == held.keys()
    for name, document in held.items():
        there, language = stored[name], document["language"]
        key = None if language == "und" else vectors.key(language)
        raw = np.array(document["embedding"], np.float64)
        expected = raw if key is None else raw - alpha * vectors.vectors[key].astype(np.float64)
        error = np.abs(np.array(there["embedding"], np.float64) - expected).max()
        assert error <= 1e-6 * np.linalg.norm(raw), (name, error, there["shift"])
        assert there["shift"]["alpha"] == (alpha if key is not None else 0), (name, there["shift"])
        assert there.get("seen") == document.get("seen"), name
