"""What is left of a chunk between two tries."""

from __future__ import annotations

from langshift.ingest.bulk.breaker import Breaker
from langshift.ingest.bulk.item import Chunk

#: So often in a row the server may fail over a chunk before the document is looked for that it fails over.
ISOLATED_AFTER = 3
# A request whose answer was lost so often in a row is perhaps too much for the server or a gateway: it is halved,
# unless it is so small that this cannot be why.
_HALVED_AFTER, _SMALL = 3, 1 << 16


class Rest:
    """What is left of a chunk, and what is known of the tries.

    Attributes:
        chunk: the items that are not settled.
        unsure: whether they may have been written already, by a request whose answer was lost.
        breaker: tells the memory breaker's answers from those about bad documents.
        lost_in_a_row: answers lost.
        failed_in_a_row: errors of the server's own.
        alone: whether the server takes others, so that the document is what it fails over.
    """

    def __init__(self, chunk: Chunk, unsure: bool, breaker: Breaker) -> None:
        self.chunk, self.unsure, self.breaker = chunk, unsure, breaker
        self.lost_in_a_row = self.failed_in_a_row = 0
        self.alone = False

    def count(self, *, failed: bool) -> None:
        """Count whether the server met an error of its own this time."""
        self.failed_in_a_row = self.failed_in_a_row + 1 if failed else 0

    @property
    def stubborn(self) -> bool:
        """Whether the server fails over the chunk again and again."""
        return self.failed_in_a_row >= ISOLATED_AFTER

    @property
    def too_heavy(self) -> bool:
        """Whether the chunk may be too large, for its answers are lost again and again."""
        return self.lost_in_a_row >= _HALVED_AFTER and len(self.chunk) > 1 and len(self.chunk.body) > _SMALL
