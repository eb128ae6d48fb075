"""What became of each line of a load, on disk, so that a load that was cut off can go on and lose nothing.

One row is kept for each line that came to an end, also where ranges of lines would do for resuming: when all is
sent the check must know how many documents there are to be, and which, and lines may repeat an id. A row costs
about a microsecond and its id's length in bytes, far less than the line's vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from langshift.ingest.bulk import identity as identities
from langshift.ingest.bulk import tally
from langshift.ingest.bulk.acknowledged import Acknowledged, Sampled
from langshift.ingest.bulk.journal_file import JournalFile
from langshift.ingest.bulk.lines import Lines
from langshift.ingest.bulk.sampling import SIZE, rank

__all__ = ["Acknowledged", "Journal", "Sampled"]

_IDENTITY, _SUMMARY = "identity", "summary of the finished load"
_NOTHING: Mapping[str, int] = MappingProxyType({})
_ADD = "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"


class Journal:
    """The journal of one load, an SQLite file that nobody else can open meanwhile; ``with`` closes it.

    Its methods may be called from several threads. Any of them raises LangshiftError where the file cannot be read
    or written; then nothing of what it was to write is there.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = JournalFile(path)
        self._set_threshold()

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open a journal, or make it (mode 0600, its folder 0700) where there is none.

        Raises:
            LangshiftError: another process is at it; it is damaged, or no journal, or of another version; it cannot
                be written.
        """
        return cls(path)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def begun(self) -> bool:
        """Whether it holds a load that was begun and is not finished."""
        return bool(self.identity) and self.finished is None

    @property
    def finished(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What a finished load began with, and its summary; None where it holds none."""
        summary = self.fact(_SUMMARY)
        return None if summary is None else (self.identity, summary)

    @property
    def identity(self) -> dict[str, Any]:
        """What the load began with; empty where none was begun."""
        return self.fact(_IDENTITY) or {}

    def begin(self, identity: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Begin a load; what the journal holds of an earlier one goes.

        Args:
            identity: what makes two loads the same, as JSON; see ``langshift.ingest.bulk.identity``.
            facts: what else is to be kept, as JSON.
        """
        self._begin_anew({**facts, _IDENTITY: identity})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Say that the load is complete: ``identity`` and a summary stay, and all else goes.

        Args:
            summary: what ``finished`` is to give, as JSON.
        """
        self._begin_anew({_IDENTITY: self.identity, _SUMMARY: summary})
        self._file.shrink()

    def require_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse to go on with this load under another identity.

        Raises:
            UsageError: naming each thing that changed.
        """
        identities.require_same(self.identity, orjson.loads(_json(identity)), self.path)

    def fact(self, name: str) -> Any:  # noqa: ANN401 (JSON is anything)
        """What was kept under a name; None where nothing was."""
        with self._file.reading() as database:
            row = database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else orjson.loads(row[0])

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401 (JSON is anything)
        """Keep a JSON value under a name, in place of what was there."""
        with self._file.writing() as database:
            database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, _json(value)))

    def handled(self) -> Lines:
        """The lines that need not be read again: those acknowledged, dead ones too."""
        with self._file.reading() as database:
            return tally.handled(database)

    def acknowledge(
        self, rows: Sequence[Acknowledged], sampled: Sequence[Sampled] = (), tallies: Mapping[str, int] = _NOTHING
    ) -> None:
        """Keep that lines came to an end. Once this returns, the end of the process takes nothing back.

        A line that was acknowledged before is now what it is said to be here.

        Args:
            rows: the lines.
            sampled: those of them that the journal ``wants``, and that have a vector.
            tallies: what is to be added up along with them.
        """
        with self._file.writing() as database:
            database.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?)", rows)
            if tallies:
                database.executemany(_ADD, tallies.items())
            if sampled:
                database.executemany(
                    "INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?)", ((*each, rank(each.line)) for each in sampled)
                )
                database.execute(
                    "DELETE FROM sample WHERE line NOT IN (SELECT line FROM sample ORDER BY rank LIMIT ?)", (SIZE,)
                )
        if sampled:
            self._set_threshold()

    def forget(self, lines: Iterable[int]) -> None:
        """Take lines out that will be sent again; the tallies stay."""
        numbers = [(line,) for line in lines]
        with self._file.writing() as database:
            database.executemany("DELETE FROM lines WHERE line = ?", numbers)
            database.executemany("DELETE FROM sample WHERE line = ?", numbers)

    def last_line(self) -> int:
        """The highest number among the lines that came to an end; 0 where none has."""
        with self._file.reading() as database:
            return int(database.execute("SELECT coalesce(max(line), 0) FROM lines").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """How many lines of this load have each state, earlier runs included. Reads the whole journal."""
        with self._file.reading() as database:
            return tally.counts(database)

    def tallies(self) -> Counter[str]:
        """What was added up over all runs of this load."""
        with self._file.reading() as database:
            return tally.added(database)

    def documents(self) -> int:
        """How many documents are to be there: ids whose latest line is ``index``, by the lines' numbers.

        Lines that were superseded or are dead make no difference. Reads the whole journal.
        """
        with self._file.reading() as database:
            return tally.documents(database)

    def ids(self, batch: int) -> Iterator[list[tuple[str, int]]]:
        """Those ids, in order, each with its latest line, ``batch`` of them at a time."""
        with self._file.reading() as database:
            rows = tally.ids(database)
        while True:
            with self._file.reading():
                some = rows.fetchmany(batch)
            if not some:
                return
            yield some

    def wants(self, line: int) -> bool:
        """Whether a line belongs to the sample: a choice by its number alone, ever stricter as the sample fills."""
        return rank(line) <= self._threshold

    def sample(self) -> list[Sampled]:
        """The sampled lines that are the latest of their document and ``index``, in order; about 200 at most."""
        with self._file.reading() as database:
            return tally.sample(database)

    def close(self) -> None:
        """Close the file; again is no error."""
        self._file.close()

    def remove(self) -> None:
        """Close the journal and remove its files."""
        self._file.remove()

    def _begin_anew(self, facts: Mapping[str, Any]) -> None:
        with self._file.writing() as database:
            for table in ("lines", "sample", "tallies", "facts"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
            database.executemany("INSERT INTO facts VALUES (?, ?)", [(n, _json(v)) for n, v in facts.items()])
        self._set_threshold()

    def _set_threshold(self) -> None:
        with self._file.reading() as database:
            self._threshold = tally.last_wanted(database)


def _json(value: object) -> bytes:
    return orjson.dumps(value)
