"""A live index kept open by a service, also while other versions come to stand behind its name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, RequestError

from langshift.cluster import address, open_cluster
from langshift.debias.encoders import Encoder
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.failures import failure
from langshift.plugin import meta
from langshift.retrieval.exchange import Exchange, T, carry_out
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.search import Searcher
from langshift.retrieval.wanted import NO_FILTERS, Filters
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


# Makes an exchange of what stands behind the name.
Making = Callable[[Searcher], Exchange[T]]


class Encoders(dict[str, Encoder]):
    """Encoders by name, for several threads: an encoder is no matter of two at once.

    Attributes:
        encoding: held by the thread that encodes.
    """

    def __init__(self) -> None:
        """None are open yet."""
        super().__init__()
        self.encoding = Lock()


class Failed(NamedTuple):
    """What a search came to that failed.

    Attributes:
        error: why.
    """

    error: LangshiftError | OpenSearchException


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

    def __init__(self, client: OpenSearch, name: str, options: SearchOptions, encoders: Encoders | None = None) -> None:
        """Open it.

        Args:
            client: the cluster.
            name: the index, an alias or a version.
            options: how.
            encoders: those that it shares with what else is open; None for its own.

        Raises:
            ClusterError: there is no such index of langshift's.
            FingerprintError: the encoder installed here is not the one that made the index.
        """
        self.client, self.name = client, name
        self._options, self._encoders = options, Encoders() if encoders is None else encoders
        self._opening = Lock()
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

    def carry_out(self, make: Making[T], filters: Filters = NO_FILTERS) -> tuple[Searcher, T]:
        """Carry out an exchange with what stands behind the name; again where that became another meanwhile.

        Args:
            make: makes the exchange; all encoding is done by it, not by the exchange.
            filters: those of the exchange.

        Returns:
            What was searched, and what the exchange returned.

        Raises:
            LangshiftError, OpenSearchException: as ``make`` and the exchange do.
            UsageError: a filter does not fit its field.
            ClusterError: another index stood behind the name every time.
        """
        for _ in range(TRIES):
            standing = self.standing()
            found = self._try(standing, make)
            if self.identity() == standing.identity:
                return standing.searcher, settled(found, standing, filters)
            self.renewed(standing)
        raise never_still(self.name)

    def _try(self, standing: Standing, make: Making[T]) -> T | Failed:
        try:
            return carry_out(self.client, standing.searcher.index.index, self.made(standing, make))
        except (LangshiftError, OpenSearchException) as error:
            # Perhaps because the version is gone; that is seen to first.
            return Failed(error)

    def made(self, standing: Standing, make: Making[T]) -> Exchange[T]:
        """What is left to carry out once the query is encoded; one thread at a time encodes."""
        with self._encoders.encoding:
            return make(standing.searcher)

    def encoded(self, standing: Standing, words: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries as the encoder makes them, shape (len(words), dimension); one thread at a time encodes."""
        with self._encoders.encoding:
            return standing.searcher.encode(words)

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


def settled(found: T | Failed, standing: Standing, filters: Filters) -> T:
    """What was found in what still stands behind the name; the error where it failed.

    Raises:
        UsageError: it failed because a filter does not fit its field.
    """
    if not isinstance(found, Failed):
        return found
    if isinstance(found.error, RequestError | ClusterError):
        standing.searcher.require_fitting(filters)
    raise found.error


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
