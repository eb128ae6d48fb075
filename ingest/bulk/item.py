"""What is sent: single operations, and chunks of them that become one bulk request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

Operation = Literal["index", "delete"]

#: A line as the input had it: its bytes, or the fields of a row where the input has no lines.
Original = bytes | Mapping[str, Any]


class Item(NamedTuple):
    """One operation on one document.

    Attributes:
        line: where the input has it, counted from 1.
        id: the document's ``_id``.
        operation: what is done.
        body: its lines of a bulk request, each with its line break: the action, and the entry where there is one.
        original: the line as the input had it, for the dead letters.
        vector: the bytes of the vector that was sent, float32, where this line belongs to the sample that the final
            check compares; else None.
        tallies: what to count it under once the server has confirmed it, such as ``language de``.
    """

    line: int
    id: str
    operation: Operation
    body: bytes
    original: Original
    vector: bytes | None = None
    tallies: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of an item, for good.

    Attributes:
        item: the item.
        state: ``done``: the server has confirmed it; ``superseded``: the server holds a later version of the document;
            ``dead``: it can never be written.
        result: the server's word where done: ``created``, ``updated``, ``deleted``, ``not_found``; ``resent`` where it
            was sent before and the answer was lost, so that nobody knows which.
        type: the error's type where dead, such as ``mapper_parsing_exception``; else empty.
        reason: the error in words where dead; else empty.
    """

    item: Item
    state: Literal["done", "superseded", "dead"]
    result: str = ""
    type: str = ""
    reason: str = ""


class Chunk:
    """Items that are sent in one request, in this order.

    Attributes:
        items: the items; at least one.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def body(self) -> bytes:
        """The request's body."""
        return b"".join([item.body for item in self.items])

    @cached_property
    def ids(self) -> frozenset[str]:
        """The documents that it writes or deletes."""
        return frozenset(item.id for item in self.items)

    @cached_property
    def deleted(self) -> frozenset[str]:
        """The documents that it deletes."""
        return frozenset(item.id for item in self.items if item.operation == "delete")

    def halves(self) -> tuple[Chunk, Chunk]:
        """The first half of the items and the second; there must be two at least."""
        middle = len(self.items) // 2
        return Chunk(self.items[:middle]), Chunk(self.items[middle:])
