"""The file of dead letters: one line of JSON for each document that could not be written."""

from __future__ import annotations

import errno
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from langshift.errors import LangshiftError, UsageError
from langshift.ingest.bulk.dead_letter import DeadLetter, from_line, to_line
from langshift.ingest.bulk.lines import Lines
from langshift.private_file import ensure_private, sync_folder
from langshift.whole import whole

__all__ = ["DeadLetter", "DeadLetters"]

_NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_BLOCK = 64 * 1024
_Row = tuple[bytes, DeadLetter]


class DeadLetters:
    """The dead letters of the loads into one index; there is no file until there is a letter.

    Attributes:
        path: the file, with mode 0600.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._folder_synced = False

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Append letters. Once this returns they are on the disk: not even a power cut takes them back.

        Raises:
            LangshiftError: they cannot be written; then none of them is there.
        """
        if not letters:
            return
        content = b"".join(map(to_line, letters))
        with self._lock, self._telling("go on with --resume"):
            ensure_private(self.path)
            with self.path.open("a+b", buffering=0) as file:
                _append(file, content)
            if not self._folder_synced:
                sync_folder(self.path.parent)
                self._folder_synced = True

    def __iter__(self) -> Iterator[DeadLetter]:
        """See ``read``."""
        return self.read()

    def read(self) -> Iterator[DeadLetter]:
        """The letters in the order in which they came, one at a time.

        A load that was killed between its letter and its journal writes the letter again: one that repeats the
        line and version of an earlier one is passed over.

        Raises:
            UsageError: a line is no dead letter.
        """
        return (letter for _, letter in self._rows())

    def total(self) -> int:
        """How many letters there are.

        Raises:
            UsageError: a line is no dead letter.
        """
        return sum(1 for _ in self._rows())

    def keep(self, wanted: Callable[[DeadLetter], bool]) -> None:
        """Keep the letters that are wanted and drop the others; see ``revise``."""
        self.revise(lambda letter: letter if wanted(letter) else None)

    def revise(self, revised: Callable[[DeadLetter], DeadLetter | None]) -> None:
        """Put another letter in the place of each, or none, all at once; a file without letters is removed.

        Raises:
            UsageError: a line is no dead letter; then all is as it was.
            LangshiftError: the file cannot be written; then all is as it was.
        """
        with self._lock, self._telling("replay them again"):
            if not self.path.exists():
                return
            with whole(self.path) as partial:
                ensure_private(partial)
                with partial.open("wb") as file:
                    for row, letter in self._rows():
                        if (now := revised(letter)) is not None:
                            file.write(row if now is letter else to_line(now))
                    file.flush()
                    os.fsync(file.fileno())
            if not self.path.stat().st_size:
                self.path.unlink()
            sync_folder(self.path.parent)

    def _rows(self) -> Iterator[_Row]:
        """Each letter with its line in the file, repeated ones aside."""
        # A version is the load's own number plus the line's: without the line it is the same for a whole load.
        seen: defaultdict[tuple[str, int | None], Lines] = defaultdict(Lines)
        for row, letter in self._all_rows():
            line = letter.line
            # What a load's versions begin with tells it from every other, whatever path its input had.
            lines = seen[(letter.corpus, None) if letter.version is None else ("", letter.version - line)]
            if line not in lines:
                lines.add(line, line)
                yield row, letter

    def _all_rows(self) -> Iterator[_Row]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            for number, row in enumerate(file, 1):
                try:
                    yield row.rstrip(b"\n") + b"\n", from_line(row)
                except ValueError as error:
                    if not row.endswith(b"\n"):
                        return  # Cut off by a kill, so its load was never told that it is there.
                    raise UsageError(
                        f"{self.path}, line {number}, is no dead letter ({error}): mend the line, or remove it."
                    ) from None

    @contextmanager
    def _telling(self, remedy: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            first = "make room on the disk" if error.errno in _NO_ROOM else "see to it that it can be"
            raise LangshiftError(f"{self.path} cannot be written ({error.strerror}): {first}, and {remedy}.") from error


def _append(file: FileIO, content: bytes) -> None:
    """Append whole lines, all of them or none."""
    begin = _end_of_whole_lines(file)
    try:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except BaseException:
        # A device cannot be cut, and needs not be.
        with suppress(OSError):
            file.truncate(begin)
        raise


def _end_of_whole_lines(file: FileIO) -> int:
    """Drop a last line that a kill has cut off, and give the file's size."""
    size = begin = file.seek(0, os.SEEK_END)
    tail = b""
    while begin and b"\n" not in tail:
        step = min(_BLOCK, begin)
        begin = file.seek(begin - step)
        tail = file.read(step) + tail
    last = tail[tail.rfind(b"\n") + 1 :]
    if not last:
        return size
    try:
        from_line(last)
    except ValueError:
        file.truncate(size - len(last))
        return size - len(last)
    # Only its line break is missing, as an editor may leave it.
    file.write(b"\n")
    return size + 1
