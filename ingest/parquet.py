"""Rows of a Parquet file, of which the columns are what the fields of JSON lines are."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from langshift.ingest.columns import as_far_as_readable, as_json, fields_of
from langshift.ingest.documents import Embeddings
from langshift.ingest.fields import Unusable
from langshift.ingest.parser import LOOKED_AT_LINES, Parser, look
from langshift.ingest.read import Bad, Read
from langshift.numbered import LineNumbers
from langshift.parquet import open_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

_ROWS = 1024  # rows held at a time, and fewer where they are long
_BYTES = 16 << 20  # bytes held at a time, about
_BLOCK = 1 << 20  # bytes


class ParquetRows:
    """A Parquet file; see ``Source``.

    Args:
        path: the file.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: none of the first rows is a document, a column cannot be used, or the file is damaged.
        LangshiftError: the extra is not installed.
    """

    resumable = True

    def __init__(self, path: Path, shown: str, embeddings: Embeddings) -> None:
        self._path = path
        self.shown = shown
        self._parser = Parser(embeddings)
        with open_parquet(path) as file:
            self.total = int(file.metadata.num_rows)
            self._schema = as_json(file.schema_arrow, shown)
        with closing(self.read(())) as rows:
            self.brought = look(islice(rows, LOOKED_AT_LINES), shown, "row")
        self._parser = Parser(embeddings, self.brought and self.brought.dimension)
        self.content = _digest(path)

    def read(self, skip: LineNumbers) -> Generator[Read]:
        """The rows in their order; see ``Source.read``."""
        with open_parquet(self._path) as file:
            for first, batch in _batches(file, skip):
                yield from self._reads(first, batch, skip)

    def _reads(self, first: int, batch: pa.RecordBatch, skip: LineNumbers) -> Iterator[Read]:
        wanted = [row for row in range(len(batch)) if first + row not in skip]
        if not wanted:
            return
        if len(wanted) < len(batch):
            batch = batch.take(wanted)
        batch = batch.cast(self._schema, safe=False)
        for place, (row, fields) in enumerate(zip(wanted, fields_of(batch), strict=True)):
            if isinstance(fields, Unusable):
                bad = Bad(fields.type, fields.reason)
                yield Read(first + row, bad, as_far_as_readable(batch.slice(place, 1)))
            else:
                yield self._parser.row(first + row, fields)


def _batches(file: ParquetFile, skip: LineNumbers) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of rows with the number of their first; row groups that are skipped as a whole are not read."""
    first = 1
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        rows, begin = group.num_rows, first
        first += rows
        if not rows or all(row in skip for row in range(begin, first)):
            continue
        held = max(1, min(_ROWS, _BYTES * rows // max(group.total_byte_size, 1)))
        for batch in file.iter_batches(held, row_groups=[number]):
            yield begin, batch
            begin += len(batch)


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
