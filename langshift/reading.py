"""Lines and tables of a data set, read and written; what cannot be read is named by file and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from langshift.errors import UsageError

_GZIP = b"\x1f\x8b"


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line that is not blank; gzip is unpacked on the way.

    Raises:
        UsageError: the compressed data are damaged.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                line = line.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n") if number == 1 else line.strip(b"\r\n")
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} breaks off or is damaged after line {number}: fetch the file again.") from error


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        if packed:
            with gzip.open(raw, "rb") as unpacked:
                yield unpacked  # type: ignore[misc]  # gzip's own file class, which has all that is needed
        else:
            yield raw


def parse_record(line: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        UsageError: beginning with ``where``, what is wrong.
    """
    try:
        record = orjson.loads(line.strip())
    except orjson.JSONDecodeError as error:
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
    for number, line in raw_lines(path):
        yield number, parse_record(line, f"{path}, line {number}")


def read_columns(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the tab-parted columns of each line that is not blank.

    Raises:
        UsageError: the file is not UTF-8.
    """
    for number, line in raw_lines(path):
        try:
            yield number, line.decode("utf-8").split("\t")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}, line {number}, is not UTF-8: save the file as UTF-8.") from error


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


def identifier(value: object, where: str, name: str = "_id", remedy: str = "give it one") -> str:
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
            f"{where}, has the {name} {text!r}, but an id with white space cannot stand in a TREC run: "
            "take the white space out."
        )
    return text


def write_table(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Write tab-parted columns under a header; the folder is made where needed."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in (header, *rows))
