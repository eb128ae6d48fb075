"""Languages and judgements of a collection, before anything is known of its passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.files import read_columns
from langshift.languages import macrolanguage, parse_tag, primary

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


def tag_of(code: str) -> str | None:
    """The tag of a collection's language code: ``zh`` of ``zho_Hans``, ``zh-TW`` of ``zho_Hant``."""
    return parse_tag(code)


def tagged(codes: Iterable[str]) -> dict[str, str]:
    """Code -> tag of those codes that name a language."""
    return {code: tag for code in codes if (tag := tag_of(code))}


def pick(available: Mapping[str, str], wanted: str) -> str | None:
    """The code that ``wanted`` means, or None.

    A code as the collection writes it comes first, then the tag (``zh`` is ``zho_Hans``, since
    ``zho_Hant`` is ``zh-TW``), then the only code of that language or macrolanguage.
    """
    if wanted in available:
        return wanted
    tag = parse_tag(wanted)
    if tag is None:
        return None
    for code, other in available.items():
        if other == tag:
            return code
    for similar in (primary, macrolanguage):
        found = [code for code, other in available.items() if similar(other) == tag]
        if len(found) == 1:
            return found[0]
    return None


def choose(
    available: Mapping[str, str],
    wanted: Sequence[str] | None,
    pivots: Sequence[str] | None,
    where: Path,
    lacking: str = "no file for",
) -> dict[str, str]:
    """The languages of a pool.

    Args:
        available: the collection's code -> tag.
        wanted: languages as a person names them; None takes all.
        pivots: the languages of the questions, which must be among them; None where there are none.
        where: the folder, for messages.
        lacking: what it has not of a language that it lacks, for messages.

    Returns:
        Code -> tag, in the order of ``wanted``, else in that of ``available``.

    Raises:
        UsageError: a language that the collection lacks, or a pivot that is not among ``wanted``.
    """
    chosen: dict[str, str] = {}
    for language in wanted or available:
        code = _known(available, language, where, lacking)
        chosen[code] = available[code]
    for pivot in pivots or ():
        if _known(available, pivot, where, lacking) not in chosen:
            raise UsageError(
                f"The pivot {pivot!r} is not among the languages {', '.join(wanted or available)}: "
                "add it, or name another --pivot."
            )
    return chosen


def _known(available: Mapping[str, str], language: str, where: Path, lacking: str) -> str:
    code = pick(available, language)
    if code is None:
        names = ", ".join(sorted(available))
        raise UsageError(f"{where} has {lacking} the language {language!r}: it has {names}.")
    return code
