"""Scores of whole target groups, which a replay leaves beside its run for LPR: ``group-scores.jsonl``."""

from __future__ import annotations

import math
from pathlib import Path

from langshift.errors import UsageError
from langshift.reading import records

GROUP_SCORES = "group-scores.jsonl"
_FORM = 'give {"query": id, "scores": {document: score}}'


def read_group_scores(path: Path) -> dict[str, dict[str, float]]:
    """Query id -> document id -> score; a document whose score is null was not matched, and is left out.

    Raises:
        UsageError: a line that cannot be read, or a query that is there twice; the message names the line.
    """
    found: dict[str, dict[str, float]] = {}
    for number, record in records(path):
        query, scores = record.get("query"), record.get("scores")
        if not isinstance(query, str) or not isinstance(scores, dict):
            raise UsageError(f"{path}, line {number}, cannot be read: {_FORM}.")
        if query in found:
            raise UsageError(f"{path}, line {number}, has the query {query!r} a second time: keep one of the lines.")
        for document, score in scores.items():
            if score is not None and not _number(score):
                raise UsageError(f"{path}, line {number}, gives {document!r} the score {score!r}: {_FORM}.")
        found[query] = {document: float(score) for document, score in scores.items() if score is not None}
    return found


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
