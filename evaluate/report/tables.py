"""The tables of comparisons: heads, rows of text, and what stands out."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from langshift import output
from langshift.evaluate.compare.breakdowns import ExampleHit, ExampleQueries, ExampleQuery, RecallCell, RecallMatrix
from langshift.evaluate.compare.comparison import ALL, OWN, Column, ComparedQueries, Comparison, Pair, sign
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures.base import MeasureCell, Scores
from langshift.evaluate.measures.fairness import FIFTHS, FLOOR, FLOOR_95, NDCG, PSI
from langshift.evaluate.measures.most_shown import format_figure, most_shown
from langshift.languages import UNDETERMINED
from langshift.wording import format_change, format_score

_SUPERSCRIPTS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
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


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> Table:
    """A table of texts without a caption."""
    return Table("", [Head(head) for head in heads], [[Cell(text) for text in row] for row in rows], words)


def terminal_rows(table: Table) -> list[list[str]]:
    """Fields with their stars; those of a column that has stars are as wide where they have none."""
    starred = [any(cell.star is not None for cell in column) for column in zip(*table.rows, strict=True)]
    return [
        [cell.text + ("*" if cell.star else " " if wide else "") for cell, wide in zip(row, starred, strict=True)]
        for row in table.rows
    ]


def show_table(table: Table) -> None:
    """Print a table in the terminal, figures aligned to the right; what stands over its heads is left out."""
    heads = [head.text for head in table.heads]
    output.table(
        None,
        heads,
        terminal_rows(table),
        right=set() if table.words else set(heads[1:]),
        prose=heads if table.words else (),
    )


def figures_by_run(compared: Comparison, section: str) -> Table:
    """One row a run and one column a measure, with superscripts: which runs it is significantly higher than."""
    columns = compared.columns_of(section)
    rows = [
        [run.label, *(_superscribed(compared, run.letter, column) for column in columns)] for run in compared.candidates
    ]
    first = compared.whole.scores[compared.letters[0]]
    counts = ["queries", *(f"{first[column].queries:,}" for column in columns)]
    return plain_table(["run", *(column.measure for column in columns)], [*rows, counts])


def _superscribed(compared: Comparison, letter: str, column: Column) -> str:
    marks = ""
    for other in compared.letters:
        tested = compared.whole.against(column, letter, other)
        if tested is not None and tested.significant and tested.difference > 0:
            marks += _SUPERSCRIPTS[other]
    # Figures stay one below the other, however many marks a run has.
    return format_figure(compared.whole.scores[letter][column]) + marks.ljust(len(compared.candidates) - 1)


def p_values(compared: Comparison, section: str) -> Table:
    """One row a measure and pair of runs: the difference and its p-values."""
    heads = ["measure", "runs", "difference", "p, randomisation", "corrected", "p, Student's t"]
    rows = []
    for (column, (earlier, later)), found in compared.whole.tests.items():
        if column.section == section:
            chances = map(probability, (found.randomisation, found.corrected, found.student))
            rows.append([column.measure, f"{later} - {earlier}", format_change(found.difference), *chances])
    return plain_table(heads, rows)


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
    moved, change = _moved(example)
    return f"{example.query.id} ({example.language or UNDETERMINED}) {moved} {change}: {example.query.text}"


def _moved(example: ExampleQuery) -> tuple[str, str]:
    """``.5000 → .7500`` and ``+.2500``."""
    change = format_change(example.after - example.before)
    return f"{format_score(example.before)} → {format_score(example.after)}", change


def example_hits(example: ExampleQuery, letters: Sequence[str], width: int) -> Table:
    """What two runs find first for a query, side by side, each in ``width`` cells of a terminal."""
    rows = [
        [str(rank), *("" if hit is None else _brief(hit, width) for hit in hits)]
        for rank, hits in enumerate(zip_longest(*example.hits), 1)
    ]
    return plain_table(["", *letters], rows, words=True)


def _brief(hit: ExampleHit, width: int) -> str:
    return cut(f"{'*' if hit.relevant else ' '} {hit.language or UNDETERMINED} {hit.text or hit.id}", width)


def cut(text: str, width: int) -> str:
    """A text's beginning, no wider than some cells of a terminal."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def figures(compared: Comparison, section: str, title: str) -> Table:
    """One row a measure: every run's figure, and what each later run changes against the first."""
    first, *later = compared.letters
    heads = [Head("measure"), Head("queries"), *(Head(run.label) for run in compared.candidates)]
    heads += [Head(text, f"{letter} against {first}") for letter in later for text in ("change", "p")]
    rows = []
    for column in compared.columns_of(section):
        row = [Cell(column.measure), Cell(f"{compared.whole.scores[first][column].queries:,}")]
        row += [Cell(format_figure(compared.whole.scores[letter][column])) for letter in compared.letters]
        for letter in later:
            tested = compared.whole.tested(column, (first, letter))
            row += [_change(compared.whole, column, (first, letter)), Cell(probability(tested and tested.corrected))]
        rows.append(row)
    return Table(title, heads, rows)


def by_language(compared: Comparison, section: str, letter: str) -> Table:
    """One row a query language: what a later run changes against the first, measure by measure."""
    parts = {**compared.by_language, ALL: compared.whole}
    return _by_part(compared, f"By query language, {section}", "language", parts, section, letter)


def by_slice(compared: Comparison, letter: str) -> Table:
    """The queries with and without an answer in the searcher's language, over all relevant documents."""
    parts = {"yes" if name == OWN else "no": part for name, part in compared.slices.items()}
    head = "answer in the searcher's language"
    return _by_part(compared, f"By whether there is an {head}", head, parts, ALL, letter)


def _by_part(
    compared: Comparison, title: str, head: str, parts: Mapping[str, ComparedQueries], section: str, letter: str
) -> Table:
    """One row for some of the queries: each measure of the first run, of another, and what that changes."""
    first, columns = compared.candidates[0], compared.columns_of(section)
    sides = [letter]
    if letter != first.letter:
        title += f": {first.label} and {compared.candidate(letter).label}"
        sides = [first.letter, letter, "change"]
    heads = [Head(head), Head("queries"), *(Head(side, column.measure) for column in columns for side in sides)]
    rows = []
    for name, part in parts.items():
        row = [Cell(name), Cell(f"{len(part.queries):,}")]
        for column in columns:
            row += [Cell(format_figure(part.scores[side][column])) for side in sides[:2]]
            row += [_change(part, column, (first.letter, letter)) for _ in sides[2:]]
        rows.append(row)
    return Table(title, heads, rows)


def narrow(table: Table, head: str) -> Table:
    """Figures by part of the queries as a terminal has room for them: the earlier one with its change in one column.

    The row of all queries is left out.

    Args:
        table: what a later run changes by language or slice.
        head: of the first column.
    """
    rows = [
        [row[0], row[1], *(_narrow_cell(row[place], row[place + 2]) for place in range(2, len(row), 3))]
        for row in table.rows
        if row[0].text != ALL
    ]
    return Table(table.caption, [Head(head), table.heads[1], *(Head(name) for name, _ in table.over()[1:])], rows)


def _narrow_cell(before: Cell, change: Cell) -> Cell:
    if change.text == "-":
        return change._replace(star=None)
    return Cell(f"{before.text} {change.text:>6}{'*' if change.star else ' '}")


def recalls(found: RecallMatrix) -> list[Table]:
    """Recall by query and document language: what a later run changes, and both runs' figures."""
    earlier, later = found.pair
    by = f"{found.measure} by query language (rows) and document language"
    heads = [Head("query"), *map(Head, found.heads)]
    fields: dict[str, Callable[[RecallCell], Cell]] = {
        f"change from {earlier} to {later}": lambda cell: _marked(cell.tested.difference, cell.tested, 1),
        earlier: lambda cell: Cell(format_score(cell.before)),
        later: lambda cell: Cell(format_score(cell.after)),
    }
    made = []
    for what, field in fields.items():
        rows = [
            [Cell(language), *(field(cells[head]) if head in cells else Cell("-") for head in found.heads)]
            for language, cells in found.cells.items()
        ]
        made.append(Table(f"{by}: {what}", heads, rows))
    return made


def outcomes_table(found: Sequence[tuple[str, Scores]]) -> Table:
    """What the first document is: one row a run, by label."""
    shares = {label: {name: cell.mean for name, cell in scores.cells.get(ALL, {}).items()} for label, scores in found}
    names = next((list(cells) for cells in shares.values() if cells), [])
    rows = [[Cell(label), *map(Cell, map(format_score, cells.values()))] for label, cells in shares.items()]
    return Table("Outcome of the first document, as shares of the queries", [Head("run"), *map(Head, names)], rows)


def most_shown_table(found: Mapping[str, Scores]) -> Table | None:
    """The language that is shown most, beside its share of what is relevant: one row a run; None without."""
    shares = [(label, one) for label, scores in found.items() if (one := most_shown(scores))]
    if not shares:
        return None
    rows = [
        [Cell(label), Cell(one.language), Cell(format_score(one.shown, 3)), Cell(format_score(one.fair, 3))]
        for label, one in shares
    ]
    _, first = shares[0]
    heads = [Head("run"), Head("language"), Head(f"of {first.hits}"), Head(f"of {first.beside}")]
    return Table("The language that is shown most, and its share", heads, rows)


def positions_table(found: Mapping[str, Mapping[str, Scores]]) -> Table:
    """How much the place of the evidence in a document matters: one row a run.

    Args:
        found: label -> PSI, and EvidenceHit where it was measured.
    """
    psi, *hits = next(iter(found.values()))
    rows = []
    for label, scores in found.items():
        cells = scores[psi].cells
        fifths = [mean for row in FIFTHS if (mean := _of_all(cells, row)) is not None]
        known = [_of_all(cells, row) for row in (NDCG, PSI.name, FLOOR, FLOOR_95)]
        known += [min(fifths, default=None), max(fifths, default=None), *(scores[hit].mean for hit in hits)]
        rows.append([Cell(label), *(Cell(format_score(figure)) for figure in known)])
    heads = [Head("run"), Head(psi.replace(PSI.name, NDCG)), Head(psi)]
    heads += [Head(FLOOR, "without bias"), Head("95 %", "without bias")]
    heads += [Head("worst", "fifth of the document"), Head("best", "fifth of the document"), *map(Head, hits)]
    return Table("By the place of the evidence: PSI with its floor, worst and best fifth of the document", heads, rows)


def fifths_table(found: Mapping[str, Mapping[str, Scores]]) -> Table:
    """How well is ranked by the fifth of the document that the evidence is in: one row a run."""
    psi = next(iter(next(iter(found.values()))))
    rows = [[label, *(format_score(_of_all(of[psi].cells, row)) for row in FIFTHS)] for label, of in found.items()]
    caption = f"{psi.replace(PSI.name, NDCG)} by fifth of the document"
    return plain_table(["run", *FIFTHS], rows)._replace(caption=caption)


def _of_all(cells: Mapping[str, Mapping[str, MeasureCell]], row: str) -> float | None:
    cell = cells.get(row, {}).get(ALL)
    return None if cell is None else cell.mean


def _change(part: ComparedQueries, column: Column, pair: Pair) -> Cell:
    """What changes in a figure, with what the test says of it."""
    change = part.change(column, pair)
    if change is None:
        return Cell("-", star=False)
    return _marked(change, part.tested(column, pair), sign(column))


def _marked(difference: float, tested: TestResult | None, better: int) -> Cell:
    star = tested is not None and tested.significant
    tone = "" if not star or not better else GAIN if difference * better > 0 else LOSS
    return Cell(format_change(difference), star, tone)


HITS = 5
_CHARACTERS = 240
_LONGEST_WORD = 30


def examples(extreme: ExampleQueries, labels: Sequence[str]) -> list[Table]:
    """A table for each query that gains or loses much, gains first.

    Args:
        extreme: the queries.
        labels: of the earlier and the later run.
    """
    heads = [Head("rank"), *(Head(head, label) for label in labels for head in ("content", "language", "relevant"))]
    made = []
    for verb, found in (("Gains", extreme.winners), ("Loses", extreme.losers)):
        for example in found:
            moved, change = _moved(example)
            language = example.language or UNDETERMINED
            caption = f"{verb}: {extreme.column.measure} {moved} ({change}), query {example.query.id} in {language}:"
            rows = [
                [Cell(str(rank)), *_hit_cells(before), *_hit_cells(after)]
                for rank, (before, after) in enumerate(zip_longest(*example.hits), 1)
            ]
            made.append(Table(caption, heads, rows, words=True, quoted=quoted(example.query.text, language)))
    return made


def _hit_cells(found: ExampleHit | None) -> list[Cell]:
    if found is None:
        return [Cell("-")] * 3
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
