"""Parallel text as a table with tabs: one column a language, named in the first line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from langshift.debias.parallel.columns import PEEKED, language_columns, row_places
from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Places, Rows
from langshift.errors import UsageError
from langshift.lines import text_lines


class Table:
    """A file ``.tsv``, plain or compressed.

    Fields are parted by tabs and nothing else: a quotation mark is a character of the text as any other, and
    neither a tab nor a line break can stand in a text. Columns that are no language are left aside; ``_id``
    or ``id`` names the rows.
    """

    total = None
    dimension = None

    def __init__(self, path: Path, languages: Sequence[str] | None) -> None:
        """Read the header.

        Args:
            path: the file.
            languages: those to read; None reads all.

        Raises:
            UsageError: the file is empty, or its header cannot be used.
        """
        self._path, self.shown = path, str(path)
        header = next(text_lines(path), None)
        if header is None:
            raise UsageError(f"{path}: is empty; its first line should name the columns.")
        self._header = [name.strip() for name in header.split("\t")]
        first = list(islice(self._rows(), PEEKED))
        if not first:
            raise UsageError(f"{path}: has no line after its header.")
        ids = [row[i] for row in first for i, name in enumerate(self._header) if name.lower() == "id"]
        columns = language_columns(self._header, ids, languages, f"{path}, line 1")
        picked = chosen(columns.languages, languages, self.shown, "text")
        self.languages = list(picked)
        self._columns = {tag: self._header.index(name) for tag, name in picked.items()}
        self._row_id = None if columns.row_id is None else self._header.index(columns.row_id)

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the file; see ``ParallelText``."""
        rows = self._rows()
        first_line = 2
        while group := list(islice(rows, size)):
            places: Sequence[str] = Places("line", first_line, len(group))
            if self._row_id is not None:
                places = row_places([row[self._row_id] for row in group], places)
            yield Rows(places, {tag: [row[i] for row in group] for tag, i in self._columns.items()}, {})
            first_line += len(group)

    def _rows(self) -> Iterator[list[str]]:
        width = len(self._header)
        for number, line in enumerate(islice(text_lines(self._path), 1, None), start=2):
            row = [field.strip() for field in line.split("\t")]
            if len(row) != width:
                raise UsageError(
                    f"{self._path}, line {number}: has {len(row) - 1} tabs but the header has {width - 1}."
                )
            yield row
