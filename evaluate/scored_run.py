"""A run of any retriever, read and scored, and the document that says so."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.datasets.texts import Languages, read_texts
from langshift.evaluate.group_scores import GROUP_SCORES, read_group_scores
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.material import Run
from langshift.evaluate.measures.scores import Scores, Table
from langshift.evaluate.run import read_run
from langshift.evaluate.scoring import by_language, parse_names, scored


@dataclass(frozen=True)
class ScoredRun:
    """A run's figures.

    Attributes:
        path: the run.
        dataset: what it was scored against.
        languages: of queries and documents.
        scores: measure -> figures.
        answered: how many of the dataset's queries have an answer.
        warnings: sentences on what makes the figures less than they seem.
    """

    path: Path
    dataset: Dataset
    languages: Languages
    scores: Mapping[str, Scores]
    answered: int
    warnings: tuple[str, ...]


def score_run(path: Path, folder: Path, measures: str | None) -> ScoredRun:
    """Read and score a run.

    Args:
        path: a TREC run; group scores are read from ``group-scores.jsonl`` beside it, where it is there.
        folder: the dataset.
        measures: names parted by white space or commas; None takes the usual ones.

    Raises:
        UsageError: a run, dataset or measure that cannot be used.
    """
    dataset = load_dataset(folder)
    names = parse_names(measures, dataset)
    run = read_run(path)
    beside = path.with_name(GROUP_SCORES)
    if measures is None and not beside.is_file():
        names = [name for name in names if name != "LPR"]
    group_scores = read_group_scores(beside) if "LPR" in names and beside.is_file() else {}
    languages = _languages(dataset)
    scores = scored(names, dataset, languages, run, group_scores)
    answered = sum(query.id in run for query in dataset.queries)
    notes = {name: found.note for name, found in scores.items() if found.note}
    if "LPR" in names and not beside.is_file():
        notes["LPR"] = (
            f"there is no {GROUP_SCORES} beside {path}, with the scores of every passage of each query's target "
            "group; `langshift evaluate replay --output` and `offline --output` write it."
        )
    told = (f"{name}: {note}" for name, note in notes.items())
    warnings = (*_strangers(path, run, dataset), *languages.warnings, *told)
    return ScoredRun(path, dataset, languages, scores, answered, warnings)


def _languages(dataset: Dataset) -> Languages:
    """The languages that the dataset names, and detected ones where it names none."""
    unnamed = {name for name, document in dataset.documents.items() if document.language is None}
    return Languages.of(dataset, read_texts(dataset, unnamed) if unnamed else {})


def _strangers(path: Path, run: Run, dataset: Dataset) -> list[str]:
    """Say what the run names and the dataset does not have."""
    warnings = []
    documents = {name for hits in run.values() for name in hits} - dataset.documents.keys()
    if documents:
        warnings.append(
            f"{len(documents):,} of the documents in {path} are not in the dataset ({min(documents)}, say) "
            "and count as not relevant."
        )
    queries = run.keys() - {query.id for query in dataset.queries}
    if queries:
        warnings.append(
            f"{len(queries):,} of the {len(run):,} queries in {path} are not in the dataset ({min(queries)}, say) "
            "and are not scored."
        )
    return warnings


def document(found: ScoredRun) -> dict[str, Any]:
    """The figures as one JSON document, in the form of a replay's ``result.json`` where they share it."""
    families = {name: parse_measure(name).family for name in found.scores}
    return {
        "run": str(found.path),
        "dataset": identity(found.dataset),
        "measures": _means(found.scores),
        "queries": {"asked": len(found.dataset.queries), "answered": found.answered, **_counts(found.scores)},
        "left_out": {name: scores.left_out for name, scores in found.scores.items()},
        "direction": {name: family.direction for name, family in families.items()},
        "source": {name: family.source for name, family in families.items()},
        "by_language": {
            language: {"measures": _means(scores), "queries": _counts(scores)}
            for language, scores in by_language(found.scores, found.languages).items()
        },
        "tables": {name: _table(scores.table) for name, scores in found.scores.items() if scores.table is not None},
        "warnings": list(found.warnings),
        "versions": {name: version(name) for name in ("langshift", "ir_measures")},
        "command": shlex.join(["langshift", *sys.argv[1:]]),
    }


def _means(scores: Mapping[str, Scores]) -> dict[str, float | None]:
    return {name: found.mean for name, found in scores.items()}


def _counts(scores: Mapping[str, Scores]) -> dict[str, int]:
    return {name: found.queries for name, found in scores.items()}


def _table(table: Table) -> dict[str, Any]:
    cells = {row: {head: cell._asdict() for head, cell in cells.items()} for row, cells in table.cells.items()}
    return {"rows": table.rows, "columns": table.columns, "cells": cells}
