"""Languages and judgements of a collection, before anything is known of its passages."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import read_judgements
from langshift.files import records
from langshift.ingest.parquet import rows
from langshift.languages import macrolanguage, parse_tag, primary

#: Languages, or what else there is to choose from, as a person names them; None takes all.
Chosen = Sequence[str] | None


def collect(paths: Sequence[Path]) -> dict[str, dict[str, int]]:
    """Query -> document -> grade of all the files; a pair may stand in two of them, with one grade.

    Raises:
        UsageError: a pair with two grades, or no judgement at all.
    """
    judged: dict[str, dict[str, int]] = {}
    for path in paths:
        for line, query, document, grade in judgements(path):
            grades = judged.setdefault(query, {})
            if grades.setdefault(document, grade) != grade:
                raise UsageError(
                    f"{path}, line {line}, grades {query!r} and {document!r} differently from an earlier line: "
                    "keep only one of the two."
                )
    if not judged:
        raise UsageError(f"{', '.join(map(str, paths))} contains no judgements: fetch the file again.")
    return judged


def judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line number, query, document and grade of a BEIR or TREC file, JSON Lines or Parquet.

    Raises:
        UsageError: a line of another form.
    """
    if not path.name.endswith(TABLES):
        yield from read_judgements(path)
        return
    for line, row in _numbered(path):
        try:
            score = float(row["score"])
            if score != (grade := int(score)):
                raise ValueError
            yield line, str(row["query-id"]), str(row["corpus-id"]), grade
        except (KeyError, TypeError, ValueError, OverflowError):
            form = "give query-id, corpus-id and score, a whole number"
            raise UsageError(f"{path}, line {line}, cannot be read: {form}.") from None


PARQUET = ".parquet"
#: How the names of files end that have a field for each column.
TABLES = (PARQUET, ".jsonl", ".jsonl.gz")


def _numbered(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line of JSON Lines or row of Parquet."""
    return rows(path) if path.suffix == PARQUET else records(path)


def place_of(paths: Sequence[Path], document: str) -> str:
    """File and line that first judge a document."""
    for path in paths:
        for line, _, judged, _ in judgements(path):
            if judged == document:
                return f"{path}, line {line},"
    return ", ".join(map(str, paths))


def require_folder(folder: Path, remedy: str) -> None:
    """Refuse a folder that is not there; the message ends with the remedy."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: {remedy}.")


def located(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield file and line, with which a message begins, and the object of each line of JSON Lines or row of Parquet."""
    for line, record in _numbered(path):
        yield f"{path}, line {line}", record


def title_and_text(record: Mapping[str, Any], where: str, remedy: str) -> tuple[str, str]:
    """The title and text of a passage, "" where it has none.

    Raises:
        UsageError: beginning with ``where``, that one of them is no string.
    """
    title, text = record.get("title") or "", record.get("text") or ""
    if not isinstance(title, str) or not isinstance(text, str):
        raise UsageError(f"{where}, has a title or text that is not a string: {remedy}.")
    return title, text


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
