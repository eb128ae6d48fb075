"""Corpora as they are read for indexing: JSON lines, Parquet, standard input, pipes; a bad line is told, not fatal."""

import os
import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from langshift.errors import LangshiftError, UsageError
from langshift.files import PARQUET, LineNumbers, decompressed_stream, lines_of, open_decompressed, read_lines, readable
from langshift.ingest.documents import DocumentSource, Embeddings, Parser, SourceRow, first_lines
from langshift.ingest.parquet import ParquetRows

_BLOCK = 1 << 20  # bytes


class JsonLines(DocumentSource):
    """A file of JSON lines.

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
        self._parser = Parser(embeddings)
        self.field_types = self._parser.field_types
        with closing(lines_of(path, shown)) as lines:
            self.vector_spec = self._parser.sniff(map(self._parser.line, first_lines(lines)), shown)
        self.total, self.content = _measure(path, shown)

    def read(self, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines in their order; see ``Source.read``."""
        with closing(lines_of(self._path, self.shown, skip)) as lines:
            yield from map(self._parser.line, lines)


def _measure(path: Path, shown: str) -> tuple[int, str]:
    """How many lines a file has, and the SHA-256 of its bytes before compression."""
    digest, last = sha256(), b"\n"
    with readable(shown) as progress, open_decompressed(path) as unpacked:
        while block := unpacked.read(_BLOCK):
            digest.update(block)
            progress.line += block.count(b"\n")
            last = block[-1:]
    return progress.line + (last != b"\n"), digest.hexdigest()


class Pipe(DocumentSource):
    """Lines that come once.

    Args:
        lines: the lines with their numbers, without blank ones.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: none of the first lines is a document.
    """

    def __init__(self, lines: Iterator[tuple[int, bytes]], shown: str, embeddings: Embeddings) -> None:
        self.shown = shown
        self._first = deque(first_lines(lines))
        if self._first and self._first[0][1].startswith(PARQUET):
            raise UsageError(f"{shown} contains Parquet, which can only be read from a file: name the file.")
        self._lines = lines
        self._was_read = False
        self._parser = Parser(embeddings)
        self.field_types = self._parser.field_types
        self.vector_spec = self._parser.sniff(map(self._parser.line, self._first), shown)

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The lines in their order, once; see ``Source.read``."""
        if self._was_read:
            raise LangshiftError(f"{self.shown} can be read only once: save the corpus to a file.")
        self._was_read = True
        return map(self._parser.line, ((number, line) for number, line in self._all() if number not in skip))

    def _all(self) -> Iterator[tuple[int, bytes]]:
        while self._first:
            yield self._first.popleft()
        yield from self._lines


STANDARD_INPUT = "-"


def require_readable(given: str) -> None:
    """Refuse a corpus that is not there; see ``open_source``.

    Raises:
        UsageError: there is no such file, or it cannot be read.
    """
    path = Path(given)
    if given == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("Standard input is closed: give a file, or pipe the corpus in.")
    elif path.is_dir():
        raise UsageError(f"{given} is a folder: name a file, such as {path / 'corpus.jsonl'}.")
    elif not path.exists():
        raise UsageError(f"{given}: there is no such file.")
    elif not os.access(path, os.R_OK):
        raise UsageError(f"{given}: permission denied; change its permissions, or copy it to a readable place.")


@contextmanager
def open_source(given: str, *, embeddings: Embeddings = "refused") -> Iterator[DocumentSource]:
    """Open a corpus and look at its first lines.

    Args:
        given: path of a file, its first bytes tell its kind; or of a pipe; or ``-`` for standard input.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: there is no such file, it holds no document, or none of its first 1,000 lines is one: then what
            is wrong with the very first of them, so that a wrong file is refused before anything is written.
        LangshiftError: it is Parquet, and the extra is not installed.
    """
    require_readable(given)
    path = Path(given)
    with ExitStack() as stack:
        if given == STANDARD_INPUT:
            stdin: Any = sys.stdin.buffer
            stream, shown = getattr(stdin, "raw", stdin), "standard input"
        elif path.is_file():
            with path.open("rb") as file:
                parquet = file.read(len(PARQUET)) == PARQUET
            yield (ParquetRows if parquet else JsonLines)(path, given, embeddings)
            return
        else:
            stream, shown = stack.enter_context(path.open("rb", buffering=0)), given
        unpacked = stack.enter_context(decompressed_stream(stream))
        yield Pipe(read_lines(unpacked, shown), shown, embeddings)
