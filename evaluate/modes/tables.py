"""Settings side by side as tables."""

from __future__ import annotations

from langshift import console
from langshift.evaluate.compare.document import in_words
from langshift.evaluate.compare.significance import Tested
from langshift.evaluate.compare.slices import SLICES
from langshift.evaluate.compare.tables import Table, probability
from langshift.evaluate.measures.top1 import OUTCOMES
from langshift.evaluate.modes.document import outcomes
from langshift.evaluate.modes.settled import Row, Settled
from langshift.evaluate.replay_tables import milliseconds
from langshift.evaluate.result import latency
from langshift.evaluate.shown import figure, heading, line, signed

_TOP1 = "Top1"
_CLOCKS = tuple((clock, part) for clock in ("wall", "took") for part in ("p50", "p95"))
_BETWEEN = 2
"""Blanks between two columns."""


def show(settled: Settled) -> None:
    """Print the table of all rows, and that of the slices."""
    first = settled.rows[0]
    heading(f"{settled.dataset.folder}: {len(first.replay.answers):,} queries in {len(settled.rows)} rows")
    tables = [table for table in (_figures(settled), _first_documents(settled), _times(settled)) if table.heads[1:]]
    whole = _beside(tables)
    for table in [whole] if _width(whole) <= console.out.width else tables:
        console.table(None, table.heads, table.rows, right=set(table.heads[1:]))
    line(
        "wall and took: milliseconds a query, one at a time, until the client had the answer and by the server's clock."
    )
    if len(settled.rows) > 1:
        line(f"* differs from the first row, {first.name}. " + in_words(settled.clusters))
    for part in settled.slices:
        _show_slice(settled, part)


def _figures(settled: Settled) -> Table:
    names = [name for name in settled.rows[0].replay.scores if name != _TOP1]
    rows = [[row.name, *(_cell(row, name) for name in names)] for row in settled.rows]
    return Table(["setting", *names], rows)


def _first_documents(settled: Settled) -> Table:
    """What the first document is, four ways, which add to 1; the test is of those that are perfect."""
    if _TOP1 not in settled.rows[0].replay.scores:
        return Table(["setting"], [[row.name] for row in settled.rows])
    rows = []
    for row in settled.rows:
        shares = outcomes(row)
        rows.append([row.name, *(figure(shares.get(name)) + _star(row, name == OUTCOMES[0]) for name in OUTCOMES)])
    return Table(["setting", *OUTCOMES], rows)


def _times(settled: Settled) -> Table:
    rows = []
    for row in settled.rows:
        times = latency(row.replay)
        rows.append([row.name, *(milliseconds(times[clock][part]) for clock, part in _CLOCKS)])
    return Table(["setting", *(f"{clock} {part}" for clock, part in _CLOCKS)], rows)


def _cell(row: Row, name: str) -> str:
    return figure(row.replay.scores[name].mean) + _mark(row.tests.get(name))


def _star(row: Row, perfect: bool) -> str:
    return _mark(row.tests.get(_TOP1)) if perfect else ""


def _mark(test: Tested | None) -> str:
    return "*" if test is not None and test.significant else " "


def _beside(tables: list[Table]) -> Table:
    """Tables of the same rows as one."""
    heads = [tables[0].heads[0], *(head for table in tables for head in table.heads[1:])]
    rows = [
        [rows[0][0], *(cell for row in rows for cell in row[1:])]
        for rows in zip(*(t.rows for t in tables), strict=True)
    ]
    return Table(heads, rows)


def _width(table: Table) -> int:
    """How many cells of a terminal its columns take side by side."""
    columns = zip(table.heads, *table.rows, strict=True)
    return sum(max(map(len, column)) + _BETWEEN for column in columns) - _BETWEEN


def _show_slice(settled: Settled, part: str) -> None:
    heading(f"\n{SLICES[part]}: {len(settled.slices[part]):,} queries")
    rows = []
    for row in settled.rows:
        shown = [row.name, figure(settled.mean(row, part))]
        rows.append([*shown, *_difference(row.sliced.get(part))])
    heads = ["setting", settled.primary or "", "difference", "95 % interval", "corrected p"]
    console.table(None, heads, rows, right=set(heads[1:]))


def _difference(test: Tested | None) -> list[str]:
    if test is None:
        return ["-", "-", "-"]
    between = "-" if test.interval is None else f"{signed(test.interval[0])} to {signed(test.interval[1])}"
    return [signed(test.difference), between, probability(test.corrected)]
