"""The journal's SQLite file: how it is opened, and what is told when it fails."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from langshift.errors import LangshiftError
from langshift.private_file import ensure_private

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
        self._database = _open(path)
        self._lock = threading.RLock()

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


def _open(path: Path) -> sqlite3.Connection:
    try:
        # SQLite would make it by the umask; its -wal file takes this one's mode.
        ensure_private(path)
    except OSError as error:
        raise LangshiftError(f"{path} cannot be made ({error.strerror}): make its folder writable.") from error
    with _telling(path):
        database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _prepare(database, path)
        except BaseException:
            database.close()
            raise
    return database


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
            told = f"Another load into {path.parent.name} is at work: wait for it, or stop it."
        elif reason in _DAMAGED:
            told = f"{path} is damaged ({reason}): remove it, and load anew without --resume."
        else:
            told = (
                f"{path} cannot be read or written ({reason}): see to it that it can be and that the disk has room, "
                "and go on with --resume."
            )
        raise LangshiftError(told) from error


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
