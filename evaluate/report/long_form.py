"""The report's figures as CSV, one a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from langshift.evaluate.compare.comparing import Comparison
from langshift.evaluate.compare.significance import Tested
from langshift.evaluate.compare.slices import SLICES
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.report.building import TOP1, Report

HEADS = ("section", "measure", "language", "run", "value", "queries", "p", "significant")
_ALL = "all"
Row = tuple[str, str, str, str, float | None, int | None, float | None, str]


def long_form(report: Report) -> str:
    """All figures; ``p`` is the corrected one of the test against the first run.

    ``language`` is that of the queries, ``all`` for all of them; ``significant`` is yes, no, or empty where nothing
    was tested.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADS)
    writer.writerows(_rows(report))
    return text.getvalue()


def _rows(report: Report) -> Iterator[Row]:
    compared = report.found.compared
    yield from _sections(compared)
    yield from _slices(compared)
    yield from _recalls(report)
    yield from _outcomes(report)


def _sections(compared: Comparison) -> Iterator[Row]:
    first = compared.candidates[0].letter
    for column in compared.columns:
        for language in (None, *compared.asked):
            for run in compared.candidates:
                scores = compared.scores[run.letter][column]
                over = scores if language is None else scores.over(compared.asked[language])
                tested = None if run.letter == first else compared.tested(column, (first, run.letter), language)
                yield _row(column.section, column.measure, language or _ALL, run.label, over, tested)


def _slices(compared: Comparison) -> Iterator[Row]:
    first = compared.candidates[0].letter
    for part, queries in compared.slices.items():
        for column in (column for column in compared.columns if column.section == _ALL):
            for run in compared.candidates:
                tested = compared.by_slice.get((part, column, (first, run.letter)))
                over = compared.scores[run.letter][column].over(queries)
                yield _row(SLICES[part], column.measure, _ALL, run.label, over, tested)


def _row(section: str, measure: str, language: str, run: str, scores: Scores, tested: Tested | None) -> Row:
    return (section, measure, language, run, scores.mean, scores.queries, *_judged(tested))


def _judged(tested: Tested | None) -> tuple[float | None, str]:
    return (None, "") if tested is None else (tested.corrected, "yes" if tested.significant else "no")


def _recalls(report: Report) -> Iterator[Row]:
    """Recall by document language; the first run's own figures once."""
    compared = report.found.compared
    for place, matrix in enumerate(report.found.matrices):
        earlier, later = (compared.candidate(letter).label for letter in matrix.pair)
        for language, cells in matrix.cells.items():
            for target, cell in cells.items():
                at = ("recall by document language", f"{matrix.measure} of {target}", language)
                queries = cell.tested.queries
                if place == 0:
                    yield (*at, earlier, cell.before, queries, None, "")
                yield (*at, later, cell.after, queries, *_judged(cell.tested))


def _outcomes(report: Report) -> Iterator[Row]:
    for letter, scores in report.outcomes.items():
        for language, cells in scores.cells.items():
            for outcome, cell in cells.items():
                label = report.found.compared.candidate(letter).label
                yield ("first document", f"{TOP1} {outcome}", language, label, cell.mean, cell.queries, None, "")
