"""How many queries a replay has had answered, by the journal that it writes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class _Line(msgspec.Struct):
    query: str
    reached: bool = True


class Answered:
    """The queries that a journal has answers of; each call reads on from where the last one ended.

    A query that found no cluster is sent again by ``--resume``, so its first line does not count.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._read = path, (0, 0), 0
        self._queries: set[str] = set()

    def count(self) -> int:
        """How many there are now; 0 without a journal."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read:
                    self._file, self._read, self._queries = (status.st_dev, status.st_ino), 0, set()
                file.seek(self._read)
                new = file.read()
        except OSError:
            return 0
        # The last line may be half written.
        lines = new[: new.rfind(b"\n") + 1]
        self._read += len(lines)
        for line in lines.splitlines():
            try:
                row = msgspec.json.decode(line, type=_Line)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if row.reached:
                self._queries.add(row.query)
        return len(self._queries)
