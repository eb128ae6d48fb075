"""Parallel text, or given vectors, as one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.parallel.columns import PEEKED, is_language, language_columns, row_places
from langshift.debias.parallel.given import sound, spread
from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Rows
from langshift.errors import UsageError
from langshift.lines import raw_lines

_NUMBERS = 1 << 19  # held in Python lists at a time, 32 bytes each
_MISSING: tuple[object, ...] = (None, "", [])
_Row = tuple[int, dict[str, Any]]  # line number and object


class Records:
    """A file ``.jsonl``, plain or compressed: ``{"en": "one", "th": "หนึ่ง"}``.

    A key that is missing, or whose value is null or empty, means that the row has none in that language. The first
    rows tell which keys are languages: those whose name is a tag and whose values are texts or lists of numbers.
    Other keys are left aside; ``_id`` or ``id`` names the row (see ``language_columns``).
    """

    total = None

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
            raise UsageError(f"{path}: is empty.")
        names = [key for key, value in examples.items() if key.lower() == "id" or isinstance(value, str | list | None)]
        columns = language_columns(names, ids, languages, self.shown)
        self._row_id = columns.row_id
        held = {type(examples[key]): key for key in columns.languages.values() if examples[key] is not None}
        if len(held) > 1:
            raise UsageError(f"{path}: {held[str]!r} holds text but {held[list]!r} vectors; keep one kind in a file.")
        if not held:
            raise UsageError(f"{path}: has no text in its first {PEEKED:,} rows.")
        holds = "vectors" if list in held else "text"
        self._keys = chosen(columns.languages, languages, self.shown, holds)
        self.languages = list(self._keys)
        self.dimension = len(examples[held[list]]) if list in held else None
        self._known = None if languages is not None else set(examples)

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the file; see ``ParallelText``."""
        rows = self._rows()
        if self.dimension is not None:
            size = max(1, min(size, _NUMBERS // (self.dimension * len(self.languages))))
        while group := list(islice(rows, size)):
            self._refuse_late(group)
            places: list[str] = [f"line {number}" for number, _ in group]
            if self._row_id is not None:
                places = row_places([row.get(self._row_id) for _, row in group], places)
            if self.dimension is None:
                yield Rows(places, {tag: self._texts(group, key) for tag, key in self._keys.items()}, {})
            else:
                yield Rows(places, {}, {tag: self._vectors(group, tag, self.dimension) for tag in self._keys})

    def _rows(self) -> Iterator[_Row]:
        for number, line in enumerate(raw_lines(self._path), start=1):
            line = line.rstrip()
            if not line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                reason = f"not valid JSON ({error.msg} at character {error.pos + 1})"
                raise UsageError(f"{self._path}, line {number}: {reason}.") from None
            if not isinstance(row, dict):
                raise UsageError(f"{self._path}, line {number}: must be a JSON object with a text in each language.")
            yield number, row

    def _refuse_late(self, group: Sequence[_Row]) -> None:
        """Refuse a language that none of the first rows has: it would be left out without a word."""
        if self._known is None:
            return
        for number, row in group:
            if row.keys() <= self._known:
                continue
            for key in row.keys() - self._known:
                if isinstance(row[key], str | list) and is_language(key):
                    raise UsageError(
                        f"{self._path}, line {number}: {key!r} is a language that none of the first {PEEKED:,} rows "
                        f"has: add it to the first row, as null where there is none, or say which languages to read."
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
