"""Standard input or a pipe, which give their lines once; read as they come, whatever their number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from langshift.compressed import Readable, unpacked_stream
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.documents import Embeddings
from langshift.ingest.parser import Parser, first_lines, look
from langshift.ingest.read import Read
from langshift.numbered import LineNumbers, numbered
from langshift.parquet import PARQUET


class Pipe:
    """Lines that come once; see ``Source``.

    Args:
        lines: the lines with their numbers, without blank ones.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: none of the first lines is a document.
    """

    resumable = False
    total: int | None = None
    content: str | None = None

    def __init__(self, lines: Iterator[tuple[int, bytes]], shown: str, embeddings: Embeddings) -> None:
        self.shown = shown
        self._first = deque(first_lines(lines))
        if self._first and self._first[0][1].startswith(PARQUET):
            raise UsageError(f"{shown} holds Parquet, which must be read from a file: name the file.")
        self._lines = lines
        self._was_read = False
        self.brought = look(map(Parser(embeddings).line, self._first), shown)
        self._parser = Parser(embeddings, self.brought and self.brought.dimension)

    def read(self, skip: LineNumbers) -> Iterator[Read]:
        """The lines in their order, once; see ``Source.read``."""
        if self._was_read:
            raise LangshiftError(f"{self.shown} can be read only once: put the corpus into a file.")
        self._was_read = True
        return map(self._parser.line, ((number, line) for number, line in self._all() if number not in skip))

    def _all(self) -> Iterator[tuple[int, bytes]]:
        while self._first:
            yield self._first.popleft()
        yield from self._lines


@contextmanager
def open_pipe(stream: Readable, shown: str, embeddings: Embeddings) -> Iterator[Pipe]:
    """Open a stream that gives its bytes once; it may be compressed.

    Raises:
        UsageError: none of the first lines is a document, or it holds Parquet.
    """
    with unpacked_stream(stream) as unpacked:
        yield Pipe(numbered(unpacked, shown), shown, embeddings)
