"""How large the parts of a Parquet file become when they are unpacked: a file of some kilobytes may hold gigabytes.

Arrow unpacks a page as a whole, and repeats an entry of a dictionary for each row that has it. How large a page is
stands before it, in a header that Arrow shows nobody.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from langshift.errors import UsageError

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData, RowGroupMetaData

#: Bytes of a page, unpacked. Usual ones have 1 MiB, and more only where values are so long.
LARGEST_PAGE = 256 << 20
_EXPANDED = 256 << 20  # bytes that entries of dictionaries may come to in the rows held at a time
_HELD = 16 << 20  # bytes held at a time, about
_ROWS = 1024  # rows held at a time, and fewer where they are long
_HEADERS = (1 << 10, 1 << 16)  # bytes within which a page's header ends; statistics may make it long
_DICTIONARY = 2  # the type of a page
_VALUE = 8  # bytes of the largest value that is not text


class _ColumnPage(NamedTuple):
    """A page.

    Attributes:
        type: its type.
        unpacked: its size, unpacked, in bytes.
        end: where the next begins.
    """

    type: int
    unpacked: int
    end: int


def require_small_pages(metadata: FileMetaData, file: io.RawIOBase, shown: str) -> None:
    """Refuse a file with a page that is too large to be unpacked.

    Raises:
        UsageError: it has one.
    """
    for number in range(metadata.num_row_groups):
        for chunk in _chunks(metadata.row_group(number)):
            # Of most the sum is small enough.
            if chunk.total_uncompressed_size <= LARGEST_PAGE:
                continue
            largest = max(page.unpacked for page in _pages(chunk, file))
            if largest > LARGEST_PAGE:
                raise UsageError(
                    f"{shown}: in row group {number + 1}, the column {chunk.path_in_schema!r} has a page of "
                    f"{largest >> 20:,} MiB, more than {LARGEST_PAGE >> 20} MiB: write the file with smaller pages, "
                    "or shorten its values."
                )


def rows_at_a_time(group: RowGroupMetaData, file: io.RawIOBase) -> int:
    """How many rows of a row group can be held at a time."""
    rows: int = max(group.num_rows, 1)
    size: int = sum(max(chunk.total_uncompressed_size, _VALUE * chunk.num_values) for chunk in _chunks(group))
    expanded: int = 0
    for chunk in _chunks(group):
        if chunk.physical_type == "BYTE_ARRAY" and (page := next(_pages(chunk, file))).type == _DICTIONARY:
            # As if each value were the dictionary's only entry.
            expanded += page.unpacked * -(-chunk.num_values // rows)
    return max(1, min(_ROWS, _HELD * rows // max(size, 1), _EXPANDED // max(expanded, 1)))


def _chunks(group: RowGroupMetaData) -> Iterator[ColumnChunkMetaData]:
    return (group.column(number) for number in range(group.num_columns))


def _pages(chunk: ColumnChunkMetaData, file: io.RawIOBase) -> Iterator[_ColumnPage]:
    """The pages of a column in a row group; one as large as all of them where they cannot be told apart."""
    place = chunk.dictionary_page_offset or chunk.data_page_offset
    end = place + chunk.total_compressed_size
    while place < end:
        page = _page(file, place)
        if page is None or page.end <= place:
            yield _ColumnPage(_DICTIONARY, chunk.total_uncompressed_size, end)
            return
        yield page
        place = page.end


def _page(file: io.RawIOBase, place: int) -> _ColumnPage | None:
    for most in _HEADERS:
        file.seek(place, os.SEEK_SET)
        header = _Thrift(file.read(most) or b"")
        try:
            fields = header.struct()
        except IndexError:
            continue
        if {1, 2, 3} <= fields.keys():
            return _ColumnPage(fields[1], fields[2], place + header.place + fields[3])
        break
    return None


class _Thrift:
    """As much of Thrift's compact protocol as a page's header has; IndexError where the data break off.

    Attributes:
        place: how far it was read.
    """

    def __init__(self, data: bytes) -> None:
        self.place, self._data = 0, data

    def struct(self) -> dict[int, int]:
        """The numbers among its fields; what else it holds is passed over."""
        found, last = dict[int, int](), 0
        while (head := self._byte()) != 0:
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            if head & 15 in (4, 5, 6):
                found[last] = self._zigzag()
            else:
                self._pass_over(head & 15)
        return found

    def _pass_over(self, kind: int) -> None:
        if kind == 12:
            self.struct()
        elif kind == 8:
            self.place += self._varint()
        elif kind in (4, 5, 6):
            self._varint()
        elif kind in (3, 7):
            self.place += {3: 1, 7: 8}[kind]
        elif kind not in (1, 2):
            # No list or map stands in a page's header.
            raise IndexError

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _zigzag(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
