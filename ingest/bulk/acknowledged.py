"""What the journal keeps of a line."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["index", "delete", "superseded", "dead"]


class Acknowledged(NamedTuple):
    """A line that came to an end.

    Attributes:
        line: its number, from 1.
        id: the document's ``_id``; empty where it has none, because the line could not be read.
        state: ``index`` or ``delete``: the server has confirmed it; ``superseded``: the server holds a later version
            of the document; ``dead``: it is in the dead letters.
    """

    line: int
    id: str
    state: State


class Sampled(NamedTuple):
    """A line whose vector the final check compares.

    Attributes:
        line: its number, from 1.
        id: the document's ``_id``.
        vector: the vector as it was sent, float32.
    """

    line: int
    id: str
    vector: bytes
