"""Judgements of a collection, before anything is known of its passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.reading import read_columns

_HEADER = ["query-id", "corpus-id", "score"]


class Judgement(NamedTuple):
    """One line: the grade of a document for a query."""

    line: int
    query: str
    document: str
    grade: int


def read_judgements(path: Path) -> Iterator[Judgement]:
    """Yield the lines of a TREC or BEIR file.

    Raises:
        UsageError: a line of another form.
    """
    for line, columns in read_columns(path):
        if columns == _HEADER:
            continue
        parts = split_judgement(columns)
        if parts is None:
            raise UsageError(
                f"{path}, line {line}, cannot be read: give query-id, corpus-id and score parted by tabs, "
                "or TREC's four columns (query, 0, document, grade)."
            )
        try:
            yield Judgement(line, parts[0], parts[1], int(parts[2]))
        except ValueError as error:
            raise UsageError(
                f"{path}, line {line}, has the score {parts[2]!r}: "
                "give a whole number, 0 for not relevant, 1 or more for relevant."
            ) from error


def split_judgement(columns: list[str]) -> tuple[str, str, str] | None:
    """Query, document and grade of BEIR's three columns or TREC's four; None where there are others."""
    if len(columns) == 1 and len(trec := columns[0].split()) == 4:
        columns = trec
    parts = [part.strip() for part in columns]
    if len(parts) == 4:
        del parts[1]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def collect(paths: Sequence[Path]) -> dict[str, dict[str, int]]:
    """Query -> document -> grade of all the files; a pair may stand in two of them, with one grade.

    Raises:
        UsageError: a pair with two grades, or no judgement at all.
    """
    judged: dict[str, dict[str, int]] = {}
    for path in paths:
        for line, query, document, grade in read_judgements(path):
            grades = judged.setdefault(query, {})
            if grades.setdefault(document, grade) != grade:
                raise UsageError(
                    f"{path}, line {line}, gives {query!r} and {document!r} another grade than an earlier line: "
                    "keep one of the two."
                )
    if not judged:
        raise UsageError(f"{', '.join(map(str, paths))} holds no judgement: fetch the file again.")
    return judged


def place_of(paths: Sequence[Path], document: str) -> str:
    """File and line that first judge a document."""
    for path in paths:
        for judgement in read_judgements(path):
            if judgement.document == document:
                return f"{path}, line {judgement.line},"
    return ", ".join(map(str, paths))
