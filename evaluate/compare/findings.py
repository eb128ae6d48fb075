"""All that runs say against each other, as one JSON document: what is printed, and what a report rests on."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.compare import breakdowns, comparison, log_replays
from langshift.evaluate.compare.breakdowns import ExampleQueries, ExampleQuery, RecallMatrix
from langshift.evaluate.compare.comparison import Column, ComparedQueries, Comparison
from langshift.evaluate.compare.gate import ConditionResult
from langshift.evaluate.compare.log_replays import Change
from langshift.evaluate.compare.significance import CORRECTION, LEVEL, PERMUTATIONS, SEED, exact
from langshift.evaluate.compare.verdict import Verdict, judge_runs
from langshift.evaluate.datasets.dataset import Clusters, identity
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, most_shown
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


def _part(part: ComparedQueries, columns: Sequence[Column]) -> dict[str, Any]:
    """How many queries, and section -> measure -> figures and tests."""
    found: dict[str, dict[str, Any]] = {}
    for column in columns:
        found.setdefault(column.section, {})[column.measure] = _figures(part, column)
    return {"queries": len(part.queries), "sections": found}


def _figures(part: ComparedQueries, column: Column) -> dict[str, Any]:
    scores = {letter: row[column] for letter, row in part.scores.items()}
    family = parse_measure(column.measure).family
    tests = {pair: found for pair in combinations(scores, 2) if (found := part.tested(column, pair)) is not None}
    return {
        "means": {letter: found.mean for letter, found in scores.items()},
        "queries": {letter: found.queries for letter, found in scores.items()},
        "left_out": {letter: found.left_out for letter, found in scores.items()},
        "direction": family.direction,
        "source": family.source,
        "tables": {letter: found.table.to_dict() for letter, found in scores.items() if found.table is not None},
        "notes": {letter: found.note for letter, found in scores.items() if found.note},
        "tests": [{"before": before, "after": after, **found.to_dict()} for (before, after), found in tests.items()],
    }


_SIDES = ("before", "after")
# What of ``result.json`` is said of each run.
_OF_RESULT = ("index", "version", "mode", "setting", "fingerprint", "latency_ms", "errors")


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
    """Letter -> measure -> its mean, and the tables as ``sections`` has them."""
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
        changes: letter -> how alike the answers of a later run and the first are; empty where there are judgements.
    """

    compared: Comparison
    matrices: Sequence[RecallMatrix]
    examples: Sequence[ExampleQueries]
    verdicts: Mapping[str, Verdict]
    warnings: Sequence[str]
    positions: Mapping[str, Mapping[str, Scores]] = {}
    changes: Mapping[str, Change] = {}

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
                | {name: run.result.get(name) for name in _OF_RESULT}
                for run in compared.candidates
            ],
            "test": basis(compared.clusters),
            "sections": _part(compared.whole, compared.columns)["sections"],
            "by_language": {language: _part(part, compared.columns) for language, part in compared.by_language.items()},
            "slices": {name: _part(part, compared.named) for name, part in compared.slices.items()},
            "by_value": {name: _part(part, compared.columns) for name, part in compared.by_value.items()},
            "matrices": [_matrix(found) for found in self.matrices],
            "examples": [_extremes(found) for found in self.examples],
            **({"positions": _positions(self.positions)} if self.positions else {}),
            **({"changes": [change.to_dict() for change in self.changes.values()]} if self.changes else {}),
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
    if folder is None and log_replays.is_logged(places[0]):
        if measures is not None or also:
            raise UsageError(f"{places[0]} is a replay without judgements, so nothing can be measured: give --dataset.")
        dataset, candidates = comparison.load(places, None, log_replays.load_logged(places))
        return comparison.compare(dataset, log_replays.languages_of(dataset), candidates, [])
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
    if not compared.dataset.qrels:
        changes = log_replays.changes(compared, hits=hits)
        warnings = comparison.warnings(compared.dataset, compared.candidates)
        return ComparisonFindings(compared, [], [], log_replays.verdicts(compared, changes), warnings, changes=changes)
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
    known = comparison.warnings(compared.dataset, compared.candidates, compared.columns)
    warnings = [*compared.languages.warnings, *known, *notes]
    verdicts = {letter: judge_runs(compared, letter) for letter in compared.letters[1:]}
    return ComparisonFindings(compared, found, examples, verdicts, warnings, breakdowns.positions(compared))
