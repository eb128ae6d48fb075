"""What a measure gives: figures by query, their mean, and how many queries are behind it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple


class Cell(NamedTuple):
    """A figure of a table (None where it has none) and the number of queries behind it."""

    mean: float | None
    queries: int


@dataclass(frozen=True)
class Table:
    """A measure's figures in rows and columns, such as query language by document language.

    Attributes:
        rows: what a row is.
        columns: what a column is.
        cells: row -> column -> cell; a cell that is missing has no query.
    """

    rows: str
    columns: str
    cells: Mapping[str, Mapping[str, Cell]]

    @property
    def heads(self) -> list[str]:
        """The columns, in the order in which rows bring them."""
        return list(dict.fromkeys(column for row in self.cells.values() for column in row))


@dataclass(frozen=True)
class Scores:
    """One measure over a run.

    Attributes:
        per_query: query id -> figure, for each query that the measure counts.
        left_out: how many queries it does not count.
        note: what a reader must know of the figure, such as why there is none, to follow the name and a colon;
            or None.
        table: the figures behind it in rows and columns, where it has such.
    """

    per_query: Mapping[str, float]
    left_out: int
    note: str | None = None
    table: Table | None = None

    @property
    def queries(self) -> int:
        """How many queries the mean is over."""
        return len(self.per_query)

    @property
    def mean(self) -> float | None:
        """The mean over the queries; None where there is none."""
        return fmean(self.per_query.values()) if self.per_query else None

    @property
    def cells(self) -> Mapping[str, Mapping[str, Cell]]:
        """Row -> column -> figure of the table; empty where there is none."""
        return self.table.cells if self.table else {}

    def over(self, queries: Iterable[str]) -> Scores:
        """The same measure over some of the queries."""
        wanted = list(queries)
        kept = {query: self.per_query[query] for query in wanted if query in self.per_query}
        return Scores(kept, len(wanted) - len(kept))


@dataclass(frozen=True)
class Pooled(Scores):
    """A measure whose figure belongs to a set of queries, or whose table changes with the set.

    Attributes:
        figure: the mean; not that of ``per_query``, which may be empty.
        counted: how many queries it is over.
        again: computes the same measure over other queries.
    """

    figure: float | None = None
    counted: int = 0
    again: Callable[[Collection[str]], Scores] = field(default=lambda _: Scores({}, 0), repr=False, compare=False)

    @property
    def queries(self) -> int:
        """How many queries the figure is over."""
        return self.counted

    @property
    def mean(self) -> float | None:
        """The figure; None where there is none."""
        return self.figure

    def over(self, queries: Iterable[str]) -> Scores:
        """The same measure over some of the queries."""
        return self.again(list(queries))
