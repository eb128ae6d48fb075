"""The tables of comparisons: heads, rows of text, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from langshift.evaluate.compare.breakdowns import ExampleHit, ExampleQueries, ExampleQuery, RecallMatrix
from langshift.evaluate.compare.breakdowns import RecallCell as Recall
from langshift.evaluate.compare.comparison import ALL, OWN, Column, Comparison, sign
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures.base import Scores
from langshift.languages import UNDETERMINED
from langshift.output import format_change, format_score

_SUPERSCRIPTS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
_STAR = "*"


class TextTable(NamedTuple):
    """Column heads and rows."""

    heads: list[str]
    rows: list[list[str]]


def figures_text(compared: Comparison, section: str) -> TextTable:
    """One row a run and one column a measure, with superscripts: which runs it is significantly higher than."""
    columns = [column for column in compared.columns if column.section == section]
    rows = [[run.label, *(_cell(compared, run.letter, column) for column in columns)] for run in compared.candidates]
    first = compared.candidates[0].letter
    counts = ["queries", *(f"{compared.scores[first][column].queries:,}" for column in columns)]
    return TextTable(["run", *(column.measure for column in columns)], [*rows, counts])


def _cell(compared: Comparison, letter: str, column: Column) -> str:
    shown = format_score(compared.mean(letter, column))
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


def p_values(compared: Comparison, section: str) -> TextTable:
    """One row a measure and pair of runs: the difference and its p-values."""
    heads = ["measure", "runs", "difference", "p, randomisation", "corrected", "p, Student's t"]
    rows = [
        [
            column.measure,
            f"{later} - {earlier}",
            format_change(found.difference),
            probability(found.randomisation),
            probability(found.corrected),
            probability(found.student),
        ]
        for (column, (earlier, later)), found in compared.pairs.items()
        if column.section == section
    ]
    return TextTable(heads, rows)


def by_language_text(compared: Comparison, section: str, letter: str) -> TextTable:
    """One row a query language: what a later run changes against the first."""
    columns = [column for column in compared.columns if column.section == section]
    first = compared.candidates[0].letter
    rows = []
    for language, queries in compared.queries_by_language.items():
        cells = [
            _changed(
                compared.mean(first, column, language),
                compared.mean(letter, column, language),
                compared.tested(column, (first, letter), language),
            )
            for column in columns
        ]
        rows.append([language, f"{len(queries):,}", *cells])
    return TextTable(["language", "queries", *(column.measure for column in columns)], rows)


def _changed(before: float | None, after: float | None, tested: TestResult | None) -> str:
    if before is None or after is None:
        return "-"
    return f"{format_score(before)} {format_change(after - before):>6}{star(tested)}"


def by_slice_text(compared: Comparison, letter: str) -> TextTable:
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
    return TextTable(["answer there", "queries", *(column.measure for column in columns)], rows)


def matrix(found: RecallMatrix) -> TextTable:
    """One row a query language and one column a document language: what a later run changes in recall."""
    heads = found.heads
    rows = []
    for language, cells in found.cells.items():
        row = [
            f"{format_change(cells[head].tested.difference)}{star(cells[head].tested)}" if head in cells else "- "
            for head in heads
        ]
        rows.append([language, *row])
    return TextTable(["query", *heads], rows)


def star(tested: TestResult | None) -> str:
    """What follows a figure whose change is significant, as wide where it is not."""
    return _STAR if tested is not None and tested.significant else " "


def probability(chance: float | None) -> str:
    """A p-value with the digits that matter; ``<.0001`` below that."""
    if chance is None:
        return "-"
    return "<.0001" if chance < 0.0001 else format_score(chance)


def tally(found: ExampleQueries) -> str:
    """How many queries gain and lose."""
    earlier, later = found.pair
    return (
        f"{found.column.measure}, query by query: {later} is better than {earlier} for {found.better:,}, "
        f"worse for {found.worse:,} and the same for {found.same:,}."
    )


def example_head(example: ExampleQuery) -> str:
    """Names a query, with its figures and its words."""
    change = format_change(example.after - example.before)
    figures = f"{format_score(example.before)} → {format_score(example.after)} {change}"
    return f"{example.query.id} ({example.language or UNDETERMINED}) {figures}: {example.query.text}"


def example_hits(example: ExampleQuery, letters: Sequence[str], width: int) -> TextTable:
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
    return TextTable(["", *letters], rows)


def _hit(found: ExampleHit, width: int) -> str:
    return cut(f"{'*' if found.relevant else ' '} {found.language or UNDETERMINED} {found.text or found.id}", width)


def cut(text: str, width: int) -> str:
    """A text's beginning, no wider than some cells of a terminal."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


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
        row += [Cell(format_score(compared.mean(run.letter, column))) for run in compared.candidates]
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
        for language, queries in compared.queries_by_language.items()
    ]
    rows.append([Cell("all"), Cell(f"{len(compared.dataset.queries):,}"), *_changes(compared, section, letter, None)])
    return Table(
        f"By query language, {section}{_against(compared, letter)}", _heads(compared, section, letter, "language"), rows
    )


def _changes(compared: Comparison, section: str, letter: str, language: str | None) -> Iterator[Cell]:
    first = compared.candidates[0].letter
    for column in _columns(compared, section):
        means = compared.mean(first, column, language), compared.mean(letter, column, language)
        yield Cell(format_score(means[0]))
        if letter != first:
            yield Cell(format_score(means[1]))
            yield change(column, *means, compared.tested(column, (first, letter), language))


def by_slice(compared: Comparison, letter: str) -> Table:
    """The queries with and without an answer in the searcher's language, over all relevant documents."""
    first, rows = compared.candidates[0].letter, []
    for part, queries in compared.slices.items():
        row = [Cell("yes" if part == OWN else "no"), Cell(f"{len(queries):,}")]
        for column in _columns(compared, ALL):
            before, after = (compared.scores[run][column].over(queries).mean for run in (first, letter))
            row += [Cell(format_score(before)), Cell(format_score(after))]
            row.append(change(column, before, after, compared.by_slice.get((part, column, (first, letter)))))
        rows.append(row)
    heads = _heads(compared, ALL, letter, "answer in the searcher's language")
    return Table(f"By whether there is an answer in the searcher's language{_against(compared, letter)}", heads, rows)


def recalls(found: RecallMatrix) -> list[Table]:
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
        return Cell(format_score(cell.before if kind == "before" else cell.after))
    return _marked(cell.tested.difference, cell.tested, 1)


def outcomes_table(found: Sequence[tuple[str, Scores]]) -> Table:
    """What the first document is: one row a run, by label."""
    rows = []
    names: list[str] = []
    for label, scores in found:
        cells = scores.cells.get(ALL, {})
        names = names or list(cells)
        rows.append([Cell(label), *(Cell(format_score(cells[name].mean)) for name in names if name in cells)])
    return Table("What the first document is, as shares of the queries", [Head("run"), *map(Head, names)], rows)


def change(column: Column, before: float | None, after: float | None, tested: TestResult | None) -> Cell:
    """What changes in a figure, with what the test says of it."""
    if before is None or after is None:
        return Cell("-", False)
    return _marked(after - before, tested, sign(column))


def _marked(difference: float, tested: TestResult | None, better: int) -> Cell:
    star = tested is not None and tested.significant
    tone = "" if not star or not better else GAIN if difference * better > 0 else LOSS
    return Cell(format_change(difference), star, tone)


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


HITS = 5
_CHARACTERS = 240
_LONGEST_WORD = 30


def examples(extreme: ExampleQueries, labels: Sequence[str]) -> list[Table]:
    """A table for each query that gains or loses much, gains first.

    Args:
        extreme: the queries.
        labels: of the earlier and the later run.
    """
    return [
        _example(extreme, example, labels, gains)
        for found, gains in ((extreme.winners, True), (extreme.losers, False))
        for example in found
    ]


def _example(extreme: ExampleQueries, example: ExampleQuery, labels: Sequence[str], gains: bool) -> Table:
    caption = (
        f"{'Gains' if gains else 'Loses'}: {extreme.column.measure} {format_score(example.before)} → "
        f"{format_score(example.after)} "
        f"({format_change(example.after - example.before)}), query {example.query.id} in "
        f"{example.language or UNDETERMINED}:"
    )
    heads = [Head("rank"), *(Head(head, label) for label in labels for head in ("content", "language", "relevant"))]
    sides = (example.hits_before, example.hits_after)
    rows = [
        [
            Cell(str(rank + 1)),
            *(cell for hits in sides for cell in _hit_cells(hits[rank] if rank < len(hits) else None)),
        ]
        for rank in range(max(map(len, sides)))
    ]
    return Table(caption, heads, rows, words=True, quoted=quoted(example.query.text, example.language))


def _hit_cells(found: ExampleHit | None) -> list[Cell]:
    if found is None:
        return [Cell("-"), Cell("-"), Cell("-")]
    return [
        quoted(found.text or found.id, found.language),
        Cell(found.language or UNDETERMINED),
        Cell("✓ yes", tone=GAIN) if found.relevant else Cell("✗ no", tone=MARK),
    ]


def quoted(text: str, language: str | None) -> Cell:
    """A text's beginning, with the language that it is in."""
    words = " ".join(text.split())
    if len(words) > _CHARACTERS:
        # At a space where one is near: not every script has them.
        start, space, end = words[:_CHARACTERS].rpartition(" ")
        words = (start if space and len(end) <= _LONGEST_WORD else words[:_CHARACTERS]) + "…"
    return Cell(words, language=language or UNDETERMINED)
