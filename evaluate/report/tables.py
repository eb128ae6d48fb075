"""The tables of comparisons: heads, rows of text, and what stands out."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.compare.breakdowns import ExampleHit, ExampleQueries, ExampleQuery, RecallCell, RecallMatrix
from langshift.evaluate.compare.comparison import ALL, OWN, Column, ComparedQueries, Comparison, Pair, sign
from langshift.evaluate.compare.log_replays import ChangedQuery
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures.base import MeasureCell, Scores, mean_of
from langshift.evaluate.measures.most_shown import format_figure, most_shown
from langshift.evaluate.measures.positions import FIFTHS, FLOOR, FLOOR_95, NDCG, PSI
from langshift.evaluate.replay.overlap import DEPTH, Drift, Overlap
from langshift.languages import UNDETERMINED
from langshift.wording import format_change, format_score

GAIN, LOSS, MARK = "gain", "loss", "mark"
HEAT, BAR = "heat", "bar"
#: The row of the mean over the rows above it, each of which counts alike.
MACRO = "mean"


class Cell(NamedTuple):
    """One field.

    Attributes:
        text: what it says.
        star: whether that is significant; None where it is no change.
        tone: ``gain`` or ``loss`` where it is significant and better or worse; ``mark`` for what stays in one line;
            ``heat`` and ``bar`` for how the share is drawn.
        language: the tag of a quoted text, None where the text is the report's own.
        share: how much of the full shade, or of the cell's width, stands behind the text, 0 to 1; None draws nothing.
    """

    text: str
    star: bool | None = None
    tone: str = ""
    language: str | None = None
    share: float | None = None


class Head(NamedTuple):
    """The head of a column, and what stands over it and its neighbours."""

    text: str
    over: str = ""


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


def heatmap(
    caption: str,
    row_title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    values: NDArray[np.float64],
    highest: float,
) -> Table:
    """Return a table whose cells are shaded: a greater figure has a stronger shade.

    Args:
        caption: what it shows, and what the columns are.
        row_title: what the rows are.
        columns: their labels.
        rows: theirs.
        values: shares, rows x columns; NaN is a cell without one.
        highest: the share of full shade.
    """
    cells = [[_shaded(float(value), highest) for value in row] for row in values]
    return Table(
        caption, [Head(row_title), *map(Head, columns)], [[Cell(n), *c] for n, c in zip(rows, cells, strict=True)]
    )


def _shaded(value: float, highest: float) -> Cell:
    if math.isnan(value):
        return Cell("-")
    return Cell(f"{value:.2f}", tone=HEAT, share=round(value / highest, 3) if highest else 0.0)


def bar(text: str, value: float | None, greatest: float = 1.0) -> Cell:
    """Return a cell with a bar behind its text, as wide as the cell where the value is the greatest."""
    return Cell(text) if value is None or greatest <= 0 else Cell(text, tone=BAR, share=round(value / greatest, 3))


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


def describe_move(example: ExampleQuery) -> tuple[str, str]:
    """``.5000 → .7500`` and ``+.2500``."""
    change = format_change(example.after - example.before)
    return f"{format_score(example.before)} → {format_score(example.after)}", change


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


def by_value(compared: Comparison, section: str, letter: str) -> Table:
    """One row for each value of the field by which the runs searched a part, and one of the mean over these."""
    field = compared.candidates[0].result["within"]
    table = _by_part(compared, f"By what is searched, {field}, {section}", field, compared.by_value, section, letter)
    row, parts = [Cell(MACRO), Cell(f"{len(compared.dataset.queries):,}")], compared.by_value.values()
    sides = list(dict.fromkeys([compared.candidates[0].letter, letter]))
    for column in compared.columns_of(section):
        means = [mean_of([mean for part in parts if (mean := part.mean(side, column)) is not None]) for side in sides]
        row += [Cell(format_score(mean)) for mean in means]
        if len(means) > 1:
            earlier, later = means
            row.append(Cell("-" if earlier is None or later is None else format_change(later - earlier)))
    return table._replace(rows=[*table.rows, row])


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


def recalls(found: RecallMatrix) -> list[Table]:
    """Recall by query and document language: what a later run changes, and both runs' figures."""
    earlier, later = found.pair
    by = f"{found.measure} by query language (rows) and document language"
    heads = [Head("query"), *map(Head, found.heads)]
    fields: dict[str, Callable[[RecallCell], Cell]] = {
        f"change from {earlier} to {later}": lambda cell: _marked(cell.tested.difference, cell.tested, 1),
        earlier: lambda cell: Cell(format_score(cell.before), tone=HEAT, share=cell.before),
        later: lambda cell: Cell(format_score(cell.after), tone=HEAT, share=cell.after),
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
    rows = [
        [Cell(label), *(bar(format_score(cell), cell) for cell in cells.values())] for label, cells in shares.items()
    ]
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
    means = {label: [_of_all(of[psi].cells, row) for row in FIFTHS] for label, of in found.items()}
    rows = [[Cell(label), *(bar(format_score(mean), mean) for mean in known)] for label, known in means.items()]
    caption = f"{psi.replace(PSI.name, NDCG)} by fifth of the document"
    return Table(caption, [Head("run"), *map(Head, FIFTHS)], rows)


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
            moved, change = describe_move(example)
            language = example.language or UNDETERMINED
            caption = f"{verb}: {extreme.column.measure} {moved} ({change}), query {example.query.id} in {language}:"
            rows = [
                [Cell(str(rank)), *_hit_cells(before), *_hit_cells(after)]
                for rank, (before, after) in enumerate(zip_longest(*example.hits), 1)
            ]
            made.append(Table(caption, heads, rows, words=True, quoted=quoted(example.query.text, language)))
    return made


def overlap_table(found: Overlap) -> Table:
    """One row a query language: how alike the answers of two runs are, and which languages come up more."""
    heads = ["language", "queries", "RBO", f"Jaccard@{DEPTH}", "own language, before", "after", "largest changes"]
    parts = {**found.by_language, **({ALL: found.whole} if len(found.by_language) != 1 else {})}
    rows = []
    for language, part in parts.items():
        own = [
            Cell("-" if language == ALL else format_score(side.get(language, 0.0), 3))
            for side in (part.before, part.after)
        ]
        alike = [Cell(format_score(part.rbo, 3)), Cell(format_score(part.jaccard, 3))]
        rows.append([Cell(language), Cell(f"{part.queries:,}"), *alike, *own, Cell(moved_languages(part))])
    title = f"From {found.before} to {found.after}: overlap, and languages among the first {DEPTH}"
    return Table(title, list(map(Head, heads)), rows)


_MOVED = 3


def moved_languages(part: Drift) -> str:
    """The languages whose share of the first 20 changes most, such as ``de +.120, en -.080``; ``-`` where none does."""
    changes = {tag: part.after.get(tag, 0.0) - part.before.get(tag, 0.0) for tag in {**part.before, **part.after}}
    most = sorted(changes, key=lambda tag: (-abs(changes[tag]), tag))[:_MOVED]
    moved = [(tag, format_change(changes[tag], 3, same="")) for tag in most]
    return ", ".join(f"{tag} {change}" for tag, change in moved if change) or "-"


def changed_queries(found: Sequence[ChangedQuery], labels: Sequence[str]) -> list[Table]:
    """A table for each query whose answers have little in common, the least alike first.

    Args:
        found: the queries.
        labels: of the earlier and the later run.
    """
    heads = [Head("rank"), *(Head(head, label) for label in labels for head in ("content", "language"))]
    made = []
    for one in found:
        language = one.language or UNDETERMINED
        caption = f"RBO {format_score(one.rbo, 3)}, query {one.query.id} in {language}:"
        rows = [
            [Cell(str(rank)), *(cell for hit in hits for cell in _hit_cells(hit)[:2])]
            for rank, hits in enumerate(zip_longest(*one.hits), 1)
        ]
        words = quoted(one.query.text or "(words not written)", language)
        made.append(Table(caption, heads, rows, words=True, quoted=words))
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
