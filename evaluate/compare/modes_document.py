"""Settings side by side as one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from langshift.evaluate.compare.document import basis, tested
from langshift.evaluate.compare.settled import Row, Settled
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.measures.top1 import ALL
from langshift.evaluate.replay.result import latency


def document(settled: Settled) -> dict[str, Any]:
    """All figures, what they rest on, and every test against the first row."""
    return {
        "dataset": identity(settled.dataset),
        "test": basis(settled.clusters),
        "rows": [_row(row) for row in settled.rows],
        "slices": {
            part: {
                "queries": len(queries),
                "rows": [_slice(settled, row, part) for row in settled.rows],
            }
            for part, queries in settled.slices.items()
        },
    }


def _row(row: Row) -> dict[str, Any]:
    found = row.replay
    top1 = outcomes(row)
    return {
        "name": row.name,
        "index": found.index,
        "version": found.version,
        "setting": asdict(found.setting),
        "shift_queries": found.shift_queries,
        "measures": {name: scores.mean for name, scores in found.scores.items()},
        "queries": {name: scores.queries for name, scores in found.scores.items()},
        **({"top1": top1} if top1 else {}),
        "latency_ms": latency(found),
        "tests": {name: tested(test) for name, test in row.tests.items()},
        "errors": len(found.failed),
        "warnings": list(found.warnings),
    }


def outcomes(row: Row) -> dict[str, float | None]:
    """The four outcomes of the first document, which add to 1; empty where Top1 was not asked for or has no query."""
    scores = row.replay.scores.get("Top1")
    cells = {} if scores is None else scores.cells.get(ALL, {})
    return {outcome: cell.mean for outcome, cell in cells.items()}


def _slice(settled: Settled, row: Row, part: str) -> dict[str, Any]:
    return {
        "name": row.name,
        "measures": {name: settled.mean(row, part, name) for name in settled.directed},
        "tests": {name: tested(test) for name, test in row.sliced.get(part, {}).items()},
    }
