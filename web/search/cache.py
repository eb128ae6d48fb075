"""What was gathered for searches, kept in memory so that a slider that moves asks the cluster for nothing."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.retrieval.gathering import Shortlist
from langshift.retrieval.result import SearchResult
from langshift.retrieval.search import Searcher
from langshift.retrieval.vectors import Vectors
from langshift.web.kept import Kept
from langshift.web.search.sides import Choice

# Two sides of some dozens of queries; with what lists show of its documents a shortlist is a few megabytes at most.
_MOST: Final = 32


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


class Searches:
    """All that the search pages keep between requests.

    Attributes:
        choices: what can be searched, as it was listed last.
        gathered: shortlists.
        live: what searches gave that no shortlist can rank.
    """

    def __init__(self) -> None:
        self.choices: Kept[list[Choice]] = Kept(1)
        self.gathered: Kept[Gathered] = Kept(_MOST)
        self.live: Kept[tuple[Searcher, SearchResult]] = Kept(_MOST)
        self._encoded: Kept[NDArray[np.float32]] = Kept(256)

    def encoded(self, searcher: Searcher, words: str) -> NDArray[np.float32]:
        """The query's vector as the encoder makes it, shape (dimension,): made once for all indices of one encoder."""
        made = searcher.index.fingerprint
        key = (made.encoder, made.revision, made.query_prefix, words)
        return self._encoded.of(key, lambda: searcher.encode([words])[0])
