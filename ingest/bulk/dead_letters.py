"""The file of dead letters: one line of JSON for each document that could not be written."""

import base64
import errno
import json
import os
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from langshift.errors import LangshiftError, UsageError
from langshift.files import atomic_write, ensure_private, sync_folder
from langshift.ingest.bulk.journal_store import LineRanges
from langshift.ingest.bulk.writer import Stage
from langshift.ingest.documents import Original


class DeadLetter(NamedTuple):
    """A line that could not become a document.

    Attributes:
        document: the line as the input had it, or the fields of a row.
        line: its number, from 1.
        id: the document's ``_id``; None where it has none.
        type: the error's type, such as ``mapper_parsing_exception``.
        reason: the error in words.
        stage: where it failed: ``read``, ``encode`` or ``write``.
        time: when, ISO 8601 in UTC.
        corpus: the input, as messages name it.
        version: the document's own version at the server, with which it was, or would have been, written, not the
            index's.
    """

    document: Original
    line: int
    id: str | None
    type: str
    reason: str
    stage: Stage
    time: str
    corpus: str
    version: int


def to_line(letter: DeadLetter) -> bytes:
    """A letter as one line of JSON, line break included.

    Text that is not UTF-8 is kept as base64. Of a row, bytes are kept as base64 and what else JSON cannot hold as text.
    """
    fields = letter._asdict()
    content = fields.pop("document")
    document: dict[str, Any] = {"document": content}
    if isinstance(content, bytes):
        try:
            document = {"document": content.decode()}
        except UnicodeDecodeError:
            document = {"document_base64": base64.b64encode(content).decode()}
    row = {**document, **{("_id" if name == "id" else name): value for name, value in fields.items()}}
    try:
        return orjson.dumps(row, default=_plain, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        # Half a surrogate pair, as a server's reason may hold, or a number beyond 64 bits.
        return json.dumps(row, default=_plain).encode() + b"\n"


def from_line(line: bytes) -> DeadLetter:
    """Read what ``to_line`` made; a field that the line lacks is None, so that older files stay readable.

    Raises:
        ValueError: it is no dead letter.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError("not valid JSON") from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    fields = (row.get("_id" if name == "id" else name) for name in DeadLetter._fields[1:])
    try:
        return msgspec.convert((_document(row), *fields), DeadLetter)
    except msgspec.ValidationError:
        raise ValueError("a field is missing or has the wrong type") from None


def _document(row: Mapping[str, Any]) -> Original:
    document, packed = row.get("document"), row.get("document_base64")
    if isinstance(document, dict):
        return document
    if isinstance(document, str):
        return document.encode()
    if isinstance(packed, str):
        return base64.b64decode(packed, validate=True)
    raise ValueError("it has no document")


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.tolist() if hasattr(value, "tolist") else str(value)


#: What a write to a full disk fails with.
NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@dataclass
class DeadLetters:
    """The dead letters of the loads into one index; there is no file until there is a letter.

    Attributes:
        path: the file, with mode 0600.
    """

    path: Path
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False, compare=False)
    _folder_synced: bool = field(default=False, init=False, repr=False, compare=False)

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Append letters. Once this returns they are on the disk: not even a power cut takes them back.

        Raises:
            LangshiftError: they cannot be written; then none of them is there.
        """
        if not letters:
            return
        content = b"".join(map(to_line, letters))
        with self._lock, self._telling("continue with --resume"):
            if _is_cut_off(self.path):
                self.revise(lambda letter: letter)
            ensure_private(self.path)
            with self.path.open("a+b", buffering=0) as file:
                _append(file, content)
            if not self._folder_synced:
                sync_folder(self.path.parent)
                self._folder_synced = True

    def __iter__(self) -> Iterator[DeadLetter]:
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
        return sum(1 for _ in self)

    def keep(self, wanted: Callable[[DeadLetter], bool]) -> None:
        """Keep the letters that are wanted and drop the others; see ``revise``."""
        self.revise(lambda letter: letter if wanted(letter) else None)

    def revise(self, revised: Callable[[DeadLetter], DeadLetter | None]) -> None:
        """Put another letter in the place of each, or none, all at once; a file without letters is removed.

        Raises:
            UsageError: a line is no dead letter; then all is as it was.
            LangshiftError: the file cannot be written; then all is as it was.
        """
        with self._lock, self._telling("replay the dead letters again"):
            if not self.path.exists():
                return
            with atomic_write(self.path, private=True) as partial, partial.open("wb") as file:
                for row, letter in self._rows():
                    if (now := revised(letter)) is not None:
                        file.write(row if now is letter else to_line(now))
                file.flush()
                os.fsync(file.fileno())
            if not self.path.stat().st_size:
                self.path.unlink()
            sync_folder(self.path.parent)

    def _rows(self) -> Iterator[tuple[bytes, DeadLetter]]:
        """Each letter with its line in the file, repeated ones aside."""
        # A version is the load's own number plus the line's: without the line it is the same for a whole load.
        seen: defaultdict[int, LineRanges] = defaultdict(LineRanges)
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            for number, row in enumerate(file, 1):
                try:
                    letter = from_line(row)
                except ValueError as error:
                    if not row.endswith(b"\n"):
                        return  # Cut off by a kill, so its load was never told that it is there.
                    raise UsageError(
                        f"{self.path}, line {number}, is not a valid dead letter ({error}): correct or remove it."
                    ) from None
                line = letter.line
                # What a load's versions begin with tells it from every other, whatever path its input had.
                lines = seen[letter.version - line]
                if line not in lines:
                    lines.add(line, line)
                    yield row.rstrip(b"\n") + b"\n", letter

    @contextmanager
    def _telling(self, remedy: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            first = "free space on the disk" if error.errno in NO_ROOM else "make it writable"
            raise LangshiftError(f"{self.path} cannot be written ({error.strerror}): {first}, and {remedy}.") from error


def _append(file: FileIO, content: bytes) -> None:
    """Append whole lines, all of them or none."""
    begin = file.seek(0, os.SEEK_END)
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


def _is_cut_off(path: Path) -> bool:
    """Whether the last line has no line break: a kill has cut it off, or an editor has left that away."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        return file.read() not in (b"", b"\n")


_TAKEN_OUT = "..."
# A quoted value, but not a quoted field's name; an apostrophe within a word quotes nothing. OpenSearch puts values of
# some types in brackets, as it does with names of fields. What is not closed goes to the end: nothing is looked for
# again from each of many beginnings.
_IN_BRACKETS = r"(?:(?<=value )|(?<=date field ))\[[^\]]*\]?"
_QUOTES = "|".join(rf"{begin}.*?(?:{end}(?!\w)|\Z)" for begin, end in ("''", '""', "``", "«»"))
_QUOTED = re.compile(rf"(?<!field )(?<!field name )(?<!field=)(?<!\w)(?:{_QUOTES})|{_IN_BRACKETS}", re.DOTALL)
_NUMBER = re.compile(r"(?<!\w)[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")
_REPEATED = re.compile(r"\.\.\.(?:\s*(?:[,:]\s*)?\.\.\.)+")
# A reason may quote a document: what tells one kind from another stands at the beginning.
_LONGEST = 300


@dataclass
class Group:
    """Dead letters of one kind.

    Attributes:
        type: the error's type.
        reason: the error in words, without what is a single document's; the example has its own in full.
        stage: where it happened.
        count: how many letters.
        example: the first of them.
    """

    type: str
    reason: str
    stage: Stage
    count: int
    example: DeadLetter

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift dead-letters list --json`` prints it."""
        first = self.example
        example = {"corpus": first.corpus, "line": first.line, "_id": first.id, "reason": first.reason}
        return {**vars(self), "example": example}


def grouped(letters: Iterable[DeadLetter]) -> list[Group]:
    """The kinds of dead letters, the most frequent first; those as frequent in the order in which they came."""
    groups: dict[tuple[str, str, str], Group] = {}
    for letter in letters:
        kind = letter.type, kind_of(letter), letter.stage
        groups.setdefault(kind, Group(*kind, 0, letter)).count += 1
    return sorted(groups.values(), key=lambda group: -group.count)


def kind_of(letter: DeadLetter) -> str:
    """A letter's reason with ``...`` for its id, quoted values and numbers."""
    reason = letter.reason
    if letter.id:
        reason = re.sub(rf"(?<!\w){re.escape(letter.id)}(?!\w)", _TAKEN_OUT, reason)
    reason = _NUMBER.sub(_TAKEN_OUT, _QUOTED.sub(_TAKEN_OUT, reason))
    return shortened(_REPEATED.sub(_TAKEN_OUT, reason))


def shortened(reason: str) -> str:
    """A reason that is not too long for a list."""
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} {_TAKEN_OUT}"
