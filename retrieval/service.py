"""The Python API: an index kept open across versions, for threads and for asynchronous services."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from inspect import Parameter, Signature
from threading import Lock
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.client import ASYNC_EXTRA, address, make_async_client, open_cluster
from langshift.debias.encoders.base import Encoder
from langshift.errors import ClusterError, LangshiftError, UsageError, require_extra
from langshift.plugin import metadata
from langshift.plugin.versions import check_name
from langshift.retrieval.plans import SearchPlan, execute, execute_async
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import ARGUMENTS, DEFAULT, SearchArguments, read_arguments
from langshift.retrieval.result import SearchResult
from langshift.retrieval.searcher import ENCODING, Searcher
from langshift.server_errors import client_errors_as_langshift_errors
from langshift.settings import Settings

T = TypeVar("T")


def make_search_options(name: object, encoder: object) -> SearchOptions:
    """The options to open an index with.

    Raises:
        UsageError: the name of the index cannot be one, or an option is not what it may be.
    """
    if not isinstance(name, str):
        raise UsageError(f"The name of the index is {name!r}, but it must be a string.")
    check_name(name)
    if encoder is not None and not (isinstance(encoder, str) and encoder):
        raise UsageError(f"encoder is {encoder!r}, but it must be the name of an encoder, or None.")
    return SearchOptions(encoder)


# What a request asks for to know which index stands behind a name, and how it was made: a few hundred bytes. The
# server's own id tells an index from another of the same name that was made when the first was gone.
IDENTITY: Final = {
    "filter_path": f"*.settings.index.uuid,*.mappings._meta.{metadata.FINGERPRINT},*.mappings._meta.{metadata.ANCHORS}",
    "ignore": 404,
}
# A search that finds another index behind the name every time gives up.
TRIES: Final = 5
# Seconds after which it is read again what languages an index holds; documents come all the time.
_LASTS = 300.0


# Makes a plan of what stands behind the name.
PlanFactory = Callable[[Searcher], SearchPlan[T]]


class OpenVersion(NamedTuple):
    """What stood behind a name at one moment.

    Attributes:
        searcher: over it.
        identity: what the server said of it before the searcher was opened.
        since: when, by the monotonic clock.
    """

    searcher: Searcher
    identity: Mapping[str, Any]
    since: float


class VersionedSearcher:
    """What stands behind the name of an index, opened; safe to use from several threads."""

    def __init__(
        self, client: OpenSearch, name: str, options: SearchOptions, encoders: dict[str, Encoder] | None = None
    ) -> None:
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
        self._options, self._encoders = options, {} if encoders is None else encoders
        self._opening = Lock()
        self._current = self._open()

    @property
    def version(self) -> str:
        """The version that is known to stand behind the name."""
        return self._current.searcher.index.index

    def current(self) -> OpenVersion:
        """What is known to stand behind the name; read again where that was long ago."""
        found = self._current
        return found if time.monotonic() - found.since < _LASTS else self.renewed(found)

    def checked(self) -> OpenVersion:
        """What stands behind the name, as the server says now."""
        found = self.current()
        return found if self.identity() == found.identity else self.renewed(found)

    def renewed(self, old: OpenVersion) -> OpenVersion:
        """What stands behind the name now that it is no longer ``old``."""
        with self._opening:
            if self._current is old:
                self._current = self._open()
            return self._current

    def execute(self, make: PlanFactory[T], arguments: SearchArguments = DEFAULT) -> tuple[Searcher, T]:
        """Carry out a plan with what stands behind the name; again where that became another meanwhile.

        Args:
            make: makes the plan; queries are encoded by it, not by the plan.
            arguments: of which the plan has its filters.

        Returns:
            What was searched, and what the plan returned.

        Raises:
            LangshiftError, OpenSearchException: as ``make`` and the plan do.
            UsageError: a filter does not fit its field, or the point in time of the plan is over.
            ClusterError: another index stood behind the name every time.
        """
        for _ in range(TRIES):
            open_version = self.current()
            found: T | LangshiftError | OpenSearchException
            try:
                found = execute(self.client, open_version.searcher.index.index, self.made(open_version, make))
            except (LangshiftError, OpenSearchException) as error:
                # Perhaps because the version is gone; that is seen to first.
                found = error
            if self.identity() == open_version.identity:
                return open_version.searcher, result_or_raise(found, open_version, arguments)
            self.renewed(open_version)
        raise version_changed_repeatedly(self.name)

    def search(self, words: str, arguments: SearchArguments) -> SearchResult:
        """The best hits for a query; errors are those of ``execute``."""
        return self.execute(lambda searcher: searcher.result_plan(words, arguments), arguments)[1]

    def made(self, open_version: OpenVersion, make: PlanFactory[T]) -> SearchPlan[T]:
        """What is left to carry out once the query is encoded; one thread at a time encodes."""
        with ENCODING:
            return make(open_version.searcher)

    def identity(self) -> Mapping[str, Any]:
        """Which index stands behind the name, as the server says it."""
        return identity_from(self.client.indices.get(index=self.name, params=dict(IDENTITY)))

    def _open(self) -> OpenVersion:
        # Asked for first: what changes while the rest is read is noticed by the first search.
        identity, since = self.identity(), time.monotonic()
        return OpenVersion(Searcher(self.client, self.name, self._options, self._encoders), identity, since)


def open_versioned_searcher(settings: Settings, name: str, options: SearchOptions) -> VersionedSearcher:
    """Open the cluster of the settings and an index on it.

    Raises:
        LangshiftError: one of the two cannot be opened.
    """
    client = open_cluster(settings)
    try:
        with client_errors_as_langshift_errors(address(client), anonymous=settings.username is None):
            return VersionedSearcher(client, name, options)
    except BaseException:
        client.close()
        raise


def result_or_raise(
    found: T | LangshiftError | OpenSearchException, open_version: OpenVersion, arguments: SearchArguments
) -> T:
    """What was found in what still stands behind the name; the error where it failed.

    Raises:
        UsageError: it failed because a filter does not fit its field, or because its point in time is over.
    """
    if not isinstance(found, LangshiftError | OpenSearchException):
        return found
    open_version.searcher.raise_cause(found, arguments)
    raise found


def identity_from(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The identity from a server's answer; empty where there is no such index."""
    return {} if "error" in answer or answer.get("status") == 404 else answer


def version_changed_repeatedly(name: str) -> ClusterError:
    """The error where every try to search met another index."""
    return ClusterError(f"{name} was pointed to another index {TRIES} times while it was searched: try again.")


def closed(name: str) -> UsageError:
    """The error where an index is searched that was closed."""
    return UsageError(f"The index {name} is closed: open it again to search it.")


X = TypeVar("X")
P = ParamSpec("P")


def _with_arguments(
    _declared: Callable[P, SearchArguments],
) -> Callable[[Callable[[X, str, SearchArguments], T]], Callable[Concatenate[X, str, P], T]]:
    """What makes a search take the arguments that are declared, each by its name."""

    def decorate(search: Callable[[X, str, SearchArguments], T]) -> Callable[Concatenate[X, str, P], T]:
        @wraps(search)
        def with_arguments(index: X, words: str, /, *_: P.args, **how: P.kwargs) -> T:
            return search(index, words, read_arguments(SearchArguments, **how))

        named = (Parameter(name, Parameter.KEYWORD_ONLY, default=one.usual) for name, one in ARGUMENTS.items())
        given = (Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "words"))
        # What `help` shows.
        with_arguments.__signature__ = Signature([*given, *named])  # type: ignore[attr-defined]
        return with_arguments

    return decorate


class Index:
    """An open index; may be used from several threads, and is closed by ``close`` or at the end of a ``with``.

    A search goes to the version that stands behind the name. After each, one small request makes sure that it still
    does; where another has come in its place, by a retune or otherwise, that is opened and searched instead. So a
    service goes on without a restart, and no query meets vectors that were made or moved otherwise than it was.

    Attributes:
        name: of the index, an alias or a version.
    """

    def __init__(self, name: str, options: SearchOptions) -> None:
        """Open the cluster of the settings, the index and its encoder; see ``langshift.open_index``."""
        settings = Settings.from_env()
        self.name, self._anonymous = name, settings.username is None
        self._opened = open_versioned_searcher(settings, name, options)
        self._client, self._closed = self._opened.client, False

    @property
    def version(self) -> str:
        """The version that the last search went to."""
        return self._opened.version

    @_with_arguments(SearchArguments)
    def search(self, words: str, arguments: SearchArguments) -> SearchResult:
        """The best hits for a query, with the keyword arguments of ``SearchArguments``.

        Raises:
            UsageError: what was given cannot be searched for, or the index is closed.
            ClusterError: the cluster did not answer as it should.
            FingerprintError: another version came to stand behind the name, and its encoder is not installed here.
        """
        if self._closed:
            raise closed(self.name)
        with client_errors_as_langshift_errors(address(self._client), anonymous=self._anonymous):
            return self._opened.search(words, arguments)

    def close(self) -> None:
        """Close the connections to the cluster."""
        self._closed = True
        self._client.close()

    def __enter__(self) -> Index:
        """The index."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


class AsyncIndex:
    """An open index for one event loop; closed by ``close`` or at the end of an ``async with``.

    Searches of many tasks wait for the cluster together; queries are encoded one after another in a thread of its
    own. What happens when another version comes to stand behind the name is as in ``Index``.

    Attributes:
        name: of the index, an alias or a version.
    """

    def __init__(self, opened: VersionedSearcher, settings: Settings, thread: ThreadPoolExecutor) -> None:
        """Take what is open, for the event loop that runs; use ``langshift.open_index_async``."""
        self.name, self._opened, self._thread = opened.name, opened, thread
        self._client, self._anonymous = make_async_client(settings, address(opened.client)), settings.username is None
        self._loop, self._closed = asyncio.get_running_loop(), False

    @classmethod
    async def open(cls, name: str, options: SearchOptions) -> AsyncIndex:
        """Open the cluster of the settings, the index and its encoder; see ``langshift.open_index_async``."""
        settings = Settings.from_env()
        # Opened in this order, the extra that may be missing is told of before anything takes long.
        require_extra(*ASYNC_EXTRA)
        thread = ThreadPoolExecutor(1, thread_name_prefix="langshift")
        opened: VersionedSearcher | None = None
        try:
            opened = await _in(thread, open_versioned_searcher, settings, name, options)
            return cls(opened, settings, thread)
        except BaseException:
            if opened is not None:
                opened.client.close()
            thread.shutdown(wait=False)
            raise

    @property
    def version(self) -> str:
        """The version that the last search went to."""
        return self._opened.version

    @_with_arguments(SearchArguments)
    async def search(self, words: str, arguments: SearchArguments) -> SearchResult:
        """The best hits for a query; arguments and errors are those of ``Index.search``.

        Raises:
            UsageError: also where this is another event loop than the one the index was opened in.
        """
        if self._closed:
            raise closed(self.name)
        # Its connections hang on that loop.
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                f"An AsyncIndex belongs to the event loop it was opened in: open {self.name} again in this one."
            )

        def make(searcher: Searcher) -> SearchPlan[SearchResult]:
            return searcher.result_plan(words, arguments)

        with client_errors_as_langshift_errors(address(self._opened.client), anonymous=self._anonymous):
            for _ in range(TRIES):
                open_version = await self._aside(self._opened.current)
                found: SearchResult | LangshiftError | OpenSearchException
                try:
                    plan = await self._aside(self._opened.made, open_version, make)
                    index = open_version.searcher.index.index
                    if arguments.rerank is None and not arguments.snippets:
                        found = await execute_async(self._client, index, plan)
                    else:
                        # Rerankers and snippets compute, or wait for a server, between the steps of a search.
                        found = await self._aside(execute, self._opened.client, index, plan)
                except (LangshiftError, OpenSearchException) as error:
                    # Perhaps because the version is gone; that is seen to first.
                    found = error
                now = await self._client.indices.get(index=self.name, params=dict(IDENTITY))
                if identity_from(now) == open_version.identity:
                    return await self._aside(result_or_raise, found, open_version, arguments)
                await self._aside(self._opened.renewed, open_version)
        raise version_changed_repeatedly(self.name)

    async def _aside(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await _in(self._thread, function, *arguments, **named)
        except RuntimeError as error:
            # What the thread says that takes no more; another task has closed the index meanwhile.
            raise closed(self.name) if self._closed else error from None

    async def close(self) -> None:
        """Close the connections to the cluster."""
        self._closed = True
        try:
            await self._client.close()
        finally:
            self._opened.client.close()
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncIndex:
        """The index."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


async def _in(thread: ThreadPoolExecutor, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The outcome of a function that takes long, while others go on."""
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *arguments, **named))


def open_index(name: str, *, encoder: str | None = None) -> Index:
    """Open an index of the cluster that the settings name (``OPENSEARCH_URL`` and so on), to be searched often.

    Args:
        name: the index, an alias or a version.
        encoder: where the index's encoder is now, if its model or server has moved.

    Returns:
        The index, for a ``with``.

    Raises:
        UsageError: a setting cannot be used, or the name.
        ClusterError: the cluster cannot be reached or refuses, or there is no such index of langshift's.
        FingerprintError: the encoder installed here is not the one that made the index.
    """
    return Index(name, make_search_options(name, encoder))


def search(name: str, words: str, *, encoder: str | None = None, **how: Any) -> SearchResult:  # noqa: ANN401
    """Search once: open an index, search it, close it. For more than one search use ``open_index``.

    Args:
        name: the index, an alias or a version.
        words: the query.
        encoder: as in ``open_index``.
        **how: mode, size, filters and so on; see ``SearchArguments``.

    Raises:
        UsageError: what was given cannot be searched for.
        ClusterError: the cluster cannot be reached or refuses, or there is no such index of langshift's.
        FingerprintError: the encoder installed here is not the one that made the index.
    """
    with open_index(name, encoder=encoder) as index:
        return index.search(words, **how)


async def open_index_async(name: str, *, encoder: str | None = None) -> AsyncIndex:
    """What ``open_index`` is, for asynchronous services; needs the extra ``langshift[async]``.

    Returns:
        The index, for an ``async with``.

    Raises:
        LangshiftError: the extra is missing; and as in ``open_index``.
    """
    return await AsyncIndex.open(name, make_search_options(name, encoder))


async def search_async(name: str, words: str, *, encoder: str | None = None, **how: Any) -> SearchResult:  # noqa: ANN401
    """What ``search`` is, for asynchronous services; needs the extra ``langshift[async]``.

    Raises:
        LangshiftError: the extra is missing; and as in ``search``.
    """
    options = make_search_options(name, encoder)
    async with await AsyncIndex.open(name, options) as index:
        return await index.search(words, **how)
