"""A comparison as tables: rows of text, printed by the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from langshift.evaluate.compare.comparing import Comparison
from langshift.evaluate.compare.matrix import Matrix
from langshift.evaluate.compare.sections import ALL, Column
from langshift.evaluate.compare.significance import Tested
from langshift.evaluate.compare.slices import OWN
from langshift.evaluate.compare.winners import Example, Extremes, Found
from langshift.languages import UNDETERMINED
from langshift.shown import figure, signed

_SUPERSCRIPTS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
_STAR = "*"


class Table(NamedTuple):
    """Column heads and rows."""

    heads: list[str]
    rows: list[list[str]]


def figures(compared: Comparison, section: str) -> Table:
    """One row a run and one column a measure, with superscripts: which runs it is significantly higher than."""
    columns = [column for column in compared.columns if column.section == section]
    rows = [[run.label, *(_cell(compared, run.letter, column) for column in columns)] for run in compared.candidates]
    first = compared.candidates[0].letter
    counts = ["queries", *(f"{compared.scores[first][column].queries:,}" for column in columns)]
    return Table(["run", *(column.measure for column in columns)], [*rows, counts])


def _cell(compared: Comparison, letter: str, column: Column) -> str:
    shown = figure(compared.mean(letter, column))
    marks = "".join(_SUPERSCRIPTS[other] for other in lower(compared, letter, column))
    # Figures stay one below the other, however many marks a run has.
    return shown + marks.ljust(len(compared.candidates) - 1)


def lower(compared: Comparison, letter: str, column: Column) -> list[str]:
    """The runs that have a significantly lower figure."""
    found = []
    for other in (run.letter for run in compared.candidates if run.letter != letter):
        pair = (letter, other) if letter < other else (other, letter)
        tested = compared.tested(column, pair)
        if tested is not None and tested.significant and (tested.difference > 0) is (pair[1] == letter):
            found.append(other)
    return found


def chances(compared: Comparison, section: str) -> Table:
    """One row a measure and pair of runs: the difference and its p-values."""
    heads = ["measure", "runs", "difference", "p, randomisation", "corrected", "p, Student's t"]
    rows = [
        [
            column.measure,
            f"{later} - {earlier}",
            signed(found.difference),
            probability(found.randomisation),
            probability(found.corrected),
            probability(found.student),
        ]
        for (column, (earlier, later)), found in compared.pairs.items()
        if column.section == section
    ]
    return Table(heads, rows)


def by_language(compared: Comparison, section: str, letter: str) -> Table:
    """One row a query language: what a later run changes against the first."""
    columns = [column for column in compared.columns if column.section == section]
    first = compared.candidates[0].letter
    rows = []
    for language, queries in compared.asked.items():
        cells = [
            _changed(
                compared.mean(first, column, language),
                compared.mean(letter, column, language),
                compared.tested(column, (first, letter), language),
            )
            for column in columns
        ]
        rows.append([language, f"{len(queries):,}", *cells])
    return Table(["language", "queries", *(column.measure for column in columns)], rows)


def _changed(before: float | None, after: float | None, tested: Tested | None) -> str:
    if before is None or after is None:
        return "-"
    return f"{figure(before)} {signed(after - before):>6}{star(tested)}"


def by_slice(compared: Comparison, letter: str) -> Table:
    """One row for each of the slices, yes and no: what a later run changes against the first.

    Over all relevant documents; the slices are told apart by whether there is an answer in the searcher's language.
    """
    columns = [column for column in compared.columns if column.section == ALL]
    first = compared.candidates[0].letter
    rows = []
    for part, queries in compared.slices.items():
        cells = [
            _changed(
                compared.scores[first][column].over(queries).mean,
                compared.scores[letter][column].over(queries).mean,
                compared.by_slice.get((part, column, (first, letter))),
            )
            for column in columns
        ]
        rows.append(["yes" if part == OWN else "no", f"{len(queries):,}", *cells])
    return Table(["answer there", "queries", *(column.measure for column in columns)], rows)


def matrix(found: Matrix) -> Table:
    """One row a query language and one column a document language: what a later run changes in recall."""
    heads = found.heads
    rows = []
    for language, cells in found.cells.items():
        row = [
            f"{signed(cells[head].tested.difference)}{star(cells[head].tested)}" if head in cells else "- "
            for head in heads
        ]
        rows.append([language, *row])
    return Table(["query", *heads], rows)


def star(tested: Tested | None) -> str:
    """What follows a figure whose change is significant, as wide where it is not."""
    return _STAR if tested is not None and tested.significant else " "


def probability(chance: float | None) -> str:
    """A p-value with the digits that matter; ``<.0001`` below that."""
    if chance is None:
        return "-"
    return "<.0001" if chance < 0.0001 else figure(chance)


def tally(found: Extremes) -> str:
    """How many queries gain and lose."""
    earlier, later = found.pair
    return (
        f"{found.column.measure}, query by query: {later} is better than {earlier} for {found.better:,}, "
        f"worse for {found.worse:,} and the same for {found.same:,}."
    )


def example_head(example: Example) -> str:
    """Names a query, with its figures and its words."""
    change = signed(example.after - example.before)
    figures = f"{figure(example.before)} → {figure(example.after)} {change}"
    return f"{example.query.id} ({example.language or UNDETERMINED}) {figures}: {example.query.text}"


def example_hits(example: Example, letters: Sequence[str], width: int) -> Table:
    """What two runs find first for a query, side by side, each in ``width`` cells of a terminal."""
    longest = max(len(example.hits_before), len(example.hits_after))
    rows = [
        [
            str(place + 1),
            *(
                _hit(hits[place], width) if place < len(hits) else ""
                for hits in (example.hits_before, example.hits_after)
            ),
        ]
        for place in range(longest)
    ]
    return Table(["", *letters], rows)


def _hit(found: Found, width: int) -> str:
    return cut(f"{'*' if found.relevant else ' '} {found.language or UNDETERMINED} {found.text or found.id}", width)


def cut(text: str, width: int) -> str:
    """A text's beginning, no wider than some cells of a terminal."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"
