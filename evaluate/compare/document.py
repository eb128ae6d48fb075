"""A comparison as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langshift.evaluate.compare.compare_gate import Verdict
from langshift.evaluate.compare.comparing import Comparison, Pair
from langshift.evaluate.compare.matrix import Matrix
from langshift.evaluate.compare.sections import ALL, Column
from langshift.evaluate.compare.significance import CORRECTION, LEVEL, PERMUTATIONS, SEED, Tested, exact
from langshift.evaluate.compare.winners import Example, Extremes
from langshift.evaluate.datasets.clusters import Clusters
from langshift.evaluate.datasets.identity import identity


def document(
    compared: Comparison,
    matrices: Sequence[Matrix],
    examples: Sequence[Extremes],
    advice: Sequence[str],
    verdicts: Sequence[Verdict],
    warnings: Sequence[str],
) -> dict[str, Any]:
    """All that was found, with what the tests rest on."""
    return {
        "dataset": identity(compared.dataset),
        "runs": [
            {
                "letter": run.letter,
                "name": run.name,
                "place": str(run.place),
                "index": run.result.get("index"),
                "mode": run.result.get("mode"),
                "setting": run.result.get("setting"),
                "fingerprint": run.result.get("fingerprint"),
            }
            for run in compared.candidates
        ],
        "test": basis(compared.clusters),
        "sections": _sections(compared, None),
        "by_language": {
            language: {"queries": len(queries), "sections": _sections(compared, language)}
            for language, queries in compared.asked.items()
        },
        "slices": {
            part: {"queries": len(queries), "sections": {ALL: _slice(compared, part, queries)}}
            for part, queries in compared.slices.items()
        },
        "matrices": [_matrix(found) for found in matrices],
        "examples": [_extremes(found) for found in examples],
        "advice": list(advice),
        "conditions": [verdict.to_dict() for verdict in verdicts],
        "warnings": list(warnings),
    }


def basis(clusters: Clusters) -> dict[str, Any]:
    """What the p-values rest on."""
    count = len(set(clusters.of.values()))
    return {
        "kind": "paired randomisation of the mean difference, two-sided; Student's paired t beside it",
        "clustered_by": clusters.by,
        "clusters": count,
        "permutations": 2**count if exact(count) else PERMUTATIONS,
        "exact": exact(count),
        "seed": SEED,
        "correction": CORRECTION,
        "level": LEVEL,
    }


def in_words(clusters: Clusters) -> str:
    """The same as a sentence."""
    told = basis(clusters)
    flips = "every way" if told["exact"] else f"{told['permutations']:,} random ways (seed {told['seed']})"
    return (
        f"Significant: p below {LEVEL:.2f} by a paired randomisation test that flips the signs of whole clusters, "
        f"{told['clusters']:,} by {told['clustered_by']}, in {flips}, corrected for several tests after {CORRECTION}."
    )


def _sections(compared: Comparison, language: str | None) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for column in compared.columns:
        found.setdefault(column.section, {})[column.measure] = _column(compared, column, language)
    return found


def _column(compared: Comparison, column: Column, language: str | None) -> dict[str, Any]:
    queries = None if language is None else compared.asked[language]
    found = {pair: compared.tested(column, pair, language) for pair in _pairs(compared)}
    return _figures(compared, column, queries, found)


def _slice(compared: Comparison, part: str, queries: Sequence[str]) -> dict[str, Any]:
    """Measure -> figures over the queries of a slice."""
    return {
        column.measure: _figures(
            compared, column, queries, {pair: compared.by_slice.get((part, column, pair)) for pair in _pairs(compared)}
        )
        for column in compared.columns
        if column.section == ALL
    }


def _pairs(compared: Comparison) -> list[Pair]:
    letters = [run.letter for run in compared.candidates]
    return [(one, other) for place, one in enumerate(letters) for other in letters[place + 1 :]]


def _figures(
    compared: Comparison, column: Column, queries: Sequence[str] | None, tests: Mapping[Pair, Tested | None]
) -> dict[str, Any]:
    scores = {run.letter: compared.scores[run.letter][column] for run in compared.candidates}
    if queries is not None:
        scores = {letter: found.over(queries) for letter, found in scores.items()}
    return {
        "means": {letter: found.mean for letter, found in scores.items()},
        "queries": {letter: found.queries for letter, found in scores.items()},
        "notes": {letter: found.note for letter, found in scores.items() if found.note},
        "tests": [
            {"before": pair[0], "after": pair[1], **tested(found)} for pair, found in tests.items() if found is not None
        ],
    }


def tested(found: Tested) -> dict[str, Any]:
    """A test as a JSON object."""
    return {**found._asdict(), "significant": found.significant}


def _matrix(found: Matrix) -> dict[str, Any]:
    return {
        "before": found.pair[0],
        "after": found.pair[1],
        "measure": found.measure,
        "cells": {
            language: {
                target: {"before": cell.before, "after": cell.after, **tested(cell.tested)}
                for target, cell in cells.items()
            }
            for language, cells in found.cells.items()
        },
    }


def _extremes(found: Extremes) -> dict[str, Any]:
    return {
        "before": found.pair[0],
        "after": found.pair[1],
        "section": found.column.section,
        "measure": found.column.measure,
        "better": found.better,
        "worse": found.worse,
        "same": found.same,
        "winners": [_example(example) for example in found.winners],
        "losers": [_example(example) for example in found.losers],
    }


def _example(example: Example) -> Mapping[str, Any]:
    return {
        "query": example.query.id,
        "text": example.query.text,
        "language": example.language,
        "before": example.before,
        "after": example.after,
        "hits": {
            "before": [hit._asdict() for hit in example.hits_before],
            "after": [hit._asdict() for hit in example.hits_after],
        },
    }
