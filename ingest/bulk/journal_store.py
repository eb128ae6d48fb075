"""How the journal is kept: the folder of a load, its SQLite file, ranges of lines, a sample of documents."""

from __future__ import annotations

import sqlite3
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.files import ensure_private

State = Literal["index", "delete", "superseded", "dead"]


class Acknowledged(NamedTuple):
    """A line that came to an end.

    Attributes:
        line: its number, from 1.
        id: the document's ``_id``; empty where it has none, because the line could not be read.
        state: ``index`` or ``delete``: the server has confirmed it; ``superseded``: the server holds a later version
            of the document; ``dead``: it is in the dead letters.
    """

    line: int
    id: str
    state: State


class Sampled(NamedTuple):
    """A line whose vector the final check compares.

    Attributes:
        line: its number, from 1.
        id: the document's ``_id``.
        vector: the vector as it was sent, float32.
    """

    line: int
    id: str
    vector: bytes


_APPLICATION = 0x6C736A6E  # "lsjn": tells our files from any other program's
_VERSION = 1
_CACHE_KIB = 16 * 1024
_TABLES = (
    # Keyed by the line, so that one that is sent again replaces itself; lines come nearly in order, which is
    # nearly as cheap as appending.
    "CREATE TABLE lines (line INTEGER PRIMARY KEY, id TEXT NOT NULL, state TEXT NOT NULL)",
    "CREATE TABLE sample (line INTEGER PRIMARY KEY, id TEXT NOT NULL, vector BLOB NOT NULL, rank INTEGER NOT NULL)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE tallies (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
_DAMAGED = ("file is not a database", "database disk image is malformed")


class JournalFile:
    """A journal's file, open for this process alone; threads take turns.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            LangshiftError: another process is at it; it is damaged, or no journal, or of another version; it cannot
                be written.
        """
        self.path = path
        self._lock = threading.RLock()
        try:
            # SQLite would make it by the umask; its -wal file takes this one's mode.
            ensure_private(path)
        except OSError as error:
            raise LangshiftError(f"{path} cannot be made ({error.strerror}): make its folder writable.") from error
        with _telling(path):
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _prepare(self._database, path)
            except BaseException:
                self._database.close()
                raise

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

    def shrink(self) -> None:
        """Give the room of what was deleted back to the disk, as far as that can be done."""
        with self._lock, suppress(sqlite3.Error):
            self._database.execute("VACUUM")

    def close(self) -> None:
        """Close the file; again is no error."""
        with self._lock:
            self._database.close()

    def remove(self) -> None:
        """Close the file and remove it."""
        self.close()
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)


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
            message = f"Another load into {path.parent.name} is at work: wait for it, or stop it."
        elif reason in _DAMAGED:
            message = f"{path} is damaged ({reason}): remove it, and load anew without --resume."
        else:
            message = (
                f"{path} cannot be read or written ({reason}): see to it that it can be and that the disk has room, "
                "and go on with --resume."
            )
        raise LangshiftError(message) from error


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
        raise LangshiftError(f"{path} is no journal of a load: remove it, and load anew without --resume.")
    elif version != _VERSION:
        raise LangshiftError(
            f"{path} was written by another version of langshift (format {version}, not {_VERSION}): go on with that "
            "version, or remove the file and load anew without --resume."
        )
    database.execute("COMMIT")


def _number(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


class LineRanges:
    """A set of line numbers, held as sorted, disjoint ranges: 16 bytes for each, however long it is."""

    def __init__(self) -> None:
        self._firsts = array("q")
        self._lasts = array("q")
        self._count = 0

    def __contains__(self, line: int) -> bool:
        place = bisect_right(self._firsts, line) - 1
        return place >= 0 and line <= self._lasts[place]

    def __len__(self) -> int:
        return self._count

    def add(self, first: int, last: int) -> None:
        """Add the lines from ``first`` to ``last``, both included; some may be there already.

        Raises:
            ValueError: ``last`` is before ``first``.
        """
        if last < first:
            raise ValueError(f"{first} to {last} is no range.")
        # The ranges that overlap the new one or touch it, which all become one.
        begin, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        for place in range(begin, end):
            self._count -= self._lasts[place] - self._firsts[place] + 1
        self._count += last - first + 1
        self._firsts[begin:end] = array("q", [first])
        self._lasts[begin:end] = array("q", [last])

    def ranges(self) -> list[tuple[int, int]]:
        """First and last line of each range, in order; no two of them touch."""
        return list(zip(self._firsts, self._lasts, strict=True))


_LOADS = "loads"


@dataclass(frozen=True)
class LoadWorkspace:
    """The folder of the loads into one index of one cluster.

    Attributes:
        folder: the folder, with mode 0700.
        name: the index.
    """

    folder: Path
    name: str

    @classmethod
    def of(cls, home: Path, client: OpenSearch, name: str) -> LoadWorkspace:
        """The place of an index; the cluster is told by its uuid, since its address may change."""
        cluster = str(client.info().get("cluster_uuid", "unknown"))
        # A cluster without a manager calls itself `_na_`; so does nobody else.
        return cls(home / _LOADS / "".join(c for c in cluster if c.isalnum() or c in "_-") / name, name)

    def make(self) -> None:
        """Make the folder, for the present user alone."""
        self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)

    @property
    def journal(self) -> Path:
        """The journal of the load that was begun last."""
        return self.folder / "journal.sqlite"

    @property
    def dead_letters(self) -> Path:
        """The dead letters of all loads."""
        return self.folder / "dead-letters.jsonl"

    @property
    def log(self) -> Path:
        """The log."""
        return self.folder / "load.log"

    @property
    def pipeline_options(self) -> Path:
        """How the documents of the last load were made."""
        return self.folder / "making.json"


def load_workspaces(home: Path, name: str | None = None) -> list[LoadWorkspace]:
    """The places of all clusters' indices, or of those of one name."""
    return [
        LoadWorkspace(folder, folder.name)
        for folder in sorted((home / _LOADS).glob(f"*/{name or '*'}"))
        if folder.is_dir() and name in (None, folder.name)
    ]


#: How many lines the sample keeps.
SIZE = 200
#: The highest rank; SQLite's integers go no further.
HIGHEST = (1 << 63) - 1

_MASK = (1 << 64) - 1


# A line's rank is a hash of its number. So every line has the same chance wherever it stands and however many
# there are, and a load that goes on chooses as one that was never stopped.
def sample_priority(line: int) -> int:
    """A pseudo-random number from 0 to ``HIGHEST`` that depends on the line alone (SplitMix64)."""
    mixed = (line * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) >> 1


def priority_cutoff(total: int | None) -> int:
    """A rank above which no line of so many can be expected to stay in the sample; the highest where nobody knows.

    Without it the first lines would all be kept, until enough are there to tell which ranks are low.
    """
    return HIGHEST if total is None else min(HIGHEST, HIGHEST * 2 * SIZE // max(total, 1))
