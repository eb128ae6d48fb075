"""Corpora as they are read for indexing: JSON lines, Parquet, standard input, pipes; a bad line is told, not fatal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.ingest.documents import Delete, Embeddings
from langshift.ingest.json_lines import JsonLines
from langshift.ingest.parquet import ParquetRows
from langshift.ingest.pipe import open_pipe
from langshift.ingest.read import Bad, Read, Source
from langshift.parquet import PARQUET

__all__ = ["Bad", "Delete", "Read", "Source", "open_source"]

STANDARD_INPUT = "-"


@contextmanager
def open_source(given: str, *, embeddings: Embeddings = "refused") -> Iterator[Source]:
    """Open a corpus and look at its first lines.

    Args:
        given: path of a file, its first bytes tell its kind; or of a pipe; or ``-`` for standard input.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: there is no such file, it holds no document, or none of its first 1,000 lines is one: then what
            is wrong with the very first of them, so that a wrong file is refused before anything is written.
        LangshiftError: it is Parquet, and the extra is not installed.
    """
    if given == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("Standard input is closed: give a file, or pipe the corpus in.")
        stdin: Any = sys.stdin.buffer
        with open_pipe(getattr(stdin, "raw", stdin), "standard input", embeddings) as pipe:
            yield pipe
        return
    path = Path(given)
    if path.is_dir():
        raise UsageError(f"{given} is a folder: name a file, such as {path / 'corpus.jsonl'}.")
    if not path.exists():
        raise UsageError(f"{given}: there is no such file.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{given}: you may not read it; change its permissions, or copy it to where you may.")
    if path.is_file():
        yield _file(path, given, embeddings)
        return
    with path.open("rb", buffering=0) as stream, open_pipe(stream, given, embeddings) as pipe:
        yield pipe


def _file(path: Path, given: str, embeddings: Embeddings) -> Source:
    with path.open("rb") as file:
        parquet = file.read(len(PARQUET)) == PARQUET
    return ParquetRows(path, given, embeddings) if parquet else JsonLines(path, given, embeddings)
