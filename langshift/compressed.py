"""Open a file that may be compressed: plain, gzip or zstd, as its first bytes tell."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MAGIC = 4  # bytes that tell how a file is compressed
_BUFFER = 1 << 20  # bytes read at a time from what comes once

#: What reading raises where the compressed data break off or are damaged.
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)


class Unpacked(Protocol):
    """The bytes of a file, as they were before compression; iterating gives lines."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def __iter__(self) -> Iterator[bytes]:
        """The lines, with their line breaks."""


class Readable(Protocol):
    """A stream of bytes, such as ``FileIO``."""

    def read(self, size: int, /) -> bytes | None:
        """At most ``size`` bytes, and fewer where fewer are there; none at the end."""

    def readinto(self, buffer: Buffer, /) -> int | None:
        """Likewise into a buffer; how many."""


@contextmanager
def open_unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a file for reading its bytes, unpacked on the way."""
    with path.open("rb") as raw:
        magic = raw.read(_MAGIC)
        raw.seek(0)
        with _unpacked(raw, magic) as unpacked:
            yield unpacked


@contextmanager
def unpacked_stream(stream: Readable) -> Iterator[Unpacked]:
    """Read the bytes of a stream that cannot go back, unpacked on the way; it stays open.

    Args:
        stream: without a buffer: another thread may wait in it for bytes that never come, and would lock its buffer.
    """
    magic = b""
    while len(magic) < _MAGIC and (more := stream.read(_MAGIC - len(magic))):
        magic += more
    unpacked = _unpacked(io.BufferedReader(_Rejoined(magic, stream), _BUFFER), magic)
    yield unpacked
    # Not after an error: closing would wait for a thread that still reads.
    unpacked.close()


def _unpacked(raw: BinaryIO, magic: bytes) -> BinaryIO | gzip.GzipFile | zstd.ZstdFile:
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(raw, "rb")
    if magic == b"\x28\xb5\x2f\xfd":
        return zstd.open(raw, "rb")
    return raw


class _Rejoined(io.RawIOBase):
    """A stream with the bytes before it that were read already."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Buffer, /) -> int | None:
        """As ``RawIOBase`` has it: what is there at once."""
        if not self._head:
            return self._stream.readinto(buffer)
        view = memoryview(buffer)
        taken, self._head = self._head[: len(view)], self._head[len(view) :]
        view[: len(taken)] = taken
        return len(taken)
