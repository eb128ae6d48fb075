"""Relevance judgements: reading BEIR's and TREC's files of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from langshift.errors import UsageError
from langshift.reading import read_columns

Qrels = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> grade; a grade above 0 is relevant."""

_FORMS = "three columns parted by tabs (query-id, corpus-id, score) or TREC's four (query, 0, document, grade)"


def read_qrels(path: Path, documents: Collection[str], queries: Collection[str]) -> Qrels:
    """Read judgements, and check them against the ids of the documents and queries.

    Raises:
        UsageError: wrong columns, a grade that is no whole number, an unknown or repeated pair,
            or no relevant document at all.
    """
    qrels: dict[str, dict[str, int]] = {}
    for line, columns in read_columns(path):
        if line == 1 and columns == ["query-id", "corpus-id", "score"]:
            continue
        query, document, grade = _judgement(path, line, columns)
        where = f"{path}, line {line},"
        if query not in queries:
            raise UsageError(f"{where} names the query {query!r}, which queries.jsonl lacks: {_remedy('query')}.")
        if document not in documents:
            raise UsageError(
                f"{where} names the document {document!r}, which corpus.jsonl lacks: {_remedy('document')}."
            )
        judged = qrels.setdefault(query, {})
        if document in judged:
            raise UsageError(f"{where} judges {query!r} and {document!r} a second time: keep one of the two lines.")
        judged[document] = grade
    if not any(grade > 0 for judged in qrels.values() for grade in judged.values()):
        raise UsageError(f"{path} judges no document as relevant: there is nothing to measure; give {_FORMS}.")
    return qrels


def _remedy(what: str) -> str:
    return f"remove the line or add the {what}"


def _judgement(path: Path, line: int, columns: list[str]) -> tuple[str, str, int]:
    if len(columns) == 1 and len(trec := columns[0].split()) == 4:
        columns = trec
    if len(columns) == 4:
        columns = [columns[0], columns[2], columns[3]]
    if len(columns) != 3:
        raise UsageError(f"{path}, line {line}, cannot be read: give {_FORMS}.")
    query, document, grade = (column.strip() for column in columns)
    number = int(grade) if re.fullmatch(r"[+-]?\d{1,6}", grade, re.ASCII) else None
    if number is None:
        raise UsageError(
            f"{path}, line {line}, has the score {grade!r}: "
            "give a whole number, 0 for not relevant, 1 or more for relevant."
        )
    return query, document, number
