"""Parallel text, or given vectors, as Parquet: one column a language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from langshift.debias.parallel.arrow import kind_of, texts_of, vectors_of
from langshift.debias.parallel.columns import PEEKED, Columns, language_columns, row_places
from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Places, Rows
from langshift.errors import UsageError
from langshift.parquet import open_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile


class Shards:
    """Parquet files with the same columns, read one after the other.

    Columns named for a language hold strings, or lists of numbers; null or empty means that the row has none.
    Other columns are left aside; ``_id`` or ``id`` names the rows (see ``language_columns``).
    """

    def __init__(self, path: Path, files: Sequence[Path], languages: Sequence[str] | None) -> None:
        """Read the schemas.

        Args:
            path: what was given: the one file, or the folder.
            files: the files, in order.
            languages: those to read; None reads all.

        Raises:
            UsageError: the columns cannot be used or differ among the files.
            LangshiftError: the extra is not installed.
        """
        self.shown, self._files = str(path), files
        with open_parquet(files[0]) as file:
            types = {field.name: field.type for field in file.schema_arrow}
            kinds = {name: kind_of(kind) for name, kind in types.items()}
            columns = _columns(file, kinds, languages, self.shown)
            held = {kinds[name]: name for name in columns.languages.values()}
            if len(held) > 1:
                raise UsageError(
                    f"{path}: {held['text']!r} holds text but {held['vectors']!r} vectors; keep one kind in a file."
                )
            holds = "vectors" if "vectors" in held else "text"
            self._picked = chosen(columns.languages, languages, self.shown, holds)
            self._row_id = columns.row_id
        self.languages = list(self._picked)
        self.total = sum(self._rows_of(file, types) for file in files)
        if not self.total:
            raise UsageError(f"{path}: has no row.")
        self.dimension = self._first_length() if holds == "vectors" else None

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the files; see ``ParallelText``."""
        columns = [*self._picked.values(), *([self._row_id] if self._row_id else [])]
        for path in self._files:
            start = 1
            for batch in _read(path, size, columns):
                yield self._rows(batch, path, start)
                start += batch.num_rows

    def _rows(self, batch: pa.RecordBatch, path: Path, start: int) -> Rows:
        numbered = Places("row", start, batch.num_rows)
        places: Sequence[str] = numbered
        if len(self._files) > 1:
            places = Places(f"{path.name}, row", start, batch.num_rows)
        if self._row_id is not None:
            places = row_places(batch.column(self._row_id).to_pylist(), places)
        if self.dimension is None:
            texts = {tag: texts_of(batch.column(name), numbered, path) for tag, name in self._picked.items()}
            return Rows(places, texts, {})
        vectors = {
            tag: vectors_of(batch.column(name), self.dimension, numbered, tag, path)
            for tag, name in self._picked.items()
        }
        return Rows(places, {}, vectors)

    def _rows_of(self, path: Path, types: dict[str, pa.DataType]) -> int:
        """How many rows a file has, whose columns are as in the first."""
        with open_parquet(path) as file:
            own = {field.name: field.type for field in file.schema_arrow}
            for name in (*self._picked.values(), *([self._row_id] if self._row_id else [])):
                if own.get(name) != types[name]:
                    there = f"is {own[name]}" if name in own else "is missing"
                    raise UsageError(
                        f"{path}: the column {name!r} {there}, but in {self._files[0].name} it is {types[name]}."
                    )
            return int(file.metadata.num_rows)

    def _first_length(self) -> int:
        """The dimension of the first vector that there is."""
        import pyarrow.compute as pc

        columns = list(self._picked.values())
        for batch in chain.from_iterable(_read(path, PEEKED, columns) for path in self._files):
            for name in columns:
                longest = pc.max(pc.list_value_length(batch.column(name))).as_py()
                if longest:
                    return int(longest)
        raise UsageError(f"{self.shown}: has no vector.")


def _read(path: Path, size: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with open_parquet(path) as file:
        yield from file.iter_batches(batch_size=size, columns=columns, use_threads=False)


def _columns(file: ParquetFile, kinds: dict[str, str | None], languages: Sequence[str] | None, shown: str) -> Columns:
    names = [name for name in file.schema_arrow.names if kinds[name] or name.lower() in ("id", "_id")]
    own = [name for name in names if name.lower() == "id"]
    first = next(file.iter_batches(batch_size=PEEKED, columns=own), None) if own else None
    return language_columns(names, first.column(0).to_pylist() if first else [], languages, shown)
