"""A live index kept open by a service, also while other versions come to stand behind its name."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, RequestError

from langshift.cluster import address, failure, open_cluster
from langshift.errors import ClusterError, UsageError
from langshift.ingest.encoders import Encoder
from langshift.ingest.opening import SearchOptions
from langshift.ingest.search import Searcher
from langshift.ingest.searching.result import SearchResult
from langshift.ingest.searching.wish import Wish
from langshift.plugin import meta
from langshift.plugin.search.exchange import Exchange
from langshift.settings import Settings

# What a request asks for to know which index stands behind a name, and how it was made: a few hundred bytes. The
# server's own id tells an index from another of the same name that was made when the first was gone.
IDENTITY: Final = {
    "filter_path": f"*.settings.index.uuid,*.mappings._meta.{meta.FINGERPRINT},*.mappings._meta.{meta.ANCHORS}",
    "ignore": 404,
}
# A search that finds another index behind the name every time gives up.
TRIES: Final = 5
# Seconds after which it is read again what languages an index holds; documents come all the time.
_LASTS = 300.0


class Standing(NamedTuple):
    """What stood behind a name at one moment.

    Attributes:
        searcher: over it.
        identity: what the server said of it before the searcher was opened.
        since: when, by the monotonic clock.
    """

    searcher: Searcher
    identity: Mapping[str, Any]
    since: float


class Opened:
    """What stands behind the name of an index, opened; safe to use from several threads."""

    def __init__(self, client: OpenSearch, name: str, options: SearchOptions) -> None:
        """Open it.

        Raises:
            ClusterError: there is no such index of langshift's.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self.client, self.name = client, name
        self._options, self._encoders = options, dict[str, Encoder]()
        self._opening, self._encoding = Lock(), Lock()
        self._standing = self._open()

    @property
    def version(self) -> str:
        """The version that is known to stand behind the name."""
        return self._standing.searcher.index.index

    def standing(self) -> Standing:
        """What is known to stand behind the name; read again where that was long ago."""
        found = self._standing
        return found if time.monotonic() - found.since < _LASTS else self.renewed(found)

    def renewed(self, old: Standing) -> Standing:
        """What stands behind the name now that it is no longer ``old``."""
        with self._opening:
            if self._standing is old:
                self._standing = self._open()
            return self._standing

    def answering(self, standing: Standing, wish: Wish, words: str) -> Exchange[SearchResult]:
        """What is left to carry out once the query is encoded; one thread at a time encodes."""
        with self._encoding:
            return wish.answering(standing.searcher, words)

    def identity(self) -> Mapping[str, Any]:
        """Which index stands behind the name, as the server says it."""
        return known(self.client.indices.get(index=self.name, params=dict(IDENTITY)))

    def _open(self) -> Standing:
        # Asked for first: what changes while the rest is read is noticed by the first search.
        identity, since = self.identity(), time.monotonic()
        return Standing(Searcher(self.client, self.name, self._options, self._encoders), identity, since)


def open_index(settings: Settings, name: str, options: SearchOptions) -> Opened:
    """Open the cluster of the settings and an index on it.

    Raises:
        LangshiftError: one of the two cannot be opened.
    """
    client = open_cluster(settings)
    try:
        with in_one_sentence(client, anonymous=settings.username is None):
            return Opened(client, name, options)
    except BaseException:
        client.close()
        raise


def settled(found: SearchResult | Exception, standing: Standing, wish: Wish) -> SearchResult:
    """What was found in what still stands behind the name; the error where it failed.

    Raises:
        UsageError: it failed because a filter does not fit its field.
    """
    if isinstance(found, SearchResult):
        return found
    if isinstance(found, RequestError | ClusterError):
        standing.searcher.require_fitting(wish.filters)
    raise found


def known(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The identity from a server's answer; empty where there is no such index."""
    return {} if "error" in answer or answer.get("status") == 404 else answer


def never_still(name: str) -> ClusterError:
    """The error where every try to search met another index."""
    return ClusterError(f"{name} came to stand for another index {TRIES} times while it was searched: try again.")


def closed(name: str) -> UsageError:
    """The error where an index is searched that was closed."""
    return UsageError(f"The index {name} is closed: open it again to search it.")


@contextmanager
def in_one_sentence(client: OpenSearch, *, anonymous: bool) -> Iterator[None]:
    """Make what the client library raises an error of langshift's, with a sentence for a person."""
    try:
        yield
    except OpenSearchException as error:
        raise failure(error, address(client), anonymous=anonymous) from error
