"""A file with one JSON object on each line; plain, gzip or zstd."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from langshift.compressed import open_unpacked
from langshift.ingest.documents import Embeddings
from langshift.ingest.parser import Parser, first_lines, look
from langshift.ingest.read import Read
from langshift.numbered import LineNumbers, numbered, readable

_BLOCK = 1 << 20  # bytes


class JsonLines:
    """A file of JSON lines; see ``Source``.

    Args:
        path: the file.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: none of the first lines is a document, or the file is damaged.
    """

    resumable = True

    def __init__(self, path: Path, shown: str, embeddings: Embeddings) -> None:
        self._path = path
        self.shown = shown
        with closing(self._lines(())) as lines:
            self.brought = look(map(Parser(embeddings).line, first_lines(lines)), shown)
        self._parser = Parser(embeddings, self.brought and self.brought.dimension)
        self.total, self.content = _measure(path, shown)

    def read(self, skip: LineNumbers) -> Generator[Read]:
        """The lines in their order; see ``Source.read``."""
        with closing(self._lines(skip)) as lines:
            yield from map(self._parser.line, lines)

    def _lines(self, skip: LineNumbers) -> Generator[tuple[int, bytes]]:
        with open_unpacked(self._path) as unpacked:
            yield from numbered(unpacked, self.shown, skip)


def _measure(path: Path, shown: str) -> tuple[int, str]:
    """How many lines a file has, and the SHA-256 of its bytes before compression."""
    digest, last = sha256(), b"\n"
    with readable(shown) as progress, open_unpacked(path) as unpacked:
        while block := unpacked.read(_BLOCK):
            digest.update(block)
            progress.line += block.count(b"\n")
            last = block[-1:]
    return progress.line + (last != b"\n"), digest.hexdigest()
