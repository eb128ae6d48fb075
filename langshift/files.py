"""Files: compressed or not, read by line or as Parquet, written whole or not at all, private where they must be."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

import orjson

from langshift.errors import UsageError, require_extra

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile
    from typing_extensions import Buffer

T = TypeVar("T")


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Rows in groups of ``size``, as Python has it from 3.12 on."""
    rest = iter(rows)
    while group := list(islice(rest, size)):
        yield group


def batched_by_size(rows: Iterable[T], largest: int, size_of: Callable[[T], int], most: int = 0) -> Iterator[list[T]]:
    """Rows in groups that are not too large, in order; a row that is too large itself is a group of its own.

    Args:
        rows: the rows.
        largest: what the sizes of a group may add up to.
        size_of: the size of a row.
        most: how many rows a group has at most; 0 for any number.
    """
    group, total = list[T](), 0
    for row in rows:
        size = size_of(row)
        if group and total + size > largest:
            yield group
            group, total = [], 0
        group.append(row)
        total += size
        # Whoever gives the rows may wait long before the next one.
        if len(group) == most or total >= largest:
            yield group
            group, total = [], 0
    if group:
        yield group


def numbered_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line of a downloaded file that is not blank, unpacked on the way.

    Raises:
        UsageError: the compressed data are damaged.
    """
    return lines_of(path, damaged="{0} is truncated or damaged after line {1}: download the file again.")


def not_utf8(line: bytes) -> str | None:
    """Say that a line is not UTF-8, and how to convert its file; None where it is."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        # Programs that write UTF-16 begin a file with a mark.
        written = "UTF-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "WINDOWS-1252"
        return f"not UTF-8: save the file as UTF-8, for example with iconv -f {written} -t UTF-8 FILE > NEW"
    return None


def decode_line(line: bytes, where: str) -> str:
    """Return a line as text.

    Raises:
        UsageError: beginning with ``where``, that it is not UTF-8.
    """
    if fault := not_utf8(line):
        raise UsageError(f"{where}, is {fault}.")
    return line.decode("utf-8")


def load_json(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value, which can be written again, shown and compared, as not all can that orjson reads.

    Raises:
        orjson.JSONDecodeError: it is none, or nested too deeply.
    """
    found = orjson.loads(content)
    # Fewer cannot be nested deeper than orjson writes.
    if content.count(b"[") + content.count(b"{") > 250:
        try:
            orjson.dumps(found)
        except orjson.JSONEncodeError:
            raise orjson.JSONDecodeError("nested too deeply", "", 0) from None
    return found


def parse_record(line: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        UsageError: beginning with ``where``, what is wrong.
    """
    try:
        record = load_json(line.strip())
    except orjson.JSONDecodeError as error:
        decode_line(line, where)
        raise UsageError(
            f"{where}, is not valid JSON ({error.msg} at character {error.pos + 1}): correct or remove the line."
        ) from error
    if not isinstance(record, dict):
        raise UsageError(f"{where}, is not a JSON object: correct or remove the line.")
    return record


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of each line of JSON Lines; blank lines are passed over.

    Raises:
        UsageError: a line that is no JSON object.
    """
    for number, line in numbered_raw_lines(path):
        yield number, parse_record(line, f"{path}, line {number}")


def read_columns(path: Path, header: tuple[str, ...] = ()) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the tab-parted columns of each line that is not blank.

    Args:
        path: the file.
        header: what the first line may be, or begin with as many of, and is then passed over.

    Raises:
        UsageError: the file is not UTF-8.
    """
    for number, line in numbered_raw_lines(path):
        columns = decode_line(line, f"{path}, line {number}").split("\t")
        if number > 1 or columns != [*header[: len(columns)]]:
            yield number, columns


def string(record: Mapping[str, Any], field: str, where: str, remedy: str) -> str:
    """A field's text.

    Args:
        record: the line's object.
        field: its field.
        where: file and line, which begin the message.
        remedy: what the message ends with.

    Raises:
        UsageError: the field is missing, empty or no string.
    """
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where}, has no {field}: {remedy}.")
    return value


def identifier(value: object, where: str, name: str = "_id", remedy: str = "add one") -> str:
    """An id that can stand in a TREC run.

    Args:
        value: what stands in its place.
        where: the place, which begins a message.
        name: how messages name the id.
        remedy: what to do where there is none.

    Raises:
        UsageError: none, or one with white space.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise UsageError(f"{where}, has no {name}: {remedy}.")
    text = str(value)
    if len(text.split()) != 1 or text.strip() != text:
        raise UsageError(
            f"{where}, has the {name} {text!r}, but an id in a TREC run must not contain white space: "
            "remove the white space."
        )
    return text


def write_table(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Write tab-parted columns under a header; the folder is made where needed."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in (header, *rows))


def ensure_private(path: Path) -> bool:
    """Make an empty file (mode 0600), and the folders on the way (0700), where they are missing.

    What is there already is left as it is: it may be a device, or somebody's decision.

    Returns:
        Whether the file was made.

    Raises:
        OSError: it cannot be made.
    """
    ensure_folder(path.parent)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        # The umask may have taken the owner's rights too.
        path.chmod(0o600)
    finally:
        os.close(opened)
    return True


def private_file(path: Path) -> BinaryIO:
    """Open a new, empty file for writing, for the owner alone (mode 0600), in place of what is there, be it a link.

    Raises:
        OSError: it cannot be made.
    """
    path.unlink(missing_ok=True)
    if not ensure_private(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    return path.open("r+b")


def sync_folder(folder: Path) -> None:
    """Let a file's new name outlive a power cut.

    Raises:
        OSError: the disk fails.
    """
    if os.name == "nt":
        return  # A folder cannot be opened there, and its entries need no such step.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


#: Modes of folders: for the owner alone, and for what another user, whom root starts a server as, has to reach.
PRIVATE, PASSABLE = 0o700, 0o755


def ensure_folder(folder: Path, mode: int = PRIVATE) -> None:
    """Make a folder, and those on the way, where they are missing; of the given mode, whatever the umask.

    Raises:
        OSError: one cannot be made, or is a file.
    """
    if folder.is_dir():
        return
    ensure_folder(folder.parent, mode)
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    folder.chmod(mode)


if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd


_MAGIC = 4  # bytes that tell how a file is compressed
_BLOCK = 1 << 20  # bytes read at a time

#: What reading raises where the compressed data break off or are damaged.
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)


#: The bytes of a file, as they were before compression.
DecompressedFile = BinaryIO | gzip.GzipFile | zstd.ZstdFile


def decompressed(raw: BinaryIO) -> DecompressedFile:
    """The bytes of a file that is at its beginning, unpacked on the way; it is closed at the end where it is plain."""
    magic = raw.read(_MAGIC)
    raw.seek(0)
    return _decompressed(raw, magic)


@contextmanager
def open_decompressed(path: Path) -> Iterator[DecompressedFile]:
    """Open a file for reading its bytes, unpacked on the way."""
    with path.open("rb") as raw, decompressed(raw) as unpacked:
        yield unpacked


@contextmanager
def decompressed_stream(stream: io.RawIOBase) -> Iterator[DecompressedFile]:
    """Read the bytes of a stream that cannot go back, unpacked on the way; it stays open.

    Args:
        stream: without a buffer: another thread may wait in it for bytes that never come, and would lock its buffer.
    """
    magic = b""
    while len(magic) < _MAGIC and (more := stream.read(_MAGIC - len(magic))):
        magic += more
    unpacked = _decompressed(io.BufferedReader(_Rejoined(magic, stream), _BLOCK), magic)
    yield unpacked
    # Not after an error: closing would wait for a thread that still reads.
    unpacked.close()


def _decompressed(raw: BinaryIO, magic: bytes) -> DecompressedFile:
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(raw, "rb")
    if magic == b"\x28\xb5\x2f\xfd":
        return zstd.open(raw, "rb")
    return raw


class _Rejoined(io.RawIOBase):
    """A stream with the bytes before it that were read already."""

    def __init__(self, head: bytes, stream: io.RawIOBase) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Buffer, /) -> int | None:
        """As ``RawIOBase`` has it: what is there at once."""
        if not self._head:
            return self._stream.readinto(buffer)
        view = memoryview(buffer)
        taken, self._head = self._head[: len(view)], self._head[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: How a damaged input is told of: its name, the number of the last line that could be read, the reason.
_DAMAGED = "{0}: the compressed data is truncated or damaged after line {1} ({2})."


#: Bytes. No document comes near it; OpenSearch takes no request of more than 100 MiB by default, the document's
#: vectors included, and a line that consists of brackets takes thirty times as much memory once it is parsed.
LONGEST_LINE = 64 << 20
_KEPT = 10_000  # bytes of a line that is longer
_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]*\Z")


class CutLine(bytes):
    """The beginning of a line that is longer than ``LONGEST_LINE``."""


def too_long() -> str:
    """What is wrong with such a line, as the rest of a sentence."""
    return f"is longer than {LONGEST_LINE >> 20} MiB, the most that a line may have"


class LineReader(Protocol):
    """Bytes that are read by lines or blocks."""

    def readline(self, most: int, /) -> bytes:
        """A line with its line break, or as many bytes of it; empty at the end."""


def _bounded(unpacked: LineReader) -> Iterator[bytes]:
    """All lines with their line breaks; no more is held of one without end than of one that may be used."""
    readline, most = unpacked.readline, LONGEST_LINE + 1
    while line := readline(most):
        if len(line) < most or line.endswith(b"\n"):
            yield line
            continue
        # Its last character may have been cut in two.
        begin = _CHARACTER.sub(b"", line[:_KEPT])
        del line
        while (rest := readline(_BLOCK)) and not rest.endswith(b"\n"):
            pass
        yield CutLine(begin + f"... (cut: the line {too_long()})".encode())


class LineNumbers(Protocol):
    """Numbers of lines."""

    def __contains__(self, line: int, /) -> bool: ...


class ReadProgress:
    """How far an input was read.

    Attributes:
        line: number of the last whole line; 0 before the first.
    """

    line = 0


@contextmanager
def readable(shown: str, damaged: str = _DAMAGED) -> Iterator[ReadProgress]:
    """Say after which line an input can be read no further.

    Raises:
        UsageError: it is damaged, or its disk or network fails.
    """
    progress = ReadProgress()
    try:
        yield progress
    except DAMAGED as error:
        raise UsageError(damaged.format(shown, progress.line, error)) from error
    except OSError as error:
        raise UsageError(f"{shown} cannot be read after line {progress.line} ({error.strerror or error}).") from error


def read_lines(
    unpacked: LineReader,
    shown: str,
    skip: LineNumbers = (),
    *,
    blank: bool = False,
    cut: bool = False,
    damaged: str = _DAMAGED,
    start: int = 1,
) -> Generator[tuple[int, bytes]]:
    """Lines without their line breaks, and without the byte order mark that some programs begin a file with.

    Args:
        unpacked: an input.
        shown: how messages name it.
        skip: numbers of lines to pass over.
        blank: whether blank lines are among them; else they are passed over.
        cut: whether a line that is longer than ``LONGEST_LINE`` comes as a ``CutLine``; else it is refused.
        damaged: what is said of damaged data.
        start: the number of the first line.

    Yields:
        Each line with its number.

    Raises:
        UsageError: it can be read no further.
    """
    with readable(shown, damaged) as progress:
        for number, line in enumerate(_bounded(unpacked), start=start):
            progress.line = number
            if number in skip:
                continue
            if isinstance(line, CutLine):
                if not cut:
                    raise UsageError(f"{shown}, line {number}, {too_long()}: shorten or remove it.")
                yield number, line
                continue
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if blank or (line and not line.isspace()):
                yield number, line.rstrip(b"\r\n")


def lines_of(
    path: Path, shown: str | None = None, skip: LineNumbers = (), *, blank: bool = False, damaged: str = _DAMAGED
) -> Generator[tuple[int, bytes]]:
    """Yield the lines of a file as ``read_lines`` does, unpacked on the way; its path names it where ``shown`` is None.

    Raises:
        UsageError: it can be read no further.
    """
    with open_decompressed(path) as unpacked:
        yield from read_lines(unpacked, shown or str(path), skip, blank=blank, damaged=damaged)


def text_lines(path: Path) -> Generator[str]:
    """Yield the lines of a file as text, the blank ones too, without their line breaks (of any system).

    Raises:
        UsageError: a line is not UTF-8, or the compressed data are damaged.
    """
    for number, line in lines_of(path, blank=True):
        yield decode_line(line, f"{path}, line {number}")


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal; they are read a block at a time."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


#: The first bytes of every Parquet file.
PARQUET = b"PAR1"


@contextmanager
def open_parquet(path: Path | str, file: io.RawIOBase | None = None) -> Iterator[ParquetFile]:
    """Open a file; what is found damaged while it is read is told as well.

    Args:
        path: its path.
        file: the same where it is open already; it stays open.

    Raises:
        UsageError: the file may not be read, is no Parquet file, or damaged.
        LangshiftError: the extra is not installed.
    """
    require_extra(f"{path} is a Parquet file, which needs", "parquet", "pyarrow")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    if file is None and not os.access(path, os.R_OK):
        raise UsageError(f"{path} is not readable: change its permissions, or use a copy that you can read.")
    try:
        # By default a row group is read whole, and with pre_buffer all of them are kept until the file is closed.
        with ParquetFile(file or path, buffer_size=_BLOCK, pre_buffer=False) as opened:
            yield opened
    except (ArrowException, OSError) as error:
        if "too deeply nested" in str(error):
            raise UsageError(f"{path} has a column that is nested too deeply: flatten it, or leave it out.") from error
        raise UsageError(f"{path} is damaged or not a Parquet file: download it again.") from error


# Every escape is looked at in its turn: whole pairs and an escaped backslash are none.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


# Lone surrogates: OpenSearch takes them and gives them back, but strict readers of JSON refuse the whole text.
def is_text(given: str) -> bool:
    """Whether it can be sent; Python hides bytes that are not UTF-8 in halves of surrogate pairs."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_halves(text: str, instead: Callable[[str], str]) -> str:
    """Replace half surrogate pairs.

    Args:
        text: JSON.
        instead: gives what stands in JSON's string instead of a half, by its four hexadecimal digits.
    """
    return _ESCAPE.sub(lambda found: instead(found["half"]) if found["half"] else found[0], text)


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a new, empty file to write to, which takes the place of ``path`` when the block ends well.

    The folder is made where it is missing. In a folder that others write to, too, nobody can say beforehand where
    the content goes: the new file has a name that cannot be guessed, and a link called ``path`` is replaced.

    Args:
        path: the file. Its mode is that of the file that it replaces.
        private: whether a file that replaces none is the owner's alone (0600), and so is a folder that is made
            (0700); else the umask decides.
    """
    if private:
        ensure_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.lstat().st_mode & 0o777 if path.is_file() and not path.is_symlink() else 0o600 if private else None
    partial = path.with_name(f".partial-{secrets.token_hex(8)}")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
        if mode is not None:
            partial.chmod(mode)
        yield partial
        partial.replace(path)
    except OSError as error:
        # A full disk names no file by itself, and nobody knows the new one's name.
        if error.filename in (None, str(partial)):
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file, whole or not at all; see ``atomic_write``."""
    with atomic_write(path, private=private) as partial:
        partial.write_bytes(content)


def write_json(path: Path, document: Mapping[str, Any], *, private: bool = False) -> None:
    """Write one JSON document, whole or not at all; see ``atomic_write``."""
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_bytes(path, content, private=private)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file at another place, without its bytes where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)


def json_lines(rows: Iterable[Any]) -> bytes:
    """JSON Lines: a line for each row."""
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
