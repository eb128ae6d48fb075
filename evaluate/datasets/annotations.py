"""What a dataset tells beside judgements: where the evidence is, ``evidence.tsv``; answers, ``answers.jsonl``."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import UsageError
from langshift.files import read_columns, records, write_table

_Ids = Collection[str]
_FILES = {"query": "queries.jsonl", "document": "corpus.jsonl"}


def require_known(what: str, name: str, known: _Ids | None, where: str) -> None:
    """Refuse a query or document that the dataset lacks.

    Args:
        what: ``query`` or ``document``.
        name: its id.
        known: the ids that there are; None takes any.
        where: file and line, with a comma, which begin the message.
    """
    if known is not None and name not in known:
        lacks = f"names the {what} {name!r}, which is not in {_FILES[what]}"
        raise UsageError(f"{where} {lacks}: remove the line or add the {what}.")


HEADER = ("query-id", "corpus-id", "position", "length", "start", "end")


# The positions are those of PosIR (Zeng et al., 2026), section 3.1: the middle of the evidence's span
# of characters by the document's length in characters. A fourth column holds the document's length in
# tokens, by which its measures are put into buckets (section 4.1), and two more the span in this document's text.
class Evidence(NamedTuple):
    """Where in a document the evidence is.

    Attributes:
        position: its middle by the document's length in characters, 0 to 1.
        length: of the document in tokens, of the original's where it is a translation; None where unknown.
        span: its first character in the document's text, and the one after its last; None where unknown.
    """

    position: float
    length: int | None = None
    span: tuple[int, int] | None = None


class EvidencePositions(NamedTuple):
    """Positions and lengths.

    Attributes:
        positions: query id -> document id -> relative position, 0 to 1.
        lengths: document id -> length in tokens.
        spans: query id -> document id -> characters of the evidence, the end exclusive, where they are known.
    """

    positions: Mapping[str, Mapping[str, float]] = {}
    lengths: Mapping[str, int] = {}
    spans: Mapping[str, Mapping[str, tuple[int, int]]] = {}


def read_evidence(path: Path, documents: _Ids | None = None, queries: _Ids | None = None) -> EvidencePositions:
    """Read and check the file.

    Args:
        path: the file.
        documents: the ids that may stand in it; None takes any.
        queries: the same for queries.

    Raises:
        UsageError: a line that cannot be read, or that names what the dataset lacks.
    """
    positions: dict[str, dict[str, float]] = {}
    lengths: dict[str, int] = {}
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for line, columns in read_columns(path, HEADER):
        where = f"{path}, line {line},"
        query, document, found = parse_evidence(columns, where)
        require_known("query", query, queries, where)
        require_known("document", document, documents, where)
        positions.setdefault(query, {})[document] = found.position
        if found.length is not None:
            lengths[document] = found.length
        if found.span is not None:
            spans.setdefault(query, {})[document] = found.span
    return EvidencePositions(positions, lengths, spans)


def write_evidence(path: Path, rows: Iterable[tuple[str, str, Evidence]]) -> None:
    """Write query id, document id and where in the document the evidence is; what is unknown is left empty."""
    table = (
        (query, document, f"{found.position:.6g}", found.length, *(found.span or (None, None)))
        for query, document, found in rows
    )
    write_table(path, HEADER, (tuple("" if value is None else f"{value}" for value in row) for row in table))


def parse_evidence(columns: list[str], where: str) -> tuple[str, str, Evidence]:
    """Query id, document id and evidence of a line.

    Raises:
        UsageError: beginning with ``where``, that it cannot be read.
    """
    try:
        query, document, position, *more = columns
        length, start, end = (int(value) if value else None for value in [*more, "", "", ""][:3])
        span = None if start is None or end is None else (start, end)
        found = Evidence(float(position), length, span)
        if len(columns) not in (3, 4, 6) or not 0 <= found.position <= 1 or (span and not 0 <= span[0] < span[1]):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"{where} cannot be read: give query-id, corpus-id, the position from 0 to 1 and, where known, the length "
            "in tokens, and the evidence's first character and the one after its last, separated by tabs."
        ) from None
    return query, document, found


def read_answers(path: Path, queries: _Ids | None = None) -> Mapping[str, tuple[str, ...]]:
    """Read and check the reference answers.

    Args:
        path: the file; nothing is known without one.
        queries: the ids that may stand in it; None takes any.

    Returns:
        Query id -> its answers, in its own language, in the order of the file.

    Raises:
        UsageError: a line that cannot be read, or that names a query that the dataset lacks or that was named before.
    """
    answers: dict[str, tuple[str, ...]] = {}
    for line, record in records(path) if path.is_file() else ():
        where = f"{path}, line {line},"
        query, known = parse_answers(record, where)
        if query in answers:
            raise UsageError(f"{where} has answers to {query!r} a second time: keep one of the two lines.")
        require_known("query", query, queries, where)
        answers[query] = known
    return answers


def parse_answers(record: Mapping[str, Any], where: str) -> tuple[str, tuple[str, ...]]:
    """Query id and reference answers of a line.

    Raises:
        UsageError: beginning with ``where``, that it cannot be read.
    """
    query, known = record.get("query"), record.get("answers")
    texts = tuple(text for text in known if isinstance(text, str) and text.strip()) if isinstance(known, list) else ()
    if not isinstance(query, str) or not isinstance(known, list) or not texts or len(texts) != len(known):
        raise UsageError(f'{where} cannot be read: it must be {{"query": "ID", "answers": ["TEXT", ...]}}.')
    return query, texts
