"""Open a file that may be compressed: plain, gzip or zstd, as its first bytes tell."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: What reading raises where the compressed data break off or are damaged.
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)


class Unpacked(Protocol):
    """The bytes of a file, as they were before compression; iterating gives lines."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def __iter__(self) -> Iterator[bytes]:
        """The lines, with their line breaks."""


@contextmanager
def open_unpacked(path: Path) -> Iterator[Unpacked]:
    """Open a file for reading its bytes, unpacked on the way."""
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            with gzip.open(raw, "rb") as unpacked:
                yield unpacked
        elif magic == b"\x28\xb5\x2f\xfd":
            with zstd.open(raw, "rb") as unpacked:
                yield unpacked
        else:
            yield raw
