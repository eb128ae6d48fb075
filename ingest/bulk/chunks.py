"""Gathering operations to chunks by count and size."""

from __future__ import annotations

from langshift.ingest.bulk.item import Chunk, Item

#: More than this gains nothing (tests/bench/bench_bulk.py), and a lost answer costs as much again.
COUNT = 500
#: Far below any server's limit (http.max_content_length: 100 MB by default, 10 MB on some managed services).
SIZE = 2 << 20


class Chunker:
    """Gather items to chunks of at most so many items and bytes; an item that is larger is a chunk of its own."""

    def __init__(self, count: int = COUNT, size: int = SIZE) -> None:
        self._count, self._size = count, size
        self._begin()

    def _begin(self) -> None:
        self._items: list[Item] = []
        self._bytes = 0
        self._ids: set[str] = set()
        self._deletes = False

    def add(self, item: Item) -> Chunk | None:
        """Add the next item; the chunk before it, where it does not fit into that one any more."""
        full = None
        if self._items and (
            len(self._items) >= self._count or self._bytes + len(item.body) > self._size or self._meets(item)
        ):
            full = self.take()
        self._items.append(item)
        self._bytes += len(item.body)
        self._ids.add(item.id)
        self._deletes = self._deletes or item.operation == "delete"
        return full

    def take(self) -> Chunk | None:
        """What was gathered since the last chunk; None where that is nothing."""
        chunk = Chunk(self._items) if self._items else None
        self._begin()
        return chunk

    def _meets(self, item: Item) -> bool:
        """Whether a delete and another operation on the same document would stand in one chunk.

        Versions keep the order of two writes, even where the first is sent again after the second. A delete's
        version is forgotten by the server after a while (``index.gc_deletes``): it waits for what came before.
        """
        return (self._deletes or item.operation == "delete") and item.id in self._ids
