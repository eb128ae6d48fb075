"""Settings side by side as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langshift import console
from langshift.evaluate.compare.document import in_words
from langshift.evaluate.compare.modes_document import outcomes
from langshift.evaluate.compare.settled import Row, Settled
from langshift.evaluate.compare.significance import Tested
from langshift.evaluate.compare.slices import SLICES
from langshift.evaluate.measures.top1 import OUTCOMES
from langshift.evaluate.replay.result import latency
from langshift.evaluate.report.compare_tables import Table, probability, star
from langshift.evaluate.report.replay_tables import milliseconds
from langshift.shown import figure, heading, line, signed

_TOP1 = "Top1"
_CLOCKS = tuple((clock, part) for clock in ("wall", "took") for part in ("p50", "p95"))
_BETWEEN = 2
"""Blanks between two columns."""


class _Measured(NamedTuple):
    """A measure of one row, and its test against the first row if there is one."""

    row: str
    mean: float | None
    test: Tested | None


def show(settled: Settled) -> None:
    """Print the table of all rows, and the tests against the first: by slice, where there is anything to tell apart."""
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
    for part, queries in settled.slices.items():
        _show_tests(SLICES[part], len(queries), _by_slice(settled, part))
    if len(settled.rows) > 1 and settled.directed:
        if not settled.slices:
            _show_tests("All queries", len(first.replay.answers), _over_all(settled))
        line(_how_to_judge(settled))


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
        rows.append([row.name, *(figure(shares.get(name)) + _perfect(row, name) for name in OUTCOMES)])
    return Table(["setting", *OUTCOMES], rows)


def _times(settled: Settled) -> Table:
    rows = []
    for row in settled.rows:
        times = latency(row.replay)
        rows.append([row.name, *(milliseconds(times[clock][part]) for clock, part in _CLOCKS)])
    return Table(["setting", *(f"{clock} {part}" for clock, part in _CLOCKS)], rows)


def _cell(row: Row, name: str) -> str:
    return figure(row.replay.scores[name].mean) + star(row.tests.get(name))


def _perfect(row: Row, outcome: str) -> str:
    """What follows an outcome's share: of the four only the first is tested."""
    return star(row.tests.get(_TOP1)) if outcome == OUTCOMES[0] else ""


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


def _show_tests(title: str, queries: int, measured: Mapping[str, Sequence[_Measured]]) -> None:
    """Print every measure of every row, and what is known of its difference from the first row."""
    heading(f"\n{title}: {queries:,} queries")
    rows = [
        [name if not place else "", row, figure(mean), *_difference(test)]
        for name, found in measured.items()
        for place, (row, mean, test) in enumerate(found)
        # Not a query of a slice may have a figure: without an answer in its language none has an SLR.
        if any(one.mean is not None for one in found)
    ]
    heads = ["measure", "setting", "mean", "difference", "95 % interval", "p", "corrected p"]
    console.table(None, heads, rows, right=set(heads[2:]))


def _difference(test: Tested | None) -> list[str]:
    if test is None:
        return ["-", "-", "-", "-"]
    between = "-" if test.interval is None else f"{signed(test.interval[0])} to {signed(test.interval[1])}"
    return [signed(test.difference), between, probability(test.randomisation), probability(test.corrected)]


def _by_slice(settled: Settled, part: str) -> dict[str, list[_Measured]]:
    return {
        name: [
            _Measured(row.name, settled.mean(row, part, name), row.sliced.get(part, {}).get(name))
            for row in settled.rows
        ]
        for name in settled.directed
    }


def _over_all(settled: Settled) -> dict[str, list[_Measured]]:
    return {
        name: [_Measured(row.name, row.replay.scores[name].mean, row.tests.get(name)) for row in settled.rows]
        for name in settled.directed
    }


def _how_to_judge(settled: Settled) -> str:
    """What interval and p are of, and what the correction takes together."""
    if settled.slices:
        count = sum(len(tests) for row in settled.rows for tests in row.sliced.values())
        family = "measures times slices times rows after the first"
    else:
        count = sum(len(row.tests) for row in settled.rows)
        family = "all measures times rows after the first"
    return (
        "The interval and p are of that one comparison alone, and a loss is judged by these: a correction would "
        f"excuse it. The corrected p is for {count:,} tests together, {family}, and a gain is judged by it."
    )
