"""Reading another index as it was at one point in time: its mapping, and its documents in slices, byte for byte."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException, RequestError, TransportError

from langshift.errors import ClusterError, UsageError
from langshift.plugin import live_writes, metadata
from langshift.plugin.index_sample import random_order
from langshift.plugin.metadata import is_on
from langshift.plugin.raw_documents import RawPage, decode_hit, hit_bytes, open_raw
from langshift.plugin.stored_vector import WHOLE
from langshift.retry import RetryBudget, retry_until_available
from langshift.server_errors import Unreadable, reason


@dataclass(frozen=True)
class OldIndex:
    """An index that somebody else has made.

    Attributes:
        name: what was asked for, an index or an alias.
        index: the index itself.
        uuid: the server's own id of it.
        mappings: as ``GET /index/_mapping`` gives them.
        settings: flat, with the server's defaults.
    """

    name: str
    index: str
    uuid: str
    mappings: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """How messages name it."""
        return self.name if self.name == self.index else f"{self.name} ({self.index})"


def find_index(client: OpenSearch, name: str) -> OldIndex:
    """Look at an index; only reads.

    Args:
        client: the cluster.
        name: an index, or an alias over one.

    Raises:
        UsageError: there is none, it is several, closed, or does not keep whole documents.
    """
    index = _index_of(client, name)
    mappings, settings = metadata.read_mappings_and_settings(client, index)
    if is_on(settings.get("index.verified_before_close")):
        raise UsageError(f"Index {index} is closed: open it with POST /{index}/_open.")
    _require_whole_documents(index, mappings)
    return OldIndex(name, index, settings["index.uuid"], mappings, settings)


def _index_of(client: OpenSearch, name: str) -> str:
    if not name or any(sign in name for sign in "*?,"):
        raise UsageError(f"{name!r} is not the name of one index or alias: give one, without wildcards or commas.")
    try:
        found: dict[str, Any] = client.indices.get_alias(index=name)
    except NotFoundError:
        _require_no_data_stream(client, name)
        raise UsageError(f"There is no index {name}: `GET /_cat/indices` lists the existing indices.") from None
    except RequestError as error:
        raise UsageError(f"{name!r} is not a valid index name: {reason(error)}.") from error
    if name in found:
        return name
    if len(found) != 1:
        several = f"points to {len(found)} indices ({', '.join(sorted(found))})" if found else "points to no index"
        raise UsageError(f"{name} {several}: give the name of one index.")
    ((index, there),) = found.items()
    if "filter" in there["aliases"].get(name, {}):
        raise UsageError(f"{name} is an alias with a filter, but only a whole index can be read: use {index}.")
    return index


def _require_no_data_stream(client: OpenSearch, name: str) -> None:
    try:
        ((_, streams),) = client.indices.get_data_stream(name=name).items()
    except OpenSearchException:
        return
    indices = ", ".join(one["index_name"] for stream in streams for one in stream["indices"])
    raise UsageError(f"{name} is a data stream: give the name of one of its indices ({indices}).")


def _require_whole_documents(index: str, mappings: Mapping[str, Any]) -> None:
    source = mappings.get("_source", {})
    if source.get("enabled") is False:
        lost = "does not store `_source`"
    elif source.get("includes") or source.get("excludes"):
        lost = "stores only a part of each document's `_source`"
    else:
        return
    raise UsageError(
        f"Index {index} {lost}, so its documents cannot be read completely: load them from their original source "
        "with `langshift ingest`."
    )


# Slices that are read at once; more than a shard has are cut out of it.
_AT_ONCE = 4
# Documents of a page, and about how many bytes one may have.
_PAGE, _PAGE_BYTES = 250, 8 << 20
# The point in time outlives a pause in which the cluster takes no documents; seconds.
_LONGER, _LONGEST = 600.0, 86_000.0
_WHOLE = {"allow_partial_search_results": "false"}


class IndexReader:
    """An index as it was when this was opened; see ``open_reader``.

    Attributes:
        old: the index.
        total: how many documents it holds.
        bearing: how many of them have a vector.
        stopping: set when the cluster is waited for no longer.
        checkpoint: how far each shard was before; empty where this user may not ask. See ``live_writes``.
    """

    def __init__(
        self, client: OpenSearch, old: OldIndex, pit: str, patience: float, pool: ThreadPoolExecutor, vector: str
    ) -> None:
        self.old = old
        self._client, self._pit, self._seconds, self._pool = client, pit, patience, pool
        self.stopping = threading.Event()
        self.checkpoint: Sequence[int] = ()
        self._slices = max(int(old.settings["index.number_of_shards"]), _AT_ONCE)
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
            yield from map(hit_bytes, page.hits.hits)
        if read != self.total:
            raise ClusterError(f"Only {read:,} of the {self.total:,} documents of {self.old.index} could be read.")

    def sample(self, size: int, query: dict[str, Any], seed: int = 0) -> list[bytes]:
        """Documents at random that a query finds, the same each time.

        Args:
            size: how many at most.
            query: which may be taken.
            seed: another one gives others.
        """
        found: list[bytes] = []
        after: list[Any] | None = None
        while len(found) < size:
            sort = [{"_score": "desc"}, {"_seq_no": "asc"}]
            body = {"query": random_order(query, seed), "sort": sort, "size": min(self._most, size - len(found))}
            page = self._search(body, after)
            if not page.hits.hits:
                break
            found += map(hit_bytes, page.hits.hits)
            after = decode_hit(page.hits.hits[-1]).sort
        return found

    def _pages(self) -> Iterator[RawPage]:
        slices = iter(range(self._slices))
        reading: deque[tuple[int, Future[RawPage]]] = deque()

        def read(number: int, after: list[Any] | None = None, size: int = self._most) -> None:
            reading.append((number, self._pool.submit(self._page, number, after, size)))

        for number in islice(slices, _AT_ONCE):
            read(number)
        while reading:
            number, coming = reading.popleft()
            page = coming.result()
            if hits := page.hits.hits:
                likely = _PAGE_BYTES * len(hits) // sum(memoryview(hit).nbytes for hit in hits)
                read(number, decode_hit(hits[-1]).sort, max(1, min(self._most, likely)))
                yield page
            elif (following := next(slices, None)) is not None:
                read(following)

    def _page(self, number: int, after: list[Any] | None, size: int) -> RawPage:
        # A slice lies in one shard, as there are no fewer slices than shards: there `_doc` is a place of its own.
        part = {"id": number, "max": self._slices, "field": "_seq_no"}
        return self._search({"slice": part, "sort": ["_doc"], "size": size, "track_total_hits": False}, after)

    def _count(self, query: dict[str, Any]) -> int:
        return int(self._search({"query": query, "size": 0, "track_total_hits": True}).hits.total["value"])

    def _search(self, body: dict[str, Any], after: list[Any] | None = None) -> RawPage:
        pit = {"id": self._pit, "keep_alive": _keep_alive(self._seconds)}
        request_body = {**body, **WHOLE, "pit": pit, "version": True, **({"search_after": after} if after else {})}

        def search() -> RawPage:
            page: RawPage = self._client.search(body=request_body, params=_WHOLE)
            return page

        try:
            return retry_until_available(search, RetryBudget(self._seconds), self.stopping)
        except TransportError as error:
            if "search_context_missing_exception" in str(error.info):
                raise ClusterError(
                    f"The cluster has lost the point in time at which {self.old.index} was read, as happens when "
                    "one of its nodes stops."
                ) from error
            raise


@contextmanager
def open_reader(client: OpenSearch, old: OldIndex, vector: str, patience: float) -> Iterator[IndexReader]:
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
        reading = stack.enter_context(open_raw(client))
        before: Sequence[int] = ()
        # Before it is read: what is written in between is read, and counted as not. Where this user may not ask, nobody
        # is told of writes that come too late.
        with suppress(OpenSearchException, Unreadable):
            before = live_writes.read_checkpoint(client, old.index, int(old.settings["index.number_of_shards"]))
        made = client.create_pit(index=old.index, params={"keep_alive": _keep_alive(patience)})
        stack.callback(_forget, client, made["pit_id"])
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="slice")
        stack.callback(pool.shutdown, cancel_futures=True)
        reader = IndexReader(reading, old, made["pit_id"], patience, pool, vector)
        reader.checkpoint = before
        stack.callback(reader.stopping.set)
        yield reader


def _forget(client: OpenSearch, pit: str) -> None:
    # It ends by itself, if later.
    with suppress(OpenSearchException):
        client.delete_pit(body={"pit_id": [pit]})


def _keep_alive(patience: float) -> str:
    return f"{round(min(patience + _LONGER, _LONGEST))}s"
