"""Parallel text and given vectors as tables: JSON lines, Parquet, NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from langshift.debias.parallel.columns import PEEKED, ParallelRows, ParallelText, chosen, is_language, language_columns
from langshift.errors import UsageError
from langshift.files import batched, decode_line, lines_of, load_json, open_parquet

if TYPE_CHECKING:
    import pyarrow as pa

# Squares of longer ones, and sums of these, would soon be too large for float32.
LONGEST = 1e15


def sound(block: NDArray[Any], places: Sequence[str], tag: str, shown: str) -> NDArray[np.float32]:
    """The vectors of a batch as float32; without a copy where they are that already.

    Args:
        block: (n, d), of numbers; a row of NaN where there is none.
        places: names the n rows.
        tag: the language.
        shown: names the file.

    Returns:
        (n, d) float32.

    Raises:
        UsageError: a vector that is neither finite throughout nor NaN throughout, or too long.
    """
    # The sum of squares, which one pass gives without another array, is small only where all is finite.
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(block, np.float32)
        if np.vdot(vectors, vectors) < LONGEST**2:
            return vectors
    unsound = ~np.isfinite(vectors).all(axis=1) & ~np.isnan(vectors).all(axis=1)
    if unsound.any():
        place = places[int(unsound.argmax())]
        raise UsageError(f"{shown}, {place}: the vector in {tag} contains a value that is not a finite number.")
    long = np.linalg.norm(vectors.astype(np.float64), axis=1) > LONGEST
    if long.any():
        raise UsageError(
            f"{shown}, {places[int(long.argmax())]}: the vector in {tag} is longer than {LONGEST:.0e}: "
            "it is damaged, or all vectors must be scaled down."
        )
    return vectors


def spread(vectors: NDArray[np.float32], there: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The m vectors in the m of n rows that are ``there``, and NaN in the others: (n, d)."""
    if there.all():
        return vectors
    rows = np.full((len(there), vectors.shape[1]), np.nan, np.float32)
    rows[there] = vectors
    return rows


def row_places(ids: Sequence[object], otherwise: Sequence[str]) -> list[str]:
    """``id 7067032`` for each row that has an id, else ``line 12`` or ``row 12``."""
    return [
        place if value is None or value == "" else f"id {value}" for value, place in zip(ids, otherwise, strict=True)
    ]


def require_one_kind(held: Mapping[str, str], shown: str) -> str | None:
    """What columns hold, ``text`` or ``vectors``; None where there is neither.

    Args:
        held: each kind that there is, and a column that holds it.
        shown: names the table.

    Raises:
        UsageError: some hold the one, some the other.
    """
    if len(held) > 1:
        text, vectors = held["text"], held["vectors"]
        raise UsageError(f"{shown}: {text!r} contains text, but {vectors!r} contains vectors; use one kind per file.")
    return next(iter(held), None)


def numbered(word: str, first: int, count: int) -> list[str]:
    """Names of rows: ``line 5``, ``line 6`` and so on."""
    return [f"{word} {number}" for number in range(first, first + count)]


class GivenArrays(ParallelText):
    """Files ``<lang>.npy`` of a folder: (n, d) float16, float32 or float64, the same shape in every language."""

    total: int
    dimension: int

    def __init__(self, folder: Path, files: dict[str, Path]) -> None:
        """Look at the arrays.

        Args:
            folder: where the files are.
            files: those to read, by language tag.

        Raises:
            UsageError: a file is no such array, or the shapes differ.
        """
        self.shown, self.languages, self._files = str(folder), list(files), files
        (first, shape), *others = [(path, _mapped(path).shape) for path in files.values()]
        for path, other in others:
            if other != shape:
                raise UsageError(
                    f"{path} has the shape {other}, but {first} has {shape}: given vectors must be aligned row by row."
                )
        self.total, self.dimension = shape

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the files in step; see ``ParallelText``."""
        for start in range(0, self.total, size):
            places, vectors = numbered("row", start + 1, min(size, self.total - start)), {}
            for tag, path in self._files.items():
                # Mapped anew for each batch: what stays mapped would count to the process's memory.
                block = np.array(_mapped(path)[start : start + size])
                vectors[tag] = sound(block, places, tag, str(path))
            yield ParallelRows(places, {}, vectors)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = npy.open_memmap(path, mode="r")
    except ValueError:
        raise UsageError(f"{path} is not an array of numbers written by numpy.save, or is damaged.") from None
    if found.dtype.kind != "f" or found.dtype.itemsize > 8:
        raise UsageError(f"{path} contains {found.dtype}; vectors must be float16, float32 or float64.")
    if found.ndim != 2 or min(found.shape) < 1:
        raise UsageError(f"{path} has the shape {found.shape}; it must have one vector per row, (rows, dimensions).")
    return found


def kind_of(column: pa.DataType) -> str | None:
    """What a column of a type can hold for a language: ``text``, ``vectors``, or None."""
    from pyarrow import types

    if types.is_dictionary(column):
        column = column.value_type
    if types.is_string(column) or types.is_large_string(column) or types.is_string_view(column):
        return "text"
    if types.is_list(column) or types.is_large_list(column) or types.is_fixed_size_list(column):
        number = types.is_floating(column.value_type) or types.is_integer(column.value_type)
        return "vectors" if number else None
    return None


def texts_of(column: pa.Array, places: Sequence[str], path: Path) -> list[str]:
    """The n texts of a column, ``""`` for null.

    Raises:
        UsageError: bytes that are no UTF-8, which Parquet's writers need not check.
    """
    texts: list[str] = []
    try:
        for value in column:
            text = value.as_py()
            texts.append(text.strip() if text else "")
    except UnicodeDecodeError:
        raise UsageError(f"{path}, {places[len(texts)]}, is not UTF-8.") from None
    return texts


def vectors_of(column: pa.Array, dimension: int, places: Sequence[str], tag: str, path: Path) -> NDArray[np.float32]:
    """The (n, d) vectors of a column, NaN where it is null or empty; without a copy where all are there.

    Raises:
        UsageError: a vector of another dimension, or one that is not finite.
    """
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    there = lengths > 0
    other = there & (lengths != dimension)
    if other.any():
        row = int(other.argmax())
        raise UsageError(
            f"{path}, {places[row]}: the vector in {tag} has {lengths[row]} numbers, but the first one has {dimension}."
        )
    block = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    own = places if there.all() else [places[int(row)] for row in np.flatnonzero(there)]
    return spread(sound(block, own, tag, str(path)), there)


_NUMBERS = 1 << 19  # held in Python lists at a time, 32 bytes each
_MISSING: tuple[object, ...] = (None, "", [])
_Row = tuple[int, dict[str, Any]]  # line number and object


class ParallelJsonl(ParallelText):
    """A file ``.jsonl``, plain or compressed: ``{"en": "one", "th": "หนึ่ง"}``.

    A key that is missing, or whose value is null or empty, means that the row has none in that language. The first
    rows tell which keys are languages: those whose name is a tag and whose values are texts or lists of numbers.
    Other keys are left aside; ``_id`` or ``id`` names the row (see ``language_columns``).
    """

    def __init__(self, path: Path, languages: Sequence[str] | None) -> None:
        """Look into the first rows.

        Args:
            path: the file.
            languages: those to read; None reads all.

        Raises:
            UsageError: the file is empty or its first rows cannot be used.
        """
        self._path, self.shown = path, str(path)
        examples, ids = _examples(row for _, row in islice(self._rows(), PEEKED))
        if not examples:
            raise UsageError(f"{path} is empty.")
        names = [key for key, value in examples.items() if key.lower() == "id" or isinstance(value, str | list | None)]
        found, self._row_id = language_columns(names, ids, languages, self.shown)
        given = [key for key in found.values() if examples[key] is not None]
        held = {"vectors" if isinstance(examples[key], list) else "text": key for key in given}
        holds = require_one_kind(held, self.shown)
        if holds is None:
            raise UsageError(f"{path} has no text in its first {PEEKED:,} rows.")
        self._keys = chosen(found, languages, self.shown, holds)
        self.languages = list(self._keys)
        self.dimension = len(examples[held[holds]]) if holds == "vectors" else None
        self._known = None if languages is not None else set(examples)

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the file; see ``ParallelText``."""
        if self.dimension is not None:
            size = max(1, min(size, _NUMBERS // (self.dimension * len(self.languages))))
        for group in batched(self._rows(), size):
            self._refuse_late(group)
            places: list[str] = [f"line {number}" for number, _ in group]
            if self._row_id is not None:
                places = row_places([row.get(self._row_id) for _, row in group], places)
            if self.dimension is None:
                yield ParallelRows(places, {tag: self._texts(group, key) for tag, key in self._keys.items()}, {})
            else:
                yield ParallelRows(places, {}, {tag: self._vectors(group, tag, self.dimension) for tag in self._keys})

    def _rows(self) -> Iterator[_Row]:
        for number, line in lines_of(self._path):
            try:
                row = load_json(line)
            except orjson.JSONDecodeError as error:
                decode_line(line, f"{self._path}, line {number}")
                reason = f"is not valid JSON ({error.msg} at character {error.pos + 1})"
                raise UsageError(f"{self._path}, line {number}, {reason}.") from None
            if not isinstance(row, dict):
                raise UsageError(f"{self._path}, line {number}, must be a JSON object with a text in each language.")
            yield number, row

    def _refuse_late(self, group: Sequence[_Row]) -> None:
        """Refuse a language that none of the first rows has: it would be left out without a word."""
        if self._known is None:
            return
        for number, row in group:
            for key in row.keys() - self._known:
                if isinstance(row[key], str | list) and is_language(key):
                    raise UsageError(
                        f"{self._path}, line {number}: {key!r} is a language that none of the first {PEEKED:,} rows "
                        f"has: add it to the first row, as null if it has none, or select the languages to read."
                    )
            self._known |= row.keys()

    def _texts(self, group: Sequence[_Row], key: str) -> list[str]:
        texts = []
        for number, row in group:
            value = row.get(key)
            if value is not None and not isinstance(value, str):
                raise UsageError(f"{self._path}, line {number}: {key!r} must be a text or null.")
            texts.append(value.strip() if value else "")
        return texts

    def _vectors(self, group: Sequence[_Row], tag: str, dimension: int) -> NDArray[np.float32]:
        key = self._keys[tag]
        given = [(number, row[key]) for number, row in group if row.get(key) not in _MISSING]
        block = _matrix([vector for _, vector in given], dimension)
        if block is None:
            number = next(number for number, vector in given if _matrix([vector], dimension) is None)
            raise UsageError(f"{self._path}, line {number}: {key!r} must be a list of {dimension} numbers, or null.")
        vectors = sound(block, [f"line {number}" for number, _ in given], tag, self.shown)
        return spread(vectors, np.array([row.get(key) not in _MISSING for _, row in group]))


def _examples(rows: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], list[object]]:
    """For each key the first text or list that is not empty, else the last other value; and what ``id`` holds."""
    examples: dict[str, Any] = {}
    ids: list[object] = []
    for row in rows:
        for key, value in row.items():
            found = examples.setdefault(key, None)
            if not isinstance(found, str | list) and value not in _MISSING:
                examples[key] = value
            if key.lower() == "id":
                ids.append([] if isinstance(value, list) else value)  # a thousand vectors would take much memory
    return examples, ids


def _matrix(vectors: Sequence[object], dimension: int) -> NDArray[Any] | None:
    """The (n, d) array of n lists of d numbers; None where they are something else."""
    if not vectors:
        return np.empty((0, dimension), np.float32)
    try:
        block = np.array(vectors)
    except ValueError:  # lists of different length
        return None
    return block if block.shape == (len(vectors), dimension) and block.dtype.kind in "fiu" else None


class ParallelParquet(ParallelText):
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
            names = [name for name in file.schema_arrow.names if kinds[name] or name.lower() in ("id", "_id")]
            own = [name for name in names if name.lower() == "id"]
            first = next(file.iter_batches(batch_size=PEEKED, columns=own), None) if own else None
            ids = first.column(0).to_pylist() if first else []
            found, self._row_id = language_columns(names, ids, languages, self.shown)
            holds = require_one_kind({kinds[name] or "": name for name in found.values()}, self.shown) or "text"
            self._picked = chosen(found, languages, self.shown, holds)
        self.languages = list(self._picked)
        self._columns = [*self._picked.values(), *([self._row_id] if self._row_id else [])]
        self.total = sum(self._rows_of(file, types) for file in files)
        if not self.total:
            raise UsageError(f"{path} has no rows.")
        self.dimension = self._first_length() if holds == "vectors" else None

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the files; see ``ParallelText``."""
        for path in self._files:
            start = 1
            for batch in _read(path, size, self._columns):
                yield self._rows(batch, path, start)
                start += batch.num_rows

    def _rows(self, batch: pa.RecordBatch, path: Path, start: int) -> ParallelRows:
        rows = numbered("row", start, batch.num_rows)
        places = [f"{path.name}, {row}" for row in rows] if len(self._files) > 1 else rows
        if self._row_id is not None:
            places = row_places(batch.column(self._row_id).to_pylist(), places)
        columns = {tag: batch.column(name) for tag, name in self._picked.items()}
        if self.dimension is None:
            return ParallelRows(places, {tag: texts_of(column, rows, path) for tag, column in columns.items()}, {})
        vectors = {tag: vectors_of(column, self.dimension, rows, tag, path) for tag, column in columns.items()}
        return ParallelRows(places, {}, vectors)

    def _rows_of(self, path: Path, types: dict[str, pa.DataType]) -> int:
        """How many rows a file has, whose columns are as in the first."""
        with open_parquet(path) as file:
            own = {field.name: field.type for field in file.schema_arrow}
            for name in self._columns:
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
        raise UsageError(f"{self.shown} has no vectors.")


def _read(path: Path, size: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with open_parquet(path) as file:
        yield from file.iter_batches(batch_size=size, columns=columns, use_threads=False)
