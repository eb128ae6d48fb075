"""Lines of text files, plain or compressed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from langshift.compressed import DAMAGED, open_unpacked
from langshift.errors import UsageError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20  # bytes


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, without the byte order mark that some programs begin a file with.

    Raises:
        UsageError: the compressed data are damaged.
    """
    number = 0
    try:
        with open_unpacked(path) as lines:
            for number, line in enumerate(lines, start=1):
                yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
    except DAMAGED as error:
        raise UsageError(
            f"{path}: the compressed data break off or are damaged after line {number} ({error})."
        ) from error


def text_lines(path: Path) -> Generator[str, None, None]:
    """Yield the lines of a file as text, without their line breaks (of any system).

    Raises:
        UsageError: a line is not UTF-8, or the compressed data are damaged.
    """
    for number, line in enumerate(raw_lines(path), start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise UsageError(f"{path}, line {number}: is not UTF-8 text.") from None


def count_lines(path: Path) -> int:
    """How many lines a file has; the last may lack its line break.

    Raises:
        UsageError: the compressed data are damaged.
    """
    lines, last = 0, b"\n"
    try:
        with open_unpacked(path) as file:
            while block := file.read(_BLOCK):
                lines += block.count(b"\n")
                last = block[-1:]
    except DAMAGED as error:
        raise UsageError(f"{path}: the compressed data break off or are damaged ({error}).") from error
    return lines + (last != b"\n")
