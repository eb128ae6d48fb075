"""Parallel text in mMARCO's layout: one file a language, aligned by id."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from langshift.debias.parallel.columns import PEEKED
from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Rows
from langshift.errors import UsageError
from langshift.lines import text_lines

_LONGEST_NUMBER = 18  # digits; longer ones are names


class _Row(NamedTuple):
    key: int | str  # by which rows are in order
    id: str
    text: str


class AlignedById:
    """Files of rows ``id<TAB>text`` without a header, one a language; an id that a language lacks is a missing pair.

    The files are merged as they are read, so ids must ascend: as numbers where they are numbers, else as text, by
    code point, as ``LC_ALL=C sort`` puts them.
    """

    total = None
    dimension = None

    def __init__(self, folder: Path, found: dict[str, str], languages: Sequence[str] | None) -> None:
        """Tell from the first rows of each file in which order the ids are.

        Args:
            folder: where the files are.
            found: their names by language tag.
            languages: those to read; None reads all.

        Raises:
            UsageError: a file is empty or its first rows cannot be used, or a language is not there.
        """
        self.shown = str(folder)
        self._files = {tag: folder / name for tag, name in chosen(found, languages, self.shown, "text").items()}
        self.languages = list(self._files)
        first = []
        for path in self._files.values():
            first.append([id for id, _ in islice(_rows(path), PEEKED)])
            if not first[-1]:
                raise UsageError(f"{path}: is empty.")
        # Ids that are numbers may stand in the order of texts, as a plain sort leaves them.
        numbers = all(_is_number(id) for ids in first for id in ids)
        as_text = all(one < other for ids in first for one, other in pairwise(ids))
        as_numbers = numbers and all(int(one) < int(other) for ids in first for one, other in pairwise(ids))
        self._numbers = as_numbers or (numbers and not as_text)

    def batches(self, size: int) -> Iterator[Rows]:
        """Merge the files; see ``ParallelText``."""
        merged = self._merged()
        while group := list(islice(merged, size)):
            columns = zip(*(texts for _, texts in group), strict=True)
            texts = {tag: list(column) for tag, column in zip(self.languages, columns, strict=True)}
            yield Rows([f"id {id}" for id, _ in group], texts, {})

    def _merged(self) -> Iterator[tuple[str, list[str]]]:
        """Each id with its texts in the order of the languages."""
        with ExitStack() as opened:
            readers = [opened.enter_context(closing(self._ascending(path))) for path in self._files.values()]
            heads = [next(reader, None) for reader in readers]
            while there := [head for head in heads if head is not None]:
                first = min(there)
                texts = [""] * len(heads)
                for i, head in enumerate(heads):
                    if head is not None and head.key == first.key:
                        texts[i] = head.text
                        heads[i] = next(readers[i], None)
                yield first.id, texts

    def _ascending(self, path: Path) -> Generator[_Row, None, None]:
        """The rows of a file, refused where they are out of order."""
        before: _Row | None = None
        for number, (id, text) in enumerate(_rows(path), start=1):
            if self._numbers and not _is_number(id):
                raise UsageError(
                    f"{path}, line {number}: the id {id!r} is no number though the first ones are: "
                    "make all ids numbers, or begin each with a letter."
                )
            row = _Row(int(id) if self._numbers else id, id, text)
            if before is not None and not before.key < row.key:  # type: ignore[operator]  # of one kind
                raise _disorder(before, row, f"{path}, line {number}", "sort -n" if self._numbers else "LC_ALL=C sort")
            yield row
            before = row


def _disorder(before: _Row, row: _Row, place: str, sort: str) -> UsageError:
    if row.key == before.key:
        return UsageError(f"{place}: the id {row.id!r} is that of the line before too; keep one of the two.")
    return UsageError(f"{place}: the id {row.id!r} comes after {before.id!r}; sort every file of the folder ({sort}).")


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    """The id and the text of each line."""
    for number, line in enumerate(text_lines(path), start=1):
        id, *texts = line.split("\t")
        id = id.strip()
        if len(texts) != 1 or not id:
            there = f"has {len(texts)} tabs" if id else "has no id"
            raise UsageError(f"{path}, line {number}: {there}; an id, one tab and a text are needed.")
        yield id, texts[0].strip()


def _is_number(id: str) -> bool:
    """Whether an id is written as numbers are; ``007`` is another id than ``7``."""
    return (id[0] != "0" or id == "0") and id.isascii() and id.isdigit() and len(id) <= _LONGEST_NUMBER
