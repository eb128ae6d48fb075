"""All that runs say against each other, as one JSON document: what is printed, and what a report rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from langshift.evaluate.compare import breakdowns, comparison
from langshift.evaluate.compare.breakdowns import ExampleQueries, ExampleQuery, RecallMatrix
from langshift.evaluate.compare.comparison import Column, ComparedQueries, Comparison, SettingRow, SettingsComparison
from langshift.evaluate.compare.gate import ConditionResult
from langshift.evaluate.compare.significance import CORRECTION, LEVEL, PERMUTATIONS, SEED, exact
from langshift.evaluate.compare.verdict import Verdict, of_runs
from langshift.evaluate.datasets.dataset import Clusters, identity
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.fairness import TOP1
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, most_shown
from langshift.evaluate.replay.result import latency
from langshift.evaluate.runs import parse_names
from langshift.wording import format_score


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


def describe_test(clusters: Clusters) -> str:
    """The same as a sentence."""
    details = basis(clusters)
    flips = "all flips" if details["exact"] else f"{details['permutations']:,} random flips, seed {details['seed']}"
    return (
        f"Significant: p below {LEVEL:.2f} in a paired randomisation test that flips the signs of whole clusters "
        f"({details['clusters']:,} by {details['clustered_by']}; {flips}), corrected for multiple tests after "
        f"{CORRECTION}."
    )


def _part(compared: Comparison, part: ComparedQueries, sections: Sequence[str]) -> dict[str, Any]:
    """How many queries, and section -> measure -> figures and tests."""
    found = {
        section: {column.measure: _figures(part, column) for column in compared.columns_of(section)}
        for section in sections
    }
    return {"queries": len(part.queries), "sections": found}


def _figures(part: ComparedQueries, column: Column) -> dict[str, Any]:
    scores = {letter: row[column] for letter, row in part.scores.items()}
    tests = {pair: found for pair in combinations(scores, 2) if (found := part.tested(column, pair)) is not None}
    return {
        "means": {letter: found.mean for letter, found in scores.items()},
        "queries": {letter: found.queries for letter, found in scores.items()},
        "notes": {letter: found.note for letter, found in scores.items() if found.note},
        "tests": [{"before": before, "after": after, **found.to_dict()} for (before, after), found in tests.items()],
    }


_SIDES = ("before", "after")


def _matrix(found: RecallMatrix) -> dict[str, Any]:
    return {
        **dict(zip(_SIDES, found.pair, strict=True)),
        "measure": found.measure,
        "cells": {
            language: {
                target: {"before": cell.before, "after": cell.after, **cell.tested.to_dict()}
                for target, cell in cells.items()
            }
            for language, cells in found.cells.items()
        },
    }


def _extremes(found: ExampleQueries) -> dict[str, Any]:
    return {
        **dict(zip(_SIDES, found.pair, strict=True)),
        **found.column._asdict(),
        **{name: getattr(found, name) for name in ("better", "worse", "same")},
        "winners": [_example(example) for example in found.winners],
        "losers": [_example(example) for example in found.losers],
    }


def _positions(found: Mapping[str, Mapping[str, Scores]]) -> dict[str, Any]:
    """Letter -> measure -> its mean, and the tables as `evaluate score --json` has them."""
    return {
        letter: {name: {"mean": one.mean, "table": one.table and one.table.to_dict()} for name, one in scores.items()}
        for letter, scores in found.items()
    }


def _example(example: ExampleQuery) -> Mapping[str, Any]:
    return {
        "query": example.query.id,
        "text": example.query.text,
        "language": example.language,
        "before": example.before,
        "after": example.after,
        "hits": {side: [hit._asdict() for hit in hits] for side, hits in zip(_SIDES, example.hits, strict=True)},
    }


class ComparisonFindings(NamedTuple):
    """All that was found.

    Attributes:
        compared: figures and tests.
        matrices: recall by query and document language, of every later run against the first.
        examples: who gains and loses most, of every later run against the first.
        verdicts: whether to use each later run rather than the first, by its letter.
        warnings: what makes the figures less than they seem, in sentences.
        positions: letter -> measures of how much the place of the evidence matters; empty without evidence.
    """

    compared: Comparison
    matrices: Sequence[RecallMatrix]
    examples: Sequence[ExampleQueries]
    verdicts: Mapping[str, Verdict]
    warnings: Sequence[str]
    positions: Mapping[str, Mapping[str, Scores]] = {}

    @property
    def summary(self) -> list[str]:
        """The verdicts' sentences; the first figure where there is one run only."""
        compared = self.compared
        if self.verdicts or not compared.columns:
            return [verdict.sentence for verdict in self.verdicts.values()]
        run, column = compared.candidates[0], compared.primary or compared.columns[0]
        count = f"{len(compared.dataset.queries):,} queries"
        return [f"{run.label} over {count}: {column.measure} {format_score(compared.mean(run.letter, column))}."]

    @property
    def most_shown(self) -> dict[str, Scores]:
        """Label of each run -> the languages of its first hits; empty where that was not measured."""
        compared, column = self.compared, Column(comparison.ALL, MOST_SHOWN_20)
        measured = compared.candidates if column in compared.columns else ()
        return {run.label: compared.whole.scores[run.letter][column] for run in measured}

    def to_dict(self, conditions: Sequence[ConditionResult] = ()) -> dict[str, Any]:
        """One JSON document of all that was found, with what the tests rest on."""
        compared = self.compared
        return {
            "dataset": identity(compared.dataset),
            "runs": [
                {"letter": run.letter, "name": run.name, "place": str(run.place)}
                | {name: run.result.get(name) for name in ("index", "mode", "setting", "fingerprint")}
                for run in compared.candidates
            ],
            "test": basis(compared.clusters),
            "sections": _part(compared, compared.whole, compared.sections)["sections"],
            "by_language": {
                language: _part(compared, part, compared.sections) for language, part in compared.by_language.items()
            },
            "slices": {name: _part(compared, part, [comparison.ALL]) for name, part in compared.slices.items()},
            "matrices": [_matrix(found) for found in self.matrices],
            "examples": [_extremes(found) for found in self.examples],
            **({"positions": _positions(self.positions)} if self.positions else {}),
            "most_shown": {
                label: most._asdict() for label, scores in self.most_shown.items() if (most := most_shown(scores))
            },
            "verdicts": [
                {"before": compared.letters[0], "after": letter, **verdict.to_dict()}
                for letter, verdict in self.verdicts.items()
            ],
            "conditions": [condition.to_dict() for condition in conditions],
            "warnings": list(self.warnings),
        }


def compare_places(
    places: Sequence[Path], folder: Path | None, measures: str | None = None, also: Sequence[str] = ()
) -> Comparison:
    """Read runs, score them and test them against each other.

    Args:
        places: folders or TREC runs, as ``runs.load`` reads them.
        folder: the dataset; None takes what the runs name.
        measures: names; None takes the usual ones, LPR among them where every run has scores of whole groups.
        also: names of further measures.

    Raises:
        UsageError: a run, dataset or measure that cannot be used.
    """
    dataset, candidates = comparison.load(places, folder)
    names = parse_names(measures, dataset)
    if measures is None and not all(candidate.group_scores for candidate in candidates):
        names = [name for name in names if name != "LPR"]
    names += parse_names(" ".join(also), dataset) if also else []
    wanted = comparison.columns(list(dict.fromkeys(names)), cross=comparison.judged_across_languages(dataset))
    return comparison.compare(dataset, DatasetLanguages.of(dataset), candidates, wanted)


def findings(compared: Comparison, hits: int = breakdowns.HITS) -> ComparisonFindings:
    """What follows from figures and tests.

    Args:
        compared: the runs.
        hits: how many documents of each run an example shows.
    """
    primary, several = compared.primary, len(compared.candidates) > 1
    found = breakdowns.matrices(compared) if several and comparison.judged_across_languages(compared.dataset) else []
    examples = breakdowns.example_queries(compared, primary, hits=hits) if several and primary else []
    # What measures say of their figures, each once.
    notes = dict.fromkeys(
        f"{run.label}, {column.measure}: {score.note}"
        for run in compared.candidates
        for column, score in compared.whole.scores[run.letter].items()
        if score.note
    )
    known = comparison.warnings(compared.dataset, compared.candidates)
    warnings = [*compared.languages.warnings, *known, *notes]
    verdicts = {letter: of_runs(compared, letter) for letter in compared.letters[1:]}
    return ComparisonFindings(compared, found, examples, verdicts, warnings, breakdowns.positions(compared))


def settings_document(compared: SettingsComparison) -> dict[str, Any]:
    """All figures, what they rest on, and every test against the first row."""
    return {
        "dataset": identity(compared.dataset),
        "test": basis(compared.clusters),
        "rows": [_row(compared, row) for row in compared.rows],
        "slices": {
            name: {"queries": len(part.queries), "rows": [_slice_row(compared, part, row) for row in compared.rows]}
            for name, part in compared.slices.items()
        },
    }


def _slice_row(compared: SettingsComparison, part: ComparedQueries, row: SettingRow) -> dict[str, Any]:
    means = {column.measure: part.mean(row.name, column) for column in compared.columns}
    return {"name": row.name, "measures": means, "tests": _tests(compared, part, row)}


def _row(compared: SettingsComparison, row: SettingRow) -> dict[str, Any]:
    found = row.replay
    top1 = first_document_shares(row)
    return {
        "name": row.name,
        "index": found.index,
        "version": found.version,
        "setting": asdict(found.setting),
        "measures": {name: scores.mean for name, scores in found.scores.items()},
        "queries": {name: scores.queries for name, scores in found.scores.items()},
        **({"top1": top1} if top1 else {}),
        "latency_ms": latency(found),
        "tests": _tests(compared, compared.whole, row),
        "errors": len(found.failed),
        "warnings": list(found.warnings),
    }


def _tests(compared: SettingsComparison, part: ComparedQueries, row: SettingRow) -> dict[str, dict[str, Any]]:
    """Measure -> test against the first row."""
    pair = compared.pair(row)
    return {column.measure: test.to_dict() for (column, of), test in part.tests.items() if of == pair}


def first_document_shares(row: SettingRow) -> dict[str, float | None]:
    """The four outcomes of the first document, which add to 1; empty where Top1 was not asked for or has no query."""
    scores = row.replay.scores.get(TOP1.name)
    cells = {} if scores is None else scores.cells.get(comparison.ALL, {})
    return {outcome: cell.mean for outcome, cell in cells.items()}
