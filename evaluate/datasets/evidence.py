"""Where in a document the evidence stands: ``evidence.tsv``, for measures of position bias.

The positions are those of PosIR (Zeng et al., 2026), section 3.1: the middle of the evidence's span
of characters by the document's length in characters. A fourth column holds the document's length in
tokens, by which its measures are put into buckets (section 4.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from langshift.errors import UsageError
from langshift.reading import read_columns, write_table

HEADER = ("query-id", "corpus-id", "position", "length")


@dataclass(frozen=True)
class Evidence:
    """Positions and lengths.

    Attributes:
        positions: query id -> document id -> relative position, 0 to 1.
        lengths: document id -> length in tokens.
    """

    positions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)


def read_evidence(
    path: Path, documents: Collection[str] | None = None, queries: Collection[str] | None = None
) -> Evidence:
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
    for line, columns in read_columns(path):
        if line == 1 and columns == list(HEADER[: len(columns)]):
            continue
        where = f"{path}, line {line},"
        query, document, position, length = parse_evidence(columns, where)
        if queries is not None and query not in queries:
            raise UsageError(f"{where} names the query {query!r}, which queries.jsonl lacks: remove the line.")
        if documents is not None and document not in documents:
            raise UsageError(f"{where} names the document {document!r}, which corpus.jsonl lacks: remove the line.")
        positions.setdefault(query, {})[document] = position
        if length is not None:
            lengths[document] = length
    return Evidence(positions, lengths)


def write_evidence(path: Path, rows: Iterable[tuple[str, str, float, int | None]]) -> None:
    """Write query id, document id, position and length in tokens (None leaves it empty)."""
    write_table(
        path,
        HEADER,
        (
            (query, document, f"{position:.6g}", "" if length is None else f"{length}")
            for query, document, position, length in rows
        ),
    )


def parse_evidence(columns: list[str], where: str) -> tuple[str, str, float, int | None]:
    """Query id, document id, position and length of a line.

    Raises:
        UsageError: beginning with ``where``, that it cannot be read.
    """
    try:
        query, document, position = columns[0], columns[1], float(columns[2])
        length = int(columns[3]) if len(columns) == 4 and columns[3] else None
        if len(columns) not in (3, 4) or not 0 <= position <= 1:
            raise ValueError
    except (ValueError, IndexError):
        raise UsageError(
            f"{where} cannot be read: give query-id, corpus-id, the position from 0 to 1 and, where known, "
            "the length in tokens, parted by tabs."
        ) from None
    return query, document, position, length
