"""Reading an index as it was at one point in time, in slices, several of them ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, SerializationError, TransportError
from opensearchpy.serializer import JSONSerializer

from langshift.cluster import address, make_client
from langshift.errors import ClusterError
from langshift.hidden import hide
from langshift.ingest.adopt.old import OldIndex
from langshift.ingest.adopt.stored import Page, page_of, stored_of, whole
from langshift.patience import Patience
from langshift.settings import Settings
from langshift.waiting import waited_out

T = TypeVar("T")

# Slices that are read at once; more than a shard has are cut out of it.
_AT_ONCE = 4
# Documents of a page, and about how many bytes one may have.
_PAGE, _PAGE_BYTES = 250, 8 << 20
# The point in time outlives a pause in which the cluster takes no documents; seconds.
_LONGER, _LONGEST = 600.0, 86_000.0
_WHOLE = {"allow_partial_search_results": "false"}


class _Pages(JSONSerializer):
    """Reads answers only in part: the bytes of documents are to be kept."""

    def loads(self, s: str) -> Page:
        try:
            return page_of(s)
        except msgspec.DecodeError as error:
            raise SerializationError(hide(s), error) from error


class _Turn(NamedTuple):
    """The next page of a slice.

    Attributes:
        slice: its number.
        after: where the page before ended; None at the beginning.
        size: how many documents to ask for.
    """

    slice: int
    after: list[Any] | None
    size: int


class Reader:
    """An index as it was when this was opened; see ``open_reader``.

    Attributes:
        old: the index.
        total: how many documents it holds.
        bearing: how many of them have a vector.
    """

    def __init__(
        self, client: OpenSearch, old: OldIndex, pit: str, patience: float, pool: ThreadPoolExecutor, vector: str
    ) -> None:
        self.old = old
        self._client, self._pit, self._seconds, self._pool = client, pit, patience, pool
        self._stopping = threading.Event()
        self._slices = max(old.shards, _AT_ONCE)
        self._most = min(_PAGE, int(old.settings.get("index.max_result_window", _PAGE)))
        self.total = self._count({"match_all": {}})
        self.bearing = self._count({"exists": {"field": vector}})

    def documents(self) -> Iterator[bytes]:
        """Every document, as a search gives it, in no order that means anything.

        Raises:
            ClusterError: the point in time is lost, or fewer documents came than there are.
            OpenSearchException: the cluster does not answer.
        """
        read = 0
        for page in self._pages():
            read += len(page.hits.hits)
            yield from map(whole, page.hits.hits)
        if read != self.total:
            raise ClusterError(f"Only {read:,} of the {self.total:,} documents of {self.old.index} came.")

    def sample(self, size: int, query: dict[str, Any], seed: int = 0) -> list[bytes]:
        """Documents at random that a query finds, the same each time.

        Args:
            size: how many at most.
            query: which may be taken.
            seed: another one gives others.
        """
        drawn = {"random_score": {"seed": seed, "field": "_seq_no"}, "query": query, "boost_mode": "replace"}
        found: list[bytes] = []
        after: list[Any] | None = None
        while len(found) < size:
            sort = [{"_score": "desc"}, {"_seq_no": "asc"}]
            body = {"query": {"function_score": drawn}, "sort": sort, "size": min(self._most, size - len(found))}
            page = self._search({**body, **({"search_after": after} if after else {})})
            if not page.hits.hits:
                break
            found += map(whole, page.hits.hits)
            after = stored_of(page.hits.hits[-1]).sort
        return found

    def stop(self) -> None:
        """Wait for the cluster no longer."""
        self._stopping.set()

    def _pages(self) -> Iterator[Page]:
        slices = iter(range(self._slices))
        reading: deque[tuple[_Turn, Future[Page]]] = deque()

        def read(turn: _Turn) -> None:
            reading.append((turn, self._pool.submit(self._page, turn)))

        for number in islice(slices, _AT_ONCE):
            read(_Turn(number, None, self._most))
        while reading:
            turn, coming = reading.popleft()
            page = coming.result()
            if hits := page.hits.hits:
                likely = _PAGE_BYTES * len(hits) // sum(memoryview(hit).nbytes for hit in hits)
                read(_Turn(turn.slice, stored_of(hits[-1]).sort, max(1, min(self._most, likely))))
                yield page
            elif (following := next(slices, None)) is not None:
                read(_Turn(following, None, self._most))

    def _page(self, turn: _Turn) -> Page:
        # A slice lies in one shard, as there are no fewer slices than shards: there `_doc` is a place of its own.
        part = {"id": turn.slice, "max": self._slices, "field": "_seq_no"}
        body: dict[str, Any] = {"slice": part, "sort": ["_doc"], "size": turn.size, "track_total_hits": False}
        return self._search({**body, **({"search_after": turn.after} if turn.after else {})})

    def _count(self, query: dict[str, Any]) -> int:
        total = self._search({"query": query, "size": 0, "track_total_hits": True}).hits.total
        return total.value if total else 0

    def _search(self, body: dict[str, Any]) -> Page:
        pit = {"id": self._pit, "keep_alive": _keep_alive(self._seconds)}
        asked = {**body, "pit": pit, "version": True}
        page: Page = self._patiently(lambda: self._client.search(body=asked, params=_WHOLE))
        return page

    def _patiently(self, action: Callable[[], T]) -> T:
        try:
            return waited_out(action, Patience(self._seconds), self._stopping)
        except TransportError as error:
            if "search_context_missing_exception" in str(error.info):
                raise ClusterError(
                    f"The cluster has lost the point in time at which {self.old.index} was read, as it does when a "
                    "node of it ends."
                ) from error
            raise


@contextmanager
def open_reader(client: OpenSearch, old: OldIndex, vector: str, patience: float) -> Iterator[Reader]:
    """Open an index for reading as it is now: what is written to it from now on is not read.

    Nothing is written to it, and it is not refreshed: what no search sees yet is not read either.

    Args:
        client: the cluster.
        old: the index.
        vector: its field of vectors.
        patience: seconds for which a cluster that does not answer is waited for.

    Raises:
        OpenSearchException: the user may not read it so, or the cluster does not answer.
    """
    with ExitStack() as stack:
        reading = stack.enter_context(make_client(Settings.from_env(), address(client), retries=0, serializer=_Pages()))
        made = client.create_pit(index=old.index, params={"keep_alive": _keep_alive(patience)})
        stack.callback(_forget, client, made["pit_id"])
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="slice")
        stack.callback(pool.shutdown, cancel_futures=True)
        reader = Reader(reading, old, made["pit_id"], patience, pool, vector)
        stack.callback(reader.stop)
        yield reader


def _forget(client: OpenSearch, pit: str) -> None:
    # It ends by itself, if later.
    with suppress(OpenSearchException):
        client.delete_pit(body={"pit_id": [pit]})


def _keep_alive(patience: float) -> str:
    return f"{round(min(patience + _LONGER, _LONGEST))}s"
