"""The lines of an input, each with its number."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from langshift.compressed import DAMAGED
from langshift.errors import UsageError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineNumbers(Protocol):
    """Numbers of lines."""

    def __contains__(self, line: int, /) -> bool: ...


class Progress:
    """How far an input was read.

    Attributes:
        line: number of the last whole line; 0 before the first.
    """

    line = 0


@contextmanager
def readable(shown: str) -> Iterator[Progress]:
    """Say after which line an input can be read no further.

    Raises:
        UsageError: it is damaged, or its disk or network fails.
    """
    progress = Progress()
    try:
        yield progress
    except DAMAGED as error:
        raise UsageError(
            f"{shown}: the compressed data break off or are damaged after line {progress.line} ({error})."
        ) from error
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read after line {progress.line} ({error.strerror or error}).") from error


def numbered(lines: Iterable[bytes], shown: str, skip: LineNumbers = ()) -> Generator[tuple[int, bytes]]:
    """Lines without their line breaks, each with its number from 1; blank ones are passed over.

    Args:
        lines: all lines of an input.
        shown: how messages name it.
        skip: numbers of lines to pass over.

    Raises:
        UsageError: it can be read no further.
    """
    with readable(shown) as progress:
        for number, line in enumerate(lines, start=1):
            progress.line = number
            if number in skip:
                continue
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.isspace() and line:
                yield number, line.rstrip(b"\r\n")
