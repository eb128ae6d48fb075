"""What became of each line of a load, on disk, so that a load that was cut off can be resumed and lose nothing.

One row is kept for each line that came to an end, also where ranges of lines would do for resuming: when all is
sent the check must know how many documents there are to be, and which, and lines may repeat an id. A row costs
about a microsecond and its id's length in bytes, far less than the line's vector.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import orjson

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, Stage
from langshift.ingest.bulk.journal_store import (
    HIGHEST,
    SIZE,
    Acknowledged,
    JournalFile,
    LineRanges,
    Sampled,
    State,
    sample_priority,
)
from langshift.ingest.bulk.writer import ActionResult, Original
from langshift.output import join_words

Identity = Mapping[str, Any]
"""As JSON: ``corpus`` (as messages name it), ``content`` (its SHA-256), ``index``, ``fingerprint`` (a
``Fingerprint`` as ``to_dict`` gives it), ``least_confidence``, and what else may change what is written."""

_SHOWN = {"corpus": "the corpus", "content": "the content of {corpus}", "least_confidence": "the least confidence"}
# Hashes tell nobody anything.
_UNREADABLE = {"content"}


def _changed(begun: Identity, now: Identity) -> Iterator[str]:
    # The same input under another path is the same input.
    same_input = begun.get("content") is not None and begun.get("content") == now.get("content")
    for name in dict.fromkeys((*begun, *now)):
        old, new = begun.get(name), now.get(name)
        if name == "corpus" and same_input:
            continue
        if name == "fingerprint" and old and new:
            for part, was, is_now in Fingerprint.from_dict(old).differences(Fingerprint.from_dict(new)):
                yield f"the {part.replace('_', ' ')} ({_value(was)}, not {_value(is_now)})"
        elif old != new:
            shown = _SHOWN.get(name, f"the {name.replace('_', ' ')}").format(corpus=now.get("corpus"))
            yield shown if name in _UNREADABLE else f"{shown} ({_value(old)}, not {_value(new)})"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) and not value else str(value)


_IDENTITY, _SUMMARY = "identity", "summary of the finished load"
_NOTHING: Mapping[str, int] = MappingProxyType({})
_ADD = "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
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


class Journal(JournalFile):
    """The journal of one load, an SQLite file that nobody else can open meanwhile; ``with`` closes it.

    Its methods may be called from several threads. Any of them raises LangshiftError where the file cannot be read
    or written; then nothing of what it was to write is there.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        """Open a journal, or make it (mode 0600, its folder 0700) where there is none.

        Raises:
            LangshiftError: another process is at it; it is damaged, or no journal, or of another version; it cannot
                be written.
        """
        super().__init__(path)
        self._set_threshold()

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
            identity: what makes two loads the same, as JSON; see ``langshift.ingest.bulk.journal``.
            facts: what else is to be kept, as JSON.
        """
        self._begin_anew({**facts, _IDENTITY: identity})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Say that the load is complete: ``identity`` and a summary stay, and all else goes.

        Args:
            summary: what ``finished`` is to give, as JSON.
        """
        self._begin_anew({_IDENTITY: self.identity, _SUMMARY: summary})
        self.shrink()

    def require_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse to go on with this load under another identity.

        Raises:
            UsageError: naming each thing that changed.
        """
        begun = self.identity
        if changed := list(_changed(begun, orjson.loads(orjson.dumps(identity)))):
            raise UsageError(
                f"The load of {begun.get('corpus')} into {begun.get('index')} cannot be resumed, because since then "
                f"{join_words(changed)} changed: run it with what it began with, or remove {self.path} to give it up."
            )

    def fact(self, name: str) -> Any:  # noqa: ANN401 (JSON is anything)
        """What was kept under a name; None where nothing was."""
        with self.reading() as database:
            row = database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else orjson.loads(row[0])

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401 (JSON is anything)
        """Keep a JSON value under a name, in place of what was there."""
        with self.writing() as database:
            database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, orjson.dumps(value)))

    def handled(self) -> LineRanges:
        """The lines that need not be read again: those acknowledged, dead ones too."""
        with self.reading() as database:
            lines = LineRanges()
            firsts, lasts = (database.execute(_BORDERS.format(step=step)) for step in "-+")
            for (first,), (last,) in zip(firsts, lasts, strict=True):
                lines.add(first, last)
            return lines

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
        with self.writing() as database:
            database.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?)", rows)
            if tallies:
                database.executemany(_ADD, tallies.items())
            if sampled:
                database.executemany(
                    "INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?)",
                    ((*each, sample_priority(each.line)) for each in sampled),
                )
                database.execute(
                    "DELETE FROM sample WHERE line NOT IN (SELECT line FROM sample ORDER BY rank LIMIT ?)", (SIZE,)
                )
        if sampled:
            self._set_threshold()

    def forget(self, lines: Iterable[int]) -> None:
        """Take lines out that will be sent again; the tallies stay."""
        numbers = [(line,) for line in lines]
        with self.writing() as database:
            database.executemany("DELETE FROM lines WHERE line = ?", numbers)
            database.executemany("DELETE FROM sample WHERE line = ?", numbers)

    def last_line(self) -> int:
        """The highest number among the lines that came to an end; 0 where none has."""
        with self.reading() as database:
            return int(database.execute("SELECT coalesce(max(line), 0) FROM lines").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """How many lines of this load have each state, earlier runs included. Reads the whole journal."""
        states = get_args(State)
        sums = ", ".join("total(state = ?)" for _ in states)
        with self.reading() as database:
            row = database.execute(f"SELECT {sums} FROM lines", states).fetchone()  # noqa: S608 (placeholders)
        return {state: int(count) for state, count in zip(states, row, strict=True)}

    def tallies(self) -> Counter[str]:
        """What was added up over all runs of this load."""
        with self.reading() as database:
            return Counter(dict(database.execute("SELECT name, count FROM tallies")))

    def documents(self) -> int:
        """How many documents are to be there: ids whose latest line is ``index``, by the lines' numbers.

        Lines that were superseded or are dead make no difference. Reads the whole journal.
        """
        with self.reading() as database:
            return int(database.execute(f"SELECT count(*) FROM ({_DOCUMENTS})").fetchone()[0])  # noqa: S608 (constants)

    def ids(self, batch: int) -> Iterator[list[tuple[str, int]]]:
        """Those ids, in order, each with its latest line, ``batch`` of them at a time."""
        with self.reading() as database:
            # Sorted before the first row comes, so that lines may be forgotten meanwhile.
            rows = database.execute(_DOCUMENTS)
        while True:
            with self.reading():
                some = rows.fetchmany(batch)
            if not some:
                return
            yield some

    def wants(self, line: int) -> bool:
        """Whether a line belongs to the sample: a choice by its number alone, ever stricter as the sample fills."""
        return sample_priority(line) <= self._threshold

    def sample(self) -> list[Sampled]:
        """The sampled lines that are the latest of their document and ``index``, in order; about 200 at most."""
        with self.reading() as database:
            rows = database.execute(
                f"SELECT sample.line, sample.id, vector FROM sample JOIN ({_SAMPLED}) AS documents "  # noqa: S608 (constants)
                "ON sample.line = latest AND sample.id = documents.id ORDER BY sample.line"
            )
            return [Sampled(*row) for row in rows]

    def _begin_anew(self, facts: Mapping[str, Any]) -> None:
        with self.writing() as database:
            for table in ("lines", "sample", "tallies", "facts"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
            database.executemany("INSERT INTO facts VALUES (?, ?)", [(n, orjson.dumps(v)) for n, v in facts.items()])
        self._set_threshold()

    def _set_threshold(self) -> None:
        with self.reading() as database:
            count, highest = database.execute("SELECT count(*), max(rank) FROM sample").fetchone()
        # The rank beyond which the sample takes no line.
        self._threshold = int(highest) if count >= SIZE else HIGHEST


#: Before the name of a result where the journal counts them over all runs of a load.
RESULT = "result "


class Ledger:
    """What became of the lines of a load, and the dead letters made of some; may be called from several threads.

    A line counts as handled when the journal has it. A dead letter is on the disk before that, so that a process
    that dies in between writes it once more rather than never.

    Attributes:
        results: lines by what became of them in this run: the server's word (``created`` …), ``superseded``, ``dead``.
        lost: lines that were settled before and that the server has lost: they are counted already.
    """

    def __init__(
        self, journal: Journal, letters: DeadLetters, corpus: str, base: int, on_progress: Callable[[int], None]
    ) -> None:
        """Open a ledger.

        Args:
            journal: a journal that holds a begun load.
            letters: the dead letters.
            corpus: how messages name the input.
            base: the version that line 0 would have.
            on_progress: called after each change with the number of lines.
        """
        self.results: Counter[str] = Counter()
        self._journal, self._letters = journal, letters
        self._corpus, self._base = corpus, base
        self._on_progress = on_progress
        self.lost = LineRanges()
        self._refused: list[DeadLetter] = []
        self._lock = threading.Lock()

    @property
    def dead(self) -> int:
        """Dead letters of this run."""
        return self.results["dead"]

    @property
    def handled(self) -> int:
        """Lines handled in this run."""
        return self.results.total()

    def settle(self, outcomes: Sequence[ActionResult]) -> None:
        """Write down what the server said.

        Raises:
            LangshiftError: the dead letters or the journal cannot be written; then nothing counts as handled.
        """
        letters = [
            self._letter(o.item.line, o.item.id, o.type, o.reason, o.item.original, "write")
            for o in outcomes
            if o.state == "dead"
        ]
        rows = [
            Acknowledged(o.item.line, o.item.id, o.item.operation if o.state == "done" else o.state) for o in outcomes
        ]
        sampled = [
            Sampled(o.item.line, o.item.id, o.item.vector)
            for o in outcomes
            if o.item.vector is not None and o.state == "done"
        ]
        new = [o for o in outcomes if o.item.line not in self.lost]
        results = Counter(o.result if o.state == "done" else o.state for o in new)
        tallies = Counter(tally for o in new if o.state == "done" for tally in o.item.tallies)
        self._write(letters, rows, sampled, results, tallies)

    def refuse(self, line: int, identifier: str | None, kind: str, why: str, original: Original, stage: Stage) -> None:
        """Take a line that never becomes a document; ``flush`` writes it down. Both are for one thread alone.

        Args:
            line: where the input has it.
            identifier: the document's ``_id``, where that is known.
            kind: the error's type.
            why: the error in words.
            original: the line as the input has it.
            stage: where it was found out.
        """
        self._refused.append(self._letter(line, identifier, kind, why, original, stage))

    def flush(self) -> None:
        """Write down what was refused, all at once: each writing waits for the disk.

        Raises:
            LangshiftError: the dead letters or the journal cannot be written; then nothing counts as handled.
        """
        letters, self._refused = self._refused, []
        if letters:
            rows = [Acknowledged(letter.line, letter.id or "", "dead") for letter in letters]
            results = Counter(dead=sum(letter.line not in self.lost for letter in letters))
            self._write(letters, rows, [], results, Counter())

    def _write(
        self,
        letters: Sequence[DeadLetter],
        rows: Sequence[Acknowledged],
        sampled: Sequence[Sampled],
        results: Counter[str],
        tallies: Counter[str],
    ) -> None:
        counted = {**tallies, **{f"{RESULT}{name}": n for name, n in results.items()}}
        with self._lock:
            if letters:
                self._letters.add(letters)
            self._journal.acknowledge(rows, sampled, counted)
            self.results += results
        self._on_progress(results.total())

    def _letter(
        self, line: int, identifier: str | None, kind: str, why: str, original: Original, stage: Stage
    ) -> DeadLetter:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return DeadLetter(original, line, identifier, kind, why, stage, now, self._corpus, self._base + line)
