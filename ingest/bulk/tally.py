"""What a journal's lines come to: which are handled, which documents are to be there."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import get_args

from langshift.ingest.bulk.acknowledged import Sampled, State
from langshift.ingest.bulk.lines import Lines
from langshift.ingest.bulk.sampling import HIGHEST, SIZE

# The border of a range is a line without the line before it, or after it. So only borders come to Python.
_BORDERS = """
    SELECT line FROM lines AS here
    WHERE NOT EXISTS (SELECT 1 FROM lines WHERE line = here.line {step} 1) ORDER BY line"""
# SQLite takes ``state`` from the row of the highest line. Sorting goes to a temporary file beyond the cache's size.
_LATEST = """
    SELECT id, max(line) AS latest FROM lines WHERE state IN ('index', 'delete') {only}
    GROUP BY id HAVING state = 'index' ORDER BY id"""
_DOCUMENTS = _LATEST.format(only="")
_SAMPLED = _LATEST.format(only="AND id IN (SELECT id FROM sample)")


def handled(database: sqlite3.Connection) -> Lines:
    """All lines that came to an end."""
    lines = Lines()
    firsts, lasts = (database.execute(_BORDERS.format(step=step)) for step in "-+")
    for (first,), (last,) in zip(firsts, lasts, strict=True):
        lines.add(first, last)
    return lines


def counts(database: sqlite3.Connection) -> dict[str, int]:
    """How many lines have each state."""
    states = get_args(State)
    sums = ", ".join("total(state = ?)" for _ in states)
    row = database.execute(f"SELECT {sums} FROM lines", states).fetchone()  # noqa: S608 (placeholders)
    return {state: int(count) for state, count in zip(states, row, strict=True)}


def documents(database: sqlite3.Connection) -> int:
    """How many ids have ``index`` as their latest line, superseded and dead lines aside."""
    return int(database.execute(f"SELECT count(*) FROM ({_DOCUMENTS})").fetchone()[0])  # noqa: S608 (constants)


def added(database: sqlite3.Connection) -> Counter[str]:
    """What was added up along with the lines."""
    return Counter(dict(database.execute("SELECT name, count FROM tallies")))


def ids(database: sqlite3.Connection) -> sqlite3.Cursor:
    """Those ids, each with its latest line, in order.

    They are sorted before the first row comes, so that lines may be forgotten meanwhile.
    """
    return database.execute(_DOCUMENTS)


def sample(database: sqlite3.Connection) -> list[Sampled]:
    """The sampled lines that are the latest of those ids, in order."""
    rows = database.execute(
        f"SELECT sample.line, sample.id, vector FROM sample JOIN ({_SAMPLED}) AS documents "  # noqa: S608 (constants)
        "ON sample.line = latest AND sample.id = documents.id ORDER BY sample.line"
    )
    return [Sampled(*row) for row in rows]


def last_wanted(database: sqlite3.Connection) -> int:
    """The rank beyond which the sample takes no line."""
    count, highest = database.execute("SELECT count(*), max(rank) FROM sample").fetchone()
    return int(highest) if count >= SIZE else HIGHEST
