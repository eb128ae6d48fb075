"""Runs: what a search answered, as TREC's six columns."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from langshift.errors import UsageError
from langshift.reading import raw_lines

Ranking = Sequence[tuple[str, float]]
"""Document ids and scores, best first."""


def format_run(rankings: Mapping[str, Ranking], tag: str) -> str:
    """A TREC run: query, Q0, document, rank from 1, score, tag, one line a hit.

    Scores are written in full, so that scoring the file gives the figures of the replay to the
    last digit.

    Args:
        rankings: query id -> hits, best first.
        tag: name of the run; white space in it becomes ``_``.
    """
    tag = "_".join(tag.split())
    return "".join(
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, hits in rankings.items()
        for rank, (document, score) in enumerate(hits, 1)
    )


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Query id -> document id -> score, of a TREC run; its rank column is not used, as trec_eval does not.

    Lines of one query need not stand together. Gzip is unpacked.

    Raises:
        UsageError: no such file or an empty one, a line that is not of six columns, a score that is no
            finite number, or a document that a query has twice; the message names the line.
    """
    if not path.is_file():
        raise UsageError(f"There is no run {path}: name a file in TREC's six columns.")
    run: dict[str, dict[str, float]] = {}
    first: dict[tuple[str, str], int] = {}
    for number, line in raw_lines(path):
        query, document, score = _hit(path, number, line)
        earlier = first.setdefault((query, document), number)
        if earlier != number:
            raise UsageError(
                f"{path}, line {number}, gives the query {query!r} the document {document!r} a second time, "
                f"after line {earlier}: every document must be there once for a query."
            )
        run.setdefault(query, {})[document] = score
    if not run:
        raise UsageError(f"{path} holds no answer: {_COLUMNS}.")
    return run


_COLUMNS = "a TREC run has six columns on each line: query, Q0, document, rank, score, tag"


def _hit(path: Path, number: int, line: bytes) -> tuple[str, str, float]:
    try:
        columns = line.decode("utf-8").split()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}, line {number}, is not UTF-8: save the file as UTF-8.") from error
    if len(columns) != 6:
        raise UsageError(f"{path}, line {number}, has {len(columns)} columns: {_COLUMNS}.")
    try:
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UsageError(f"{path}, line {number}, has the score {columns[4]!r}: give a finite number.")
    return columns[0], columns[2], score


def command() -> str:
    """The command that is running."""
    return shlex.join(["langshift", *sys.argv[1:]])
