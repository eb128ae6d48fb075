"""What was gathered for searches, kept in memory so that a slider that moves asks the cluster for nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.console.search.sides import Choice
from langshift.ingest.search import Searcher
from langshift.ingest.searching.result import SearchResult
from langshift.ingest.shortlist.gathering import Shortlist
from langshift.ingest.shortlist.vectors import Vectors

# Two sides of some dozens of queries; with what lists show of its documents a shortlist is a few megabytes at most.
_MOST: Final = 32

T = TypeVar("T")


class Asked(NamedTuple):
    """What is searched for, beside the setting.

    Attributes:
        uuid: the server's own id of the version that is searched.
        words: the query.
        language: of it; None for detected.
        languages: of the documents; empty for all.
    """

    uuid: str
    words: str
    language: str | None
    languages: tuple[str, ...]


class Gathered:
    """A shortlist, and the vectors that are fetched for it once.

    Attributes:
        searcher: what was searched.
        shortlist: what it gave.
    """

    def __init__(self, searcher: Searcher, shortlist: Shortlist) -> None:
        self.searcher, self.shortlist = searcher, shortlist
        self._vectors: Vectors | None = None
        self._fetching = Lock()

    @property
    def fixed(self) -> str | None:
        """Why alpha cannot be moved here: by the index, or as the query has no vector; None where it can."""
        return self.searcher.shiftable or self.shortlist.lacks.get("dense")

    def vectors(self, fetch: Callable[[], Vectors]) -> Vectors:
        """The vectors; fetched by the first who asks, while others wait."""
        with self._fetching:
            if self._vectors is None:
                self._vectors = fetch()
            return self._vectors


class Kept(Generic[T]):
    """The values that were used last, by key; safe to use from several threads."""

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._lock = most, Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value; None where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Keep a value, in place of that which was used longest ago."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def of(self, key: Hashable, make: Callable[[], T], *, fresh: bool = False) -> T:
        """The value that is kept, else, or where a fresh one is wanted, one that is made."""
        found = None if fresh else self.get(key)
        return self.put(key, make()) if found is None else found


class Searches:
    """All that the search pages keep between requests.

    Attributes:
        choices: what can be searched, as it was listed last.
        gathered: shortlists.
        live: what searches gave that no shortlist can rank.
    """

    def __init__(self) -> None:
        self.choices: Kept[list[Choice]] = Kept(1)
        self.gathered: Kept[Gathered] = Kept()
        self.live: Kept[tuple[Searcher, SearchResult]] = Kept()
        self._encoded: Kept[NDArray[np.float32]] = Kept(256)

    def encoded(self, searcher: Searcher, words: str) -> NDArray[np.float32]:
        """The query's vector as the encoder makes it, shape (dimension,): made once for all indices of one encoder."""
        made = searcher.index.fingerprint
        key = (made.encoder, made.revision, made.query_prefix, words)
        return self._encoded.of(key, lambda: searcher.encode([words])[0])
