"""What became of each line of a load, on disk, so that a load that was cut off can be resumed and lose nothing.

One row is kept for each line that came to an end, also where ranges of lines would do for resuming: when all is
sent the check must know how many documents there are to be, and which, and lines may repeat an id. A row costs
about a microsecond and its id's length in bytes, far less than the line's vector.
"""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import orjson

from langshift.debias.fingerprint import Fingerprint, shown_value
from langshift.errors import LangshiftError, UsageError
from langshift.files import ensure_private
from langshift.ingest.bulk import journal_store
from langshift.ingest.bulk.chunked import Ended, LineParts
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.journal_store import Acknowledged, Entry, LineRanges, Sampled, State, sample_priority
from langshift.ingest.bulk.writer import ActionResult
from langshift.plugin.metadata import chunk_id
from langshift.wording import iso_time, join_words

# As JSON: ``corpus`` (as messages name it), ``content`` (its SHA-256), ``index``, ``fingerprint`` (a ``Fingerprint`` as
# ``to_dict`` gives it), ``least_confidence``, and what else may change what is written.
Identity = Mapping[str, Any]

_SHOWN = {"corpus": "the corpus", "content": "the content of {corpus}", "least_confidence": "the minimum confidence"}


def _changed(begun: Identity, now: Identity) -> Iterator[str]:
    # The same input under another path is the same input.
    same_input = begun.get("content") is not None and begun.get("content") == now.get("content")
    for name in dict.fromkeys((*begun, *now)):
        old, new = begun.get(name), now.get(name)
        if name == "corpus" and same_input:
            continue
        if name == "fingerprint" and old and new:
            for part, was, is_now in Fingerprint.from_dict(old).differences(Fingerprint.from_dict(new)):
                yield f"the {part.replace('_', ' ')} ({shown_value(was)}, not {shown_value(is_now)})"
        elif old != new:
            shown = _SHOWN.get(name, f"the {name.replace('_', ' ')}").format(corpus=now.get("corpus"))
            # A hash tells nobody anything.
            yield shown if name == "content" else f"{shown} ({shown_value(old)}, not {shown_value(new)})"


#: The names of what a load began with, and of what it had done once it was complete.
IDENTITY, SUMMARY = "identity", "summary of the finished load"
_Number = Annotated[int, msgspec.Meta(ge=0, le=journal_store.HIGHEST)]


class _Identity(msgspec.Struct):
    index: str
    corpus: str
    fingerprint: Fingerprint
    content: str | None = None


class _LoadResult(msgspec.Struct):
    index: str
    uuid: str
    tallies: dict[str, int]
    present: _Number
    repaired: _Number
    last: _Number
    chunks: _Number = 0
    unpublished: str | None = None


class _Planned(msgspec.Struct, kw_only=True):
    planned: str | None = None


class _Begun(_Planned, kw_only=True):
    identity: _Identity
    index: str
    uuid: str
    created: bool
    fast: bool
    resumable: bool
    shape: dict[str, Any]
    base: _Number
    lost: list[tuple[_Number, _Number]] = []


class _Finished(_Planned, kw_only=True):
    identity: _Identity
    finished: _LoadResult = msgspec.field(name=SUMMARY)


def require_facts(facts: Mapping[str, Any]) -> None:
    """Refuse what no journal keeps of a load.

    Raises:
        msgspec.ValidationError: it is such.
        ValueError: likewise.
    """
    msgspec.convert(facts, _Finished if SUMMARY in facts else _Begun if IDENTITY in facts else _Planned)
    if any(first > last for first, last in facts.get("lost") or ()):
        raise ValueError("lines are out of order")


_ADD = "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
# The border of a range is a line without the line before it, or after it. So only borders come to Python.
_BORDERS = """
    SELECT line FROM lines AS here
    WHERE NOT EXISTS (SELECT 1 FROM lines WHERE line = here.line {step} 1) ORDER BY line"""
# SQLite takes ``state`` from the row of the highest line. Sorting goes to a temporary file beyond the cache's size.
# What has no version of its own, because an update came last, has 0 for its line. Of a document that lost a chunk to
# the dead letters nothing is left.
_LATEST = """
    SELECT id, max(line) * (state = 'index') AS latest, chunks FROM lines
    WHERE (state IN ('index', 'delete', 'update') OR (state = 'dead' AND chunks)) {only}
    GROUP BY id HAVING state NOT IN ('delete', 'dead') ORDER BY id"""
_DOCUMENTS = _LATEST.format(only="")
_ENDED = """
    SELECT id, max(line), state, CASE state WHEN 'superseded' THEN NULL WHEN 'dead' THEN 0 WHEN 'delete' THEN 0
    ELSE chunks END FROM lines WHERE state != 'dead' OR chunks GROUP BY id"""
_WRITTEN_BY = """
    WITH whole AS (
        SELECT id, max(line) AS first FROM lines
        WHERE state = 'index' AND id IN (SELECT value FROM json_each(?)) GROUP BY id)
    SELECT line FROM lines JOIN whole USING (id) WHERE line >= first AND state IN ('index', 'update') ORDER BY line"""
_SAMPLED = f"""
    SELECT sample.id, sample.line, latest.id, vector
    FROM sample
    JOIN ({_LATEST.format(only="AND id IN (SELECT lines.id FROM lines JOIN sample USING (line))")}) AS latest
    ON sample.line = latest.latest ORDER BY sample.line"""  # noqa: S608 (constants)
# A line that is superseded or dead leaves the document as it was, but for a dead one that wrote some of its chunks.
_ORDERED = """
    WITH ordered AS (
        SELECT state, lag(state IN ('index', 'update')) OVER (PARTITION BY id ORDER BY line) AS there FROM lines
        WHERE state IN ('index', 'delete', 'update') OR (state = 'dead' AND chunks))
    SELECT total(state = 'index' AND there), total(state = 'index' AND there IS NOT TRUE),
        total(state = 'delete' AND there), total(state = 'delete' AND there IS NOT TRUE) FROM ordered"""
_TRIM = "DELETE FROM sample WHERE line NOT IN (SELECT line FROM sample ORDER BY rank LIMIT ?)"


_APPLICATION = 0x6C736A6E  # "lsjn": tells our files from any other program's
_VERSION = 2
_CACHE_KIB = 16 * 1024
_TABLES = (
    # Keyed by the line, so that one that is sent again replaces itself; lines come nearly in order, which is
    # nearly as cheap as appending.
    "CREATE TABLE lines (line INTEGER PRIMARY KEY, id TEXT NOT NULL, state TEXT NOT NULL, chunks INTEGER NOT NULL)",
    "CREATE TABLE sample (line INTEGER PRIMARY KEY, id TEXT NOT NULL, vector BLOB NOT NULL, rank INTEGER NOT NULL)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE tallies (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
# What no load writes there.
_UNSOUND = """
    SELECT EXISTS (SELECT 1 FROM lines WHERE state NOT IN ('index', 'delete', 'update', 'superseded', 'dead')
            OR typeof(id) != 'text' OR typeof(chunks) != 'integer' OR chunks < 0 OR line < 1)
        OR EXISTS (SELECT 1 FROM sample WHERE typeof(id) != 'text' OR typeof(vector) != 'blob'
            OR typeof(rank) != 'integer')
        OR EXISTS (SELECT 1 FROM tallies WHERE typeof(name) != 'text' OR typeof(count) != 'integer')"""
_FETCHED = 10_000
_DAMAGED = ("file is not a database", "database disk image is malformed", "Could not decode")


class Journal(AbstractContextManager["Journal"]):
    """The journal of one load, an SQLite file that nobody else can open meanwhile; ``with`` closes it.

    Its methods may be called from several threads. Any of them raises LangshiftError where the file cannot be read
    or written; then nothing of what it was to write is there.

    Attributes:
        path: the file.
        shown: how messages name what is to be removed, to abandon the load.
        shared: whether another process may be at this load, too.
    """

    shared = False

    def __init__(self, path: Path) -> None:
        """Open a journal, or make it (mode 0600, its folder 0700) where there is none.

        Raises:
            LangshiftError: another process is at it; it is damaged, or no journal, or of another version; it cannot
                be written.
        """
        self.path, self.shown = path, str(path)
        self._lock = threading.RLock()
        try:
            # SQLite would make it by the umask; its -wal file takes this one's mode.
            ensure_private(path)
        except OSError as error:
            raise LangshiftError(f"{path} cannot be created ({error.strerror}): make its folder writable.") from error
        with _telling(path):
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _prepare(self._database, path)
                self._set_threshold()
            except BaseException:
                self._database.close()
                raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The database, for reading.

        Raises:
            LangshiftError: it cannot be read.
        """
        with self._lock, _telling(self.path):
            yield self._database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The database; all that the block writes will be there once it ends, or nothing of it.

        Raises:
            LangshiftError: it cannot be written.
        """
        with self.reading() as database:
            try:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            except BaseException:
                # SQLite has ended some transactions by itself when it tells of a full disk.
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file; again is no error."""
        with self._lock:
            self._database.close()

    def remove(self) -> None:
        """Close the file and remove it."""
        self.close()
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    @property
    def begun(self) -> bool:
        """Whether it holds a load that was begun and is not finished."""
        return bool(self.identity) and self.finished is None

    @property
    def finished(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What a finished load began with, and its summary; None where it holds none."""
        summary = self.fact(SUMMARY)
        return None if summary is None else (self.identity, summary)

    @property
    def identity(self) -> dict[str, Any]:
        """What the load began with; empty where none was begun."""
        return self.fact(IDENTITY) or {}

    def require_free(self) -> None:
        """Refuse to begin a load in place of the one that it holds; any may be."""

    def require_sound(self, *, lines: bool = False) -> None:
        """Refuse a journal that holds what no load writes, before anything follows from that.

        Args:
            lines: whether to look at what became of lines, too.

        Raises:
            LangshiftError: it does.
        """
        try:
            with self.reading() as database:
                facts = dict(database.execute("SELECT name, value FROM facts"))
                require_facts({name: msgspec.json.decode(value) for name, value in facts.items()})
                found = database.execute("PRAGMA quick_check(1)").fetchone()[0] if lines else "ok"
                if found != "ok" or (lines and database.execute(_UNSOUND).fetchone()[0]):
                    raise ValueError("its lines are not those of a load" if found == "ok" else found)
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            raise _damaged(self.path, error) from error

    def take_over(self) -> None:
        """Have every other process that is at this load stop; there can be none."""

    def begin(self, identity: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Begin a load; what the journal holds of an earlier one goes.

        Args:
            identity: what makes two loads the same, as JSON; see ``langshift.ingest.bulk.journal``.
            facts: what else is to be kept, as JSON.
        """
        self._begin_anew({**facts, IDENTITY: identity})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Say that the load is complete: ``identity`` and a summary stay, and all else goes.

        Args:
            summary: what ``finished`` is to give, as JSON.
        """
        self._begin_anew({IDENTITY: self.identity, SUMMARY: summary})
        # The room of what was deleted goes back to the disk, as far as that can be done.
        with self._lock, suppress(sqlite3.Error):
            self._database.execute("VACUUM")

    def require_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse to go on with this load under another identity.

        Raises:
            UsageError: naming each thing that changed.
        """
        begun = self.identity
        if changed := list(_changed(begun, orjson.loads(orjson.dumps(identity)))):
            raise UsageError(
                f"The load of {begun.get('corpus')} into {begun.get('index')} cannot be resumed, because "
                f"{join_words(changed)} changed: run it as it was begun, or remove {self.shown} to abandon it."
            )

    def _row(self, query: str, *values: str) -> Any:  # noqa: ANN401 (a row of anything)
        """The first row that a query finds; None where it finds none."""
        with self.reading() as database:
            return database.execute(query, values).fetchone()

    def fact(self, name: str) -> Any:  # noqa: ANN401 (JSON is anything)
        """What was kept under a name; None where nothing was."""
        row = self._row("SELECT value FROM facts WHERE name = ?", name)
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
        self, rows: Sequence[Acknowledged], sampled: Sequence[Sampled] = (), tallies: Mapping[str, int] | None = None
    ) -> None:
        """Keep that lines came to an end. Once this returns, the end of the process takes nothing back.

        A line that was acknowledged before is now what it is said to be here.

        Args:
            rows: the lines.
            sampled: those of them that the journal ``wants``, and that have a vector.
            tallies: what is to be added up along with them.
        """
        with self.writing() as database:
            database.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?, ?)", rows)
            if tallies:
                database.executemany(_ADD, tallies.items())
            if sampled:
                ranked = [(*each, sample_priority(each.line)) for each in sampled]
                database.executemany("INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?)", ranked)
                database.execute(_TRIM, (journal_store.SIZE,))
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
        return int(self._row("SELECT coalesce(max(line), 0) FROM lines")[0])

    def handled_lines(self) -> int:
        """How many lines of this load came to an end, earlier runs included."""
        return int(self._row("SELECT count(*) FROM lines")[0])

    def tallies(self) -> Counter[str]:
        """What was added up over all runs of this load."""
        with self.reading() as database:
            return Counter(dict(database.execute("SELECT name, count FROM tallies")))

    def results(self) -> dict[str, int]:
        """What lines have done to an index that only they write, by the server's words for it.

        The server's own words are those for the last delivery of a line: of one that was delivered twice, as where an
        answer was lost, the second one finds what the first has written. Reads the whole journal.
        """
        row = self._row(_ORDERED)
        return dict(zip(("updated", "created", "deleted", "not_found"), map(int, row), strict=True))

    def documents(self) -> tuple[int, int]:
        """How many documents are to be there, and in how many entries: ids whose latest line is no ``delete``.

        Lines that were superseded make no difference, nor do those that are dead and wrote nothing. Reads the whole
        journal.
        """
        documents, entries = self._row(f"SELECT count(*), total(max(chunks, 1)) FROM ({_DOCUMENTS})")  # noqa: S608
        return documents, int(entries)

    def entries(self) -> Iterator[Entry]:
        """The entries of those documents, in the order of their documents' ids."""
        for id, line, chunks in self._rows(_DOCUMENTS):
            for entry in [chunk_id(id, n) for n in range(chunks)] or [id]:
                yield Entry(entry, line, id)

    def ended(self) -> Iterator[Ended]:
        """What is left of each document in chunks by its latest line."""
        return (Ended(id, line, chunks) for id, line, _, chunks in self._rows(_ENDED))

    def _rows(self, query: str) -> Iterator[Any]:
        with self.reading() as database:
            # Sorted before the first row comes, so that lines may be forgotten meanwhile.
            rows = database.execute(query)
        while True:
            with self.reading():
                some = rows.fetchmany(_FETCHED)
            if not some:
                return
            yield from some

    def written_by(self, ids: Sequence[str]) -> list[int]:
        """The lines that documents are made of: the last whole one of each, and the updates since."""
        with self.reading() as database:
            return [line for (line,) in database.execute(_WRITTEN_BY, (orjson.dumps(ids).decode(),))]

    def wants(self, line: int) -> bool:
        """Whether a line belongs to the sample: a choice by its number alone, ever stricter as the sample fills."""
        return sample_priority(line) <= self._threshold

    def sample(self) -> list[tuple[Entry, bytes]]:
        """The sampled lines that are the latest of their document and ``index``, in order; about 200 at most.

        Returns:
            The entry that each has written, and its vector.
        """
        with self.reading() as database:
            return [(Entry(*entry), vector) for *entry, vector in database.execute(_SAMPLED)]

    def _begin_anew(self, facts: Mapping[str, Any]) -> None:
        with self.writing() as database:
            for table in ("lines", "sample", "tallies", "facts"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
            database.executemany("INSERT INTO facts VALUES (?, ?)", [(n, orjson.dumps(v)) for n, v in facts.items()])
        self._set_threshold()

    def _set_threshold(self) -> None:
        count, highest = self._row("SELECT count(*), max(rank) FROM sample")
        # The rank beyond which the sample takes no line.
        self._threshold = int(highest) if count >= journal_store.SIZE else journal_store.HIGHEST


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise  # A fault in the program.
    except sqlite3.DatabaseError as error:
        reason = str(error)
        if reason == "database is locked":
            message = f"Another load into {path.parent.name} is running: wait for it to finish, or stop it."
        elif reason.startswith(_DAMAGED):
            raise _damaged(path, error) from error
        else:
            message = (
                f"{path} cannot be read or written ({reason}): check its permissions and the free space on the disk, "
                "then continue with --resume."
            )
        raise LangshiftError(message) from error


def _damaged(path: Path, why: object) -> LangshiftError:
    reason = " ".join(str(why).split())
    return LangshiftError(f"{path} is damaged ({reason}): remove it, and start again without --resume.")


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    # Before anything else: an exclusive lock also spares the -shm file and is held until the end, so that
    # two loads never write the same index.
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    # What is committed outlives the process; a power cut may take the last lines back, which are then sent again.
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    database.execute("BEGIN IMMEDIATE")
    application, version = (_number(database, name) for name in ("application_id", "user_version"))
    if (application, version) == (0, 0) and not _number(database, "schema_version"):
        for statement in _TABLES:
            database.execute(statement)
    elif application != _APPLICATION:
        raise LangshiftError(f"{path} is not the journal of a load: remove it, and start again without --resume.")
    elif version != _VERSION:
        raise LangshiftError(
            f"{path} was written by another version of langshift (format {version}, not {_VERSION}): continue with "
            "that version, or remove the file and start again without --resume."
        )
    elif [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")] != [*_TABLES[:4]]:
        raise _damaged(path, "its tables are not those of a load")
    database.execute("COMMIT")


def _number(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


#: Before the name of a result where the journal counts them over all runs of a load.
RESULT = "result "


class Ledger:
    """What became of the lines of a load, and the dead letters made of some; may be called from several threads.

    A line counts as handled when the journal has it. A dead letter is on the disk before that, so that a process
    that dies in between writes it once more rather than never.

    Attributes:
        lost: lines that were settled before and that the server has lost: they are counted already.
    """

    def __init__(
        self,
        journal: Journal,
        letters: DeadLetters,
        place: Callable[[int], tuple[str, int]],
        base: int,
        on_progress: Callable[[int, int], None],
    ) -> None:
        """Open a ledger.

        Args:
            journal: a journal that holds a begun load.
            letters: the dead letters.
            place: tells how messages name the file that has a line, and the line's number there.
            base: the version that line 0 would have.
            on_progress: called after each change with the number of lines, and of dead ones among them, in one
                thread at a time.
        """
        self._journal, self._letters = journal, letters
        self._place, self._base = place, base
        self._on_progress = on_progress
        self._parts = LineParts()
        self.lost = LineRanges()
        self._lock = threading.Lock()

    def settle(self, outcomes: Sequence[ActionResult]) -> list[ActionResult]:
        """Write down what the server said, or what can be no document, all at once: each writing waits for the disk.

        Returns:
            What became of the lines that came to an end with them.

        Raises:
            LangshiftError: the dead letters or the journal cannot be written; then nothing counts as handled.
        """
        if not (outcomes := self._parts.lines(outcomes)):
            return []
        now = iso_time()
        letters = [self._letter(one, now) for one in outcomes if one.state == "dead"]
        rows = [Acknowledged(o.item.line, o.item.id, _state(o), o.chunks) for o in outcomes]
        done = [o.item for o in outcomes if o.state == "done"]
        sampled = [Sampled(one.line, one.target or one.id, one.vector) for one in done if one.vector is not None]
        results = Counter(o.result if o.state == "done" else o.state for o in outcomes if o.item.line not in self.lost)
        tallies = Counter(tally for item in done if item.line not in self.lost for tally in item.tallies)
        counted = {**tallies, **{f"{RESULT}{name}": n for name, n in results.items()}}
        with self._lock:
            if letters:
                self._letters.add(letters)
            self._journal.acknowledge(rows, sampled, counted)
            self._on_progress(results.total(), results["dead"])
        return outcomes

    def _letter(self, outcome: ActionResult, now: str) -> DeadLetter:
        item, _, _, kind, why, stage, *_ = outcome
        file, line = self._place(item.line)
        return DeadLetter(item.original, line, item.id or None, kind, why, stage, now, file, self._base + item.line)


def _state(outcome: ActionResult) -> State:
    if outcome.state != "done":
        return outcome.state
    return "update" if outcome.item.update else outcome.item.operation
