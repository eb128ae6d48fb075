"""A corpus in a file: opened once and read several times, the same bytes each time, or else it is told."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from stat import S_ISREG
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from langshift.errors import LangshiftError, UsageError
from langshift.files import DecompressedFile, LineNumbers, LineReader, decompressed, read_lines, readable

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BLOCK = 1 << 20  # bytes
_REQUEST = 8 << 20  # bytes that a store is asked for at a time, since each request takes some hundredths of a second
# Where lines are taken of which one tells what all are like: so many places, evenly over the file, of so many lines.
_PLACES, _LINES_AT_A_PLACE = 64, 16
_PLACE = 1 << 16  # bytes
# Of so many places of a file it is known at most which line begins there.
_STARTS = 4096


class ChangedError(LangshiftError):
    """A corpus was written to while it was read: what was read of it is neither what it was nor what it is now."""

    @classmethod
    def of(cls, shown: str) -> ChangedError:
        """The error, by the name of the corpus in messages."""
        return cls(f"{shown} changed while it was read.")


class UnreachableError(LangshiftError):
    """A store does not answer: what is there may be what it was, and be read later."""


#: What every change of a file changes: its size in bytes, and the time; of one in a store, its ETag, too.
FileState = tuple[int, int] | tuple[int, str, str]


class SeekableFile(io.RawIOBase):
    """A file that is read, from any place on."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True


class StoredFile(SeekableFile):
    """A file that another machine holds, which says at any time whether it is still the same.

    Attributes:
        opened_as: its state when it was opened.
    """

    opened_as: FileState

    @abstractmethod
    def state(self) -> FileState:
        """What every change of it changes, as it is now.

        Raises:
            ChangedError: it is not there any more.
            UnreachableError: it cannot be said.
        """


def state_of(stream: object) -> FileState | None:
    """What every change of a regular file changes, or of one in a store.

    Returns:
        None where it is none.
    """
    if isinstance(stream, StoredFile):
        return stream.state()
    try:
        found = os.fstat(stream.fileno())  # type: ignore[attr-defined] # what has none is no file
    except (AttributeError, OSError, ValueError):
        return None
    return (found.st_size, found.st_mtime_ns) if S_ISREG(found.st_mode) else None


class Start(NamedTuple):
    """A place in a file from which it can be read.

    Attributes:
        line: the number of the line, or row, that begins there.
        offset: how many bytes come before it.
    """

    line: int
    offset: int


class Measured(NamedTuple):
    """What a file holds.

    Attributes:
        lines: how many lines it has.
        size: how many bytes.
        content: their SHA-256, in hexadecimal.
    """

    lines: int
    size: int
    content: str


class CorpusFile:
    """A file that is open, whatever becomes of its name: one that is renamed over it is another file.

    Attributes:
        shown: how messages name it.
        state: what every change of it changes, as it was when it was opened; see ``state_of``.
        measured: what it held when it was opened; of compressed lines, what they unpack to; of Parquet in a store, the
            size alone, since it is not read as a whole.
        drawn: some lines from all over it, as they are in the file.
        starts: places evenly over a file of lines from which it can be read; of a compressed one its beginning alone.
    """

    def __init__(self, file: io.FileIO | StoredFile, shown: str, *, unpacks: bool) -> None:
        """Take an open file.

        Args:
            file: the file; who has opened it closes it.
            shown: how messages name it.
            unpacks: whether compressed data are unpacked.
        """
        self.shown = shown
        self._file, self._lock, self._unpacks = file, Lock(), unpacks
        self._stored = isinstance(file, StoredFile)
        self.state = file.opened_as if isinstance(file, StoredFile) else state_of(file)

    @property
    def content(self) -> str:
        """A hash of what was measured, or of its state in a store, in hexadecimal: what tells it from any other."""
        return sha256(repr(self.state).encode()).hexdigest() if self._stored else self.measured.content

    def measure(self, look: Callable[[bytes], None] = lambda _: None) -> Measured:
        """Read it all, so that ``lines`` and ``require_unchanged`` know what it holds; draw lines from all over it.

        Args:
            look: is shown all that is read, block by block.

        Raises:
            UsageError: it cannot be read.
            UnreachableError: its store does not answer.
        """
        drawn, starts = _Drawn(), _Starts()
        if self._stored and not self._unpacks:
            self.measured = Measured(0, self.reader().seek(0, os.SEEK_END), "")
        else:
            self.measured = self._measure(starts, drawn.look, look)
        self.drawn, self.starts = drawn.lines, starts.found
        return self.measured

    def _measure(self, starts: _Starts, *looks: Callable[[bytes], None]) -> Measured:
        digest, last = sha256(), b"\n"
        with readable(self.shown) as progress, self._content() as unpacked:
            # Where a line begins in what a compressed file unpacks to is no place from which that can be read.
            starts.wanted = isinstance(unpacked, io.BufferedReader)
            while block := unpacked.read(_BLOCK):
                for look in looks:
                    look(block)
                digest.update(block)
                starts.look(block)
                progress.line = starts.lines
                last = block[-1:]
        return Measured(progress.line + (last != b"\n"), starts.size, digest.hexdigest())

    def reader(self) -> io.RawIOBase:
        """Its bytes from the beginning, as they are now: none of them is kept."""
        return _Reader(self._file, self._lock)

    @contextmanager
    def _content(self, offset: int = 0) -> Iterator[DecompressedFile]:
        with io.BufferedReader(self.reader(), _REQUEST if self._stored else _BLOCK) as raw:
            raw.seek(offset)
            if not self._unpacks or offset:
                yield raw
                return
            with decompressed(raw) as unpacked:
                yield unpacked

    def first_lines(self) -> Generator[tuple[int, bytes]]:
        """The lines as ``read_lines`` gives them, those that are too long cut; nobody checks what they are."""
        with self._content() as unpacked:
            yield from read_lines(unpacked, self.shown, cut=True)

    def lines_from(self, start: Start, skip: LineNumbers) -> Generator[tuple[int, bytes]]:
        """The lines from one of the file's ``starts``; nobody checks what they are."""
        with self._content(start.offset) as unpacked:
            yield from read_lines(unpacked, self.shown, skip, cut=True, start=start.line)

    def lines(self, skip: LineNumbers) -> Generator[tuple[int, bytes]]:
        """The lines as ``read_lines`` gives them, those that are too long cut.

        Raises:
            ChangedError: they are not those that were measured, which is certain only at the end.
            UsageError: it can be read no further.
        """
        with self.watched(), self._content() as unpacked:
            checked = _CheckedReader(unpacked, self)
            yield from read_lines(checked, self.shown, skip, cut=True)
            checked.end()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Whatever goes wrong within it comes from a change, if there was one.

        Raises:
            ChangedError: there was one.
        """
        try:
            yield
        except UnreachableError:
            raise
        except Exception:
            self.require_unchanged()
            raise

    def require_unchanged(self, *, surely: bool = False) -> None:
        """Refuse a file that was written to since it was measured.

        Args:
            surely: whether to read it all, also where its size and its time are as before.

        Raises:
            ChangedError: it was.
        """
        now = state_of(self._file)
        # What a store says of a file is enough.
        if now == self.state and (self._stored or not surely):
            return
        try:
            same = not self._stored and self._measure(_Starts()) == self.measured
        except UsageError:
            same = False
        if not same:
            raise ChangedError.of(self.shown)
        self.state = now


class _Starts:
    """Counts the lines of a file, and takes note of where some begin, evenly over it, however long it turns out to be.

    Attributes:
        wanted: whether any but the first is of use.
        found: those places, in their order.
        lines: how many line breaks there are so far.
        size: how many bytes.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.found = [Start(1, 0)]
        self.lines = self.size = 0
        self._apart = self._next = _PLACE

    def look(self, block: bytes) -> None:
        """Take the next bytes of the file."""
        counted = 0
        while self.wanted and self._next < self.size + len(block):
            begin = block.find(b"\n", max(self._next - self.size, counted)) + 1
            if not begin or begin == len(block):
                break
            self.lines += block.count(b"\n", counted, begin)
            self.found.append(Start(self.lines + 1, self.size + begin))
            if len(self.found) > _STARTS:
                self.found, self._apart = self.found[::2], 2 * self._apart
            counted, self._next = begin, self.found[-1].offset + self._apart
        self.lines += block.count(b"\n", counted)
        self.size += len(block)


class _Drawn:
    """Some lines from places that are evenly spread over a file, however long it turns out to be."""

    def __init__(self) -> None:
        self._number, self._step = 0, 1
        self._places: list[list[bytes]] = []

    @property
    def lines(self) -> list[bytes]:
        """The lines, in their order."""
        return [line for place in self._places for line in place]

    def look(self, block: bytes) -> None:
        """Take the whole lines at the places that lie in the next bytes of the file."""
        for begin in range(0, len(block), _PLACE):
            if self._number % self._step == 0:
                self._places.append(list(self._lines_from(block, begin)))
            self._number += 1
            if len(self._places) > _PLACES:
                self._places, self._step = self._places[::2], 2 * self._step

    @staticmethod
    def _lines_from(block: bytes, begin: int) -> Iterator[bytes]:
        start = block.find(b"\n", begin) + 1
        for _ in range(_LINES_AT_A_PLACE):
            end = block.find(b"\n", start)
            if not start or end < 0:
                return
            yield block[start:end]
            start = end + 1
            if start > begin + _PLACE:
                return


class _Reader(SeekableFile):
    """Reads a file from the beginning, whoever else reads it, too; closing it leaves the file open."""

    def __init__(self, file: io.FileIO | StoredFile, lock: Lock) -> None:
        self._file, self._lock, self._place = file, lock, 0

    def readinto(self, buffer: Buffer, /) -> int:
        """As ``RawIOBase`` has it."""
        with self._lock:
            self._file.seek(self._place)
            count = self._file.readinto(buffer) or 0
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """As ``RawIOBase`` has it."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence)
        if begin is None:
            with self._lock:
                begin = self._file.seek(0, os.SEEK_END)
        self._place = offset + begin
        return self._place


class _CheckedReader:
    """Gives lines, and compares all of them with what the file held when it was measured."""

    def __init__(self, unpacked: LineReader, file: CorpusFile) -> None:
        self._readline, self._file = unpacked.readline, file
        self._digest, self._left = sha256(), file.measured.size

    def readline(self, most: int, /) -> bytes:
        """The next line, or as much of it.

        Raises:
            ChangedError: it has become longer.
        """
        line = self._readline(most)
        self._digest.update(line)
        self._left -= len(line)
        if self._left < 0:
            # None of what was added may be written anywhere.
            raise ChangedError.of(self._file.shown)
        return line

    def end(self) -> None:
        """Compare, once the last line was read.

        Raises:
            ChangedError: there were others.
        """
        if self._digest.hexdigest() != self._file.measured.content:
            raise ChangedError.of(self._file.shown)
