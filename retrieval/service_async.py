"""An index kept open by an asynchronous service that searches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from opensearchpy.exceptions import OpenSearchException

from langshift.async_cluster import make_async_client, require_extra
from langshift.cluster import address
from langshift.errors import LangshiftError, UsageError
from langshift.retrieval.exchange import carry_out_async
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.result import SearchResult
from langshift.retrieval.standing import (
    IDENTITY,
    TRIES,
    Failed,
    Opened,
    Standing,
    closed,
    in_one_sentence,
    known,
    never_still,
    open_index,
    settled,
)
from langshift.retrieval.wish import SearchArguments, Wish, wish
from langshift.settings import Settings

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")


class AsyncIndex:
    """An open index for one event loop; closed by ``close`` or at the end of an ``async with``.

    Searches of many tasks wait for the cluster together; queries are encoded one after another in a thread of its
    own. What happens when another version comes to stand behind the name is as in ``Index``.

    Attributes:
        name: of the index, an alias or a version.
    """

    def __init__(self, opened: Opened, client: AsyncOpenSearch, thread: ThreadPoolExecutor, *, anonymous: bool) -> None:
        """Take what is open, for the event loop that runs; use ``langshift.open_index_async``."""
        self.name, self._opened = opened.name, opened
        self._client, self._thread, self._anonymous = client, thread, anonymous
        self._loop, self._closed = asyncio.get_running_loop(), False

    @classmethod
    async def open(cls, name: str, options: SearchOptions) -> AsyncIndex:
        """Open the cluster of the settings, the index and its encoder; see ``langshift.open_index_async``."""
        settings = Settings.from_env()
        anonymous = settings.username is None
        # Opened in this order, the extra that may be missing is told of before anything takes long.
        require_extra()
        thread = ThreadPoolExecutor(1, thread_name_prefix="langshift")
        opened: Opened | None = None
        try:
            opened = await _in(thread, open_index, settings, name, options)
            return cls(opened, make_async_client(settings, address(opened.client)), thread, anonymous=anonymous)
        except BaseException:
            if opened is not None:
                opened.client.close()
            thread.shutdown(wait=False)
            raise

    @property
    def version(self) -> str:
        """The version that the last search went to."""
        return self._opened.version

    async def search(self, words: str, **how: Unpack[SearchArguments]) -> SearchResult:
        """The best hits for a query; arguments and errors are those of ``Index.search``.

        Raises:
            UsageError: also where this is another event loop than the one the index was opened in.
        """
        self._require_usable()
        wanted = wish(**how)
        with in_one_sentence(self._opened.client, anonymous=self._anonymous):
            for _ in range(TRIES):
                standing = await self._aside(self._opened.standing)
                found = await self._try(standing, wanted, words)
                now = await self._client.indices.get(index=self.name, params=dict(IDENTITY))
                if known(now) == standing.identity:
                    return await self._aside(settled, found, standing, wanted.filters)
                await self._aside(self._opened.renewed, standing)
        raise never_still(self.name)

    async def _aside(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await _in(self._thread, function, *arguments, **named)
        except RuntimeError as error:
            # What the thread says that takes no more; another task has closed the index meanwhile.
            raise closed(self.name) if self._closed else error from None

    def _require_usable(self) -> None:
        if self._closed:
            raise closed(self.name)
        # Its connections hang on that loop.
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                f"An AsyncIndex belongs to the event loop it was opened in: open {self.name} again in this one."
            )

    async def _try(self, standing: Standing, wanted: Wish, words: str) -> SearchResult | Failed:
        try:
            answering = await self._aside(
                self._opened.made, standing, lambda searcher: wanted.answering(searcher, words)
            )
            return await carry_out_async(self._client, standing.searcher.index.index, answering)
        except (LangshiftError, OpenSearchException) as error:
            # Perhaps because the version is gone; that is seen to first.
            return Failed(error)

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()


async def _in(thread: ThreadPoolExecutor, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The outcome of a function that takes long, while others go on."""
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *arguments, **named))
