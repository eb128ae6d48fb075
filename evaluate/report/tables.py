"""The report's tables, as all its forms show them: heads, rows of text, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from langshift.evaluate.compare.comparing import Comparison, sign
from langshift.evaluate.compare.matrix import Cell as Recall
from langshift.evaluate.compare.matrix import Matrix
from langshift.evaluate.compare.sections import ALL, Column
from langshift.evaluate.compare.significance import Tested
from langshift.evaluate.compare.slices import OWN
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.report.compare_tables import probability
from langshift.shown import figure, signed

GAIN, LOSS, MARK = "gain", "loss", "mark"


class Cell(NamedTuple):
    """One field.

    Attributes:
        text: what it says.
        star: whether that is significant; None where it is no change.
        tone: ``gain`` or ``loss`` where it is significant and better or worse; ``mark`` for what stays in one line.
        language: the tag of a quoted text, None where the text is the report's own.
    """

    text: str
    star: bool | None = None
    tone: str = ""
    language: str | None = None

    @property
    def plain(self) -> str:
        """The text with its star."""
        return f"{self.text}*" if self.star else self.text


class Head(NamedTuple):
    """The head of a column, and what stands over it and its neighbours."""

    text: str
    over: str = ""

    @property
    def plain(self) -> str:
        """Both in one line."""
        return f"{self.over}: {self.text}" if self.over else self.text


class Table(NamedTuple):
    """One table; the first column names the rows.

    Attributes:
        caption: what it shows.
        heads: of the columns.
        rows: of fields, the first of each being the row's head.
        words: whether the fields are words and no figures.
        quoted: a text that the caption is about.
    """

    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    words: bool = False
    quoted: Cell | None = None

    def over(self) -> list[tuple[str, int]]:
        """What stands over the heads, each with how many columns it spans; empty where nothing does."""
        found = [(name, len(list(heads))) for name, heads in groupby(head.over for head in self.heads)]
        return found if any(name for name, _ in found) else []


def figures(compared: Comparison, section: str, title: str) -> Table:
    """One row a measure: every run's figure, and what each later run changes against the first."""
    first, *later = compared.candidates
    heads = [Head("measure"), Head("queries"), *(Head(run.label) for run in compared.candidates)]
    for run in later:
        heads += [
            Head("change", f"{run.letter} against {first.letter}"),
            Head("p", f"{run.letter} against {first.letter}"),
        ]
    rows = []
    for column in _columns(compared, section):
        row = [Cell(column.measure), Cell(f"{compared.scores[first.letter][column].queries:,}")]
        row += [Cell(figure(compared.mean(run.letter, column))) for run in compared.candidates]
        for run in later:
            tested = compared.tested(column, (first.letter, run.letter))
            means = compared.mean(first.letter, column), compared.mean(run.letter, column)
            row += [change(column, *means, tested), Cell(probability(tested and tested.corrected))]
        rows.append(row)
    return Table(title, heads, rows)


def by_language(compared: Comparison, section: str, letter: str) -> Table:
    """One row a query language: what a later run changes against the first, measure by measure."""
    rows = [
        [Cell(language), Cell(f"{len(queries):,}"), *_changes(compared, section, letter, language)]
        for language, queries in compared.asked.items()
    ]
    rows.append([Cell("all"), Cell(f"{len(compared.dataset.queries):,}"), *_changes(compared, section, letter, None)])
    return Table(
        f"By query language, {section}{_against(compared, letter)}", _heads(compared, section, letter, "language"), rows
    )


def _changes(compared: Comparison, section: str, letter: str, language: str | None) -> Iterator[Cell]:
    first = compared.candidates[0].letter
    for column in _columns(compared, section):
        means = compared.mean(first, column, language), compared.mean(letter, column, language)
        yield Cell(figure(means[0]))
        if letter != first:
            yield Cell(figure(means[1]))
            yield change(column, *means, compared.tested(column, (first, letter), language))


def by_slice(compared: Comparison, letter: str) -> Table:
    """The queries with and without an answer in the searcher's language, over all relevant documents."""
    first, rows = compared.candidates[0].letter, []
    for part, queries in compared.slices.items():
        row = [Cell("yes" if part == OWN else "no"), Cell(f"{len(queries):,}")]
        for column in _columns(compared, ALL):
            before, after = (compared.scores[run][column].over(queries).mean for run in (first, letter))
            row += [Cell(figure(before)), Cell(figure(after))]
            row.append(change(column, before, after, compared.by_slice.get((part, column, (first, letter)))))
        rows.append(row)
    heads = _heads(compared, ALL, letter, "answer in the searcher's language")
    return Table(f"By whether there is an answer in the searcher's language{_against(compared, letter)}", heads, rows)


def recalls(found: Matrix) -> list[Table]:
    """Recall by query and document language: what a later run changes, and both runs' figures."""
    earlier, later = found.pair
    by = f"{found.measure} by query language (rows) and document language"
    heads = [Head("query"), *map(Head, found.heads)]

    def rows(kind: str) -> list[list[Cell]]:
        return [
            [Cell(language), *(_recall(cells[head], kind) if head in cells else Cell("-") for head in found.heads)]
            for language, cells in found.cells.items()
        ]

    return [
        Table(f"{by}: what {later} changes against {earlier}", heads, rows("change")),
        Table(f"{by}: {earlier}", heads, rows("before")),
        Table(f"{by}: {later}", heads, rows("after")),
    ]


def _recall(cell: Recall, kind: str) -> Cell:
    if kind != "change":
        return Cell(figure(cell.before if kind == "before" else cell.after))
    return _marked(cell.tested.difference, cell.tested, 1)


def outcomes(found: Sequence[tuple[str, Scores]]) -> Table:
    """What the first document is: one row a run, by label."""
    rows = []
    names: list[str] = []
    for label, scores in found:
        cells = scores.cells.get(ALL, {})
        names = names or list(cells)
        rows.append([Cell(label), *(Cell(figure(cells[name].mean)) for name in names if name in cells)])
    return Table("What the first document is, as shares of the queries", [Head("run"), *map(Head, names)], rows)


def change(column: Column, before: float | None, after: float | None, tested: Tested | None) -> Cell:
    """What changes in a figure, with what the test says of it."""
    if before is None or after is None:
        return Cell("-", False)
    return _marked(after - before, tested, sign(column))


def _marked(difference: float, tested: Tested | None, better: int) -> Cell:
    star = tested is not None and tested.significant
    tone = "" if not star or not better else GAIN if difference * better > 0 else LOSS
    return Cell(signed(difference), star, tone)


def _columns(compared: Comparison, section: str) -> list[Column]:
    return [column for column in compared.columns if column.section == section]


def _heads(compared: Comparison, section: str, letter: str, rows: str) -> list[Head]:
    first = compared.candidates[0].letter
    parts = [first] if letter == first else [first, letter, "change"]
    over = [Head(part, column.measure) for column in _columns(compared, section) for part in parts]
    return [Head(rows), Head("queries"), *over]


def _against(compared: Comparison, letter: str) -> str:
    first = compared.candidates[0]
    return "" if letter == first.letter else f": {first.label} and {compared.candidate(letter).label}"
