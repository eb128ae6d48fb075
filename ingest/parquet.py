"""Rows of a Parquet file, of which the columns are what the fields of JSON lines are."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from decimal import Decimal
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from langshift.corpus_file import CorpusFile, Start
from langshift.debias.parallel.tables import kind_of
from langshift.errors import UsageError
from langshift.files import LONGEST_LINE, LineNumbers, open_parquet, too_long
from langshift.ingest.documents import EMBEDDING, InvalidRow, SourceRow
from langshift.ingest.parquet_pages import require_small_pages, rows_at_a_time
from langshift.ingest.parsing import Parser
from langshift.ingest.sources import Rows, first_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

_ROWS = 1024  # rows held at a time
# Which rows tell what all are like: the first of each of so many row groups, evenly over the file.
_GROUPS_DRAWN_FROM, _ROWS_OF_A_GROUP = 64, 16


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the fields of each row, as JSON has them; those that are null are left out.

    Raises:
        UsageError: the file is no Parquet file, a column is of a type that a document cannot have, or a row cannot be
            read.
        LangshiftError: the extra is not installed.
    """
    with open_parquet(path) as file:
        schema = as_json(file.schema_arrow, str(path))
        batches = (batch.cast(schema, safe=False) for batch in file.iter_batches(batch_size=_ROWS))
        for number, fields in enumerate((row for batch in batches for row in fields_of(batch)), start=1):
            if isinstance(fields, InvalidRow):
                raise UsageError(f"{path}, line {number}, {fields.reason}")
            vector = fields.get(EMBEDDING)
            yield number, {**fields, **({EMBEDDING: vector.tolist()} if isinstance(vector, np.ndarray) else {})}


Fields = Mapping[str, Any]


def as_json(schema: pa.Schema, shown: str) -> pa.Schema:
    """The schema that every batch is brought to first: what Python takes as it is.

    Raises:
        UsageError: a column's type is none that a document's field can have, or two columns have one name.
    """
    import pyarrow as pa

    columns = []
    for column in schema:
        plain = _plain(column.type)
        if plain is None:
            raise UsageError(
                f"{shown}: the column {column.name!r} is of type {column.type}, which a document cannot have: "
                "leave it out, or convert it to text."
            )
        columns.append(pa.field(column.name, plain))
    twice = {name for name in schema.names if schema.names.count(name) > 1}
    if twice:
        raise UsageError(f"{shown}: several columns are named {min(twice)!r}; rename them.")
    return pa.schema(columns)


def _plain(column: pa.DataType) -> pa.DataType | None:
    """The type as JSON can have it; None where it cannot."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column):
        return _plain(column.value_type)
    if types.is_list(column) or types.is_large_list(column) or types.is_fixed_size_list(column):
        inner = _plain(column.value_type)
        if inner is None:
            return None
        return pa.list_(inner, column.list_size) if types.is_fixed_size_list(column) else pa.large_list(inner)
    if types.is_map(column):
        named, inner = types.is_string(column.key_type), _plain(column.item_type)
        return pa.map_(pa.string(), inner) if named and inner is not None else None
    if types.is_struct(column):
        inners = [(field.name, _plain(field.type)) for field in column]
        return pa.struct(inners) if all(inner is not None for _, inner in inners) else None
    return _plain_value(column)


def _plain_value(column: pa.DataType) -> pa.DataType | None:
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(column):
        # Python knows no nanoseconds. A zone by name would need its tables; the moment is the same in UTC.
        return pa.timestamp("us", tz="UTC" if column.tz else None)
    plain_types = (
        (pa.large_string(), types.is_string, types.is_large_string, types.is_string_view),
        (pa.time64("us"), types.is_time),
        (pa.date32(), types.is_date),
        (column, types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal),
    )
    return next((plain for plain, *kinds in plain_types if any(is_it(column) for is_it in kinds)), None)


def fields_of(batch: pa.RecordBatch) -> list[Fields | InvalidRow]:
    """The fields of each row; those that are null are left out.

    Args:
        batch: rows of the schema of ``as_json``.

    Returns:
        For each row its fields, ``embedding`` as an array, shape (dimension,), where the column holds lists of
        numbers; or what makes it unusable.
    """
    names = batch.schema.names
    vectors: list[Any] = [None] * len(batch)
    if EMBEDDING in names and kind_of(batch.schema.field(EMBEDDING).type) == "vectors":
        vectors = _vectors(batch.column(EMBEDDING))
        batch = batch.drop_columns([EMBEDDING])
    return [
        row if vector is None or isinstance(row, InvalidRow) else {**row, EMBEDDING: vector}
        for row, vector in zip(_rows(batch, len(vectors)), vectors, strict=True)
    ]


def _rows(batch: pa.RecordBatch, length: int) -> list[Fields | InvalidRow]:
    if not batch.num_columns:
        return [{} for _ in range(length)]
    try:
        return [_fields(row) for row in batch.to_pylist(maps_as_pydicts="strict")]
    except (ValueError, OverflowError):
        pass
    # One row spoils the whole batch, whose others are good.
    found: list[Fields | InvalidRow] = []
    for number in range(length):
        try:
            found.extend(_fields(row) for row in batch.slice(number, 1).to_pylist(maps_as_pydicts="strict"))
        except UnicodeDecodeError:
            found.append(InvalidRow("invalid_document", "contains text that is not UTF-8."))
        except (ValueError, OverflowError) as error:
            found.append(InvalidRow("invalid_document", f"contains a value that cannot be read ({error})."))
    return found


def _fields(row: Mapping[str, Any]) -> Fields | InvalidRow:
    there = {name: value for name, value in row.items() if value is not None}
    try:
        # What JSON makes of dates, times and numbers that are none.
        fields = orjson.loads(orjson.dumps(there, default=_number))
    except orjson.JSONEncodeError as error:
        return InvalidRow("invalid_document", f"cannot be written as JSON ({error}).")
    return {name: value for name, value in fields.items() if value is not None}


def _number(value: object) -> int | float:
    """A decimal as JSON has it: whole where its column is, so that none is rounded; orjson refuses it over 64 bits."""
    if not isinstance(value, Decimal):
        raise TypeError
    return float(value) if "." in f"{value:f}" else int(value)


def _vectors(column: pa.Array) -> list[Any]:
    import pyarrow.compute as pc

    there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    lengths = np.where(there, pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False), 0)
    ends = np.cumsum(lengths)
    numbers = column.flatten().to_numpy(zero_copy_only=False)
    return [
        numbers[end - length : end] if valid else None
        for valid, length, end in zip(there.tolist(), lengths.tolist(), ends.tolist(), strict=True)
    ]


def as_far_as_readable(row: pa.RecordBatch) -> dict[str, Any]:
    """The columns of a single bad row; bytes that are no text with each such byte as ``\\xff``."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            value = column[0].as_py()
        except (ValueError, OverflowError):
            # A column that is nested is left out: nothing of it can be had.
            value = None
            if pa.types.is_large_string(column.type):
                value = column.cast(pa.large_binary())[0].as_py().decode(errors="backslashreplace")
            elif not pa.types.is_nested(column.type):
                value = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())[0].as_py()
        if value is not None:
            found[name] = value
    return found


_KEPT = 10_000  # characters of a text in a row that is too long


def beginning(row: pa.RecordBatch) -> dict[str, Any]:
    """The columns of a single row that is too long: of texts only the beginning, and nothing of what is nested."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        if pa.types.is_large_string(column.type):
            column = pc.utf8_slice_codeunits(column, 0, _KEPT)
        found[name] = column
    return as_far_as_readable(pa.RecordBatch.from_pydict(found))


class ParquetRows(Rows):
    """A Parquet file.

    Args:
        file: the file.
        parser: makes documents of its rows.

    Raises:
        UsageError: a column cannot be used, or the file is damaged.
        LangshiftError: the extra is not installed.
    """

    unit = "row"

    def __init__(self, file: CorpusFile, parser: Parser) -> None:
        super().__init__(file, parser)
        with self._open() as opened:
            require_small_pages(opened.metadata, file.reader(), self.shown)
            self.total = int(opened.metadata.num_rows)
            self._groups = [opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups)]
            self._schema = as_json(opened.schema_arrow, self.shown)

    def _open(self) -> AbstractContextManager[ParquetFile]:
        return open_parquet(self.shown, self._file.reader())

    def first(self) -> Generator[SourceRow]:
        """The first rows."""
        with closing(self._rows((), 0)) as rows:
            yield from first_of(rows)

    def measure(self, look: Callable[[bytes], None]) -> None:  # noqa: ARG002 - these are no lines
        """Read its bytes; see ``Rows.measure``."""
        self._file.measure()
        self.content = self._file.content

    def drawn(self) -> Generator[SourceRow]:
        """The first rows of row groups from all over the file."""
        with self._open() as file:
            groups = range(file.metadata.num_row_groups)
            for number in groups[:: -(-len(groups) // _GROUPS_DRAWN_FROM) or 1]:
                most = rows_at_a_time(file.metadata.row_group(number), self._file.reader())
                for batch in islice(file.iter_batches(min(most, _ROWS_OF_A_GROUP), row_groups=[number]), 1):
                    if batch.nbytes <= LONGEST_LINE:
                        yield from self._parsed([0] * len(batch), batch.cast(self._schema, safe=False))

    def read(self, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """The rows in their order; see ``Rows.read``."""
        with self._file.watched(), closing(self._rows(skip, before)) as rows:
            yield from rows
        # They are read here and there: which bytes were read is not known.
        self._file.require_unchanged(surely=True)

    @property
    def starts(self) -> Sequence[Start]:
        """The first row of each row group; see ``Rows.starts``."""
        return [Start(1 + rows, 0) for rows in accumulate(self._groups[:-1], initial=0)]

    def part(self, start: Start, last: int, skip: LineNumbers, before: int) -> Generator[SourceRow]:
        """Some rows; see ``Rows.part``."""
        with closing(self._rows(skip, before, range(start.line, last + 1))) as rows:
            yield from rows

    def _rows(self, skip: LineNumbers, before: int, only: range | None = None) -> Generator[SourceRow]:
        with self._open() as file:
            for first, batch in _batches(file, self._file.reader(), skip, before, only or range(1, self.total + 1)):
                wanted = [row for row in range(len(batch)) if first + row not in skip]
                if not wanted:
                    continue
                if len(wanted) < len(batch):
                    batch = batch.take(wanted)
                batch = batch.cast(self._schema, safe=False)
                numbers = [first + row for row in wanted]
                if batch.nbytes <= LONGEST_LINE:
                    yield from self._parsed(numbers, batch)
                    continue
                for place, number in enumerate(numbers):
                    row = batch.slice(place, 1)
                    if row.nbytes <= LONGEST_LINE:
                        yield from self._parsed([number], row)
                    else:
                        why = f"{too_long()}; only the beginning of its texts is kept."
                        yield SourceRow(number, InvalidRow("invalid_document", why), beginning(row))

    def _parsed(self, numbers: Sequence[int], batch: pa.RecordBatch) -> Iterator[SourceRow]:
        for place, (number, fields) in enumerate(zip(numbers, fields_of(batch), strict=True)):
            if isinstance(fields, InvalidRow):
                yield SourceRow(number, fields, as_far_as_readable(batch.slice(place, 1)))
            else:
                yield self._parser.row(number, fields)


def _batches(
    file: ParquetFile, raw: io.RawIOBase, skip: LineNumbers, before: int, only: range
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of rows with the number of their first; of row groups those alone that begin at one of some rows.

    Groups that are skipped as a whole are not read.
    """
    begin, end = before + 1, before + 1
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        begin, end = end, end + group.num_rows
        if begin - before not in only or all(row in skip for row in range(begin, end)):
            continue
        for batch in file.iter_batches(rows_at_a_time(group, raw), row_groups=[number]):
            yield begin, batch
            begin += len(batch)
