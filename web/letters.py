"""The dead letters of an index by reason, counted for so long as a page may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from langshift.console import counted
from langshift.errors import LangshiftError
from langshift.ingest.bulk.dead_letter import DeadLetter
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.letter_groups import Group, grouped
from langshift.ingest.bulk.place import LoadPlace

_MOST: Final = 10_000
# Seconds: a letter holds its document, and may be large.
_LONGEST: Final = 2.0


class Letters(NamedTuple):
    """Dead letters of one index.

    Attributes:
        groups: by what was wrong, the most frequent first.
        remark: what is not shown and why; None where all is.
    """

    groups: list[Group]
    remark: str | None = None


def letters(place: LoadPlace, most: int = _MOST, seconds: float = _LONGEST) -> Letters:
    """The dead letters of a place, the first ones where there are many.

    Args:
        place: of the loads into the index.
        most: how many are counted at most.
        seconds: after which no further one is counted.
    """
    reading = _Reading(DeadLetters(place.dead_letters), most, seconds)
    try:
        groups = grouped(reading)
    except LangshiftError as error:
        return uncounted(error)
    except OSError as error:
        return Letters([], f"The dead letters cannot be read ({error.strerror}): see to it that they can be.")
    if reading.all:
        return Letters(groups)
    told = f"Only the first {counted(reading.count, 'dead letter')} were counted:"
    return Letters(groups, f"{told} `langshift dead-letters list --index {place.name}` counts all.")


def uncounted(error: LangshiftError) -> Letters:
    """No letters, and why."""
    return Letters([], f"The dead letters cannot be counted: {error}")


class _Reading:
    """Iterates over letters until there were enough of them.

    Attributes:
        count: how many there were.
        all: whether there are no more.
    """

    def __init__(self, found: DeadLetters, most: int, seconds: float) -> None:
        self._found, self._most, self._seconds = found, most, seconds
        self.count, self.all = 0, True

    def __iter__(self) -> Iterator[DeadLetter]:
        began = time.monotonic()
        for letter in self._found:
            if self.count and (self.count >= self._most or time.monotonic() - began > self._seconds):
                self.all = False
                return
            self.count += 1
            yield letter
