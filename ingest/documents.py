"""Read a corpus: BEIR ``corpus.jsonl``, plain, ``.gz`` or ``.zst``, or standard input."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin.template import RESERVED_FIELDS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
_TELL_EVERY = 1000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_ID = 512  # bytes, the server's limit
_KNOWN_FIELDS = {"_id", "title", "text", "language"}
# Fields of OpenSearch itself, which no document may bring.
_METADATA = {
    *("_index", "_source", "_routing", "_field_names", "_ignored", "_nested_path", "_doc_count", "_seq_no", "_version"),
    *("_primary_term", "_size", "_type", "_uid", "_feature", "_data_stream_timestamp", "_tier"),
}


@dataclass(frozen=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: its own ``_id``, or a hash of its content.
        title: may be empty.
        text: may be empty where there is a title.
        language: BCP 47 tag that the document brought (``zh-TW``), ``und``, or None where it brought none.
        other: every other field, as it came.
    """

    id: str
    title: str
    text: str
    language: str | None
    other: Mapping[str, Any]


@dataclass(frozen=True)
class Corpus:
    """A corpus that was read through once and found sound.

    Attributes:
        path: a file that can be read again.
        shown: how messages name it.
        documents: how many it holds.
    """

    path: Path
    shown: str
    documents: int


@contextmanager
def open_corpus(given: str, on_checked: Callable[[int], None] | None = None) -> Iterator[Corpus]:
    """Open a corpus, and read it through once.

    Args:
        given: path of a file, or ``-`` for standard input, which is kept in a temporary file meanwhile.
        on_checked: called now and then with the number of documents found sound.

    Raises:
        UsageError: there is no such file, it holds no document, or a line cannot be used.
    """
    with _as_file(given) as path:
        shown = "standard input" if given == STANDARD_INPUT else given
        documents = 0
        for documents, _ in enumerate(read_corpus(path, shown), start=1):
            if on_checked and documents % _TELL_EVERY == 0:
                on_checked(documents)
        if not documents:
            raise UsageError(f"{shown} holds no document.")
        yield Corpus(path, shown, documents)


@contextmanager
def _as_file(given: str) -> Iterator[Path]:
    path = Path(given)
    if given != STANDARD_INPUT:
        if path.is_dir():
            raise UsageError(f"{given} is a folder: name a file, such as {path / 'corpus.jsonl'}.")
        if not path.exists():
            raise UsageError(f"{given}: there is no such file.")
        if path.is_file():
            yield path
            return
    # A pipe gives its bytes once.
    with tempfile.NamedTemporaryFile(prefix="langshift-", suffix=".jsonl") as kept:
        with sys.stdin.buffer if given == STANDARD_INPUT else path.open("rb") as stream:
            shutil.copyfileobj(stream, kept)
        kept.flush()
        yield Path(kept.name)


def read_corpus(path: Path, shown: str) -> Iterator[Document]:
    """Read the documents of a corpus, in order; blank lines are passed over.

    Args:
        path: the file; its first bytes tell how it is compressed.
        shown: how messages name it.

    Raises:
        UsageError: a line that is no document, named by file and line with what is wrong.
    """
    number = 0
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, start=1):
                line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if line.strip():
                    yield parse_document(line, f"{shown}, line {number}")
    except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
        raise UsageError(
            f"{shown}: the compressed data break off or are damaged after line {number} ({error})."
        ) from error


def parse_document(line: bytes, place: str) -> Document:
    """One line of a corpus as a document.

    Raises:
        UsageError: beginning with ``place``, what is wrong and what should be there.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{place}: not valid JSON ({error.msg} at character {error.pos + 1}).") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{place}: must be a JSON object with a text, but is {_kind(fields)}.")
    for name in fields:
        _check_name(name, place)
    group = fields.get("group")
    if not isinstance(group, str | int | None):
        raise UsageError(f"{place}: the field 'group' must be a string, but is {_kind(group)}.")
    title, text = (_string(fields, name, place) for name in ("title", "text"))
    if not title.strip() and not text.strip():
        raise UsageError(f"{place}: has neither a text nor a title.")
    return Document(
        id=_id(fields, place),
        title=title,
        text=text,
        language=_language(fields, place),
        other={name: value for name, value in fields.items() if name not in _KNOWN_FIELDS},
    )


def _check_name(name: str, place: str) -> None:
    """Refuse a field's name that the server refuses, or that means one of our own fields."""
    parts = name.split(".")
    if not all(part.strip() for part in parts) or name in _METADATA:
        raise UsageError(f"{place}: OpenSearch takes no field of the name {name!r}; rename it.")
    if name in RESERVED_FIELDS or (len(parts) > 1 and parts[0] in (*RESERVED_FIELDS, *_KNOWN_FIELDS, "group")):
        raise UsageError(f"{place}: the field {name!r} is one that langshift writes itself; rename it.")


def _string(fields: dict[str, Any], name: str, place: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{place}: the field {name!r} must be a string, but is {_kind(value)}.")
    return value


def _id(fields: dict[str, Any], place: str) -> str:
    given = fields.get("_id")
    if given is None or given == "":
        # The same content gets the same id: writing it twice never doubles it.
        return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise UsageError(f"{place}: the field '_id' must be a string, but is {_kind(given)}.")
    identifier = str(given)
    if len(identifier.encode()) > _LONGEST_ID:
        raise UsageError(f"{place}: the '_id' is longer than {_LONGEST_ID} bytes.")
    return identifier


def _language(fields: dict[str, Any], place: str) -> str | None:
    given = _string(fields, "language", place).strip()
    if not given:
        return None
    if given.lower() == UNDETERMINED:
        return UNDETERMINED
    tag = parse_tag(given)
    if tag is None:
        raise UsageError(
            f"{place}: {given!r} is no language: use a BCP 47 tag such as 'th' or 'zh-TW', "
            "or leave the field out to have it detected."
        )
    return tag


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


@contextmanager
def _open(path: Path) -> Iterator[Iterable[bytes]]:
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            with gzip.open(raw, "rb") as unpacked:
                yield unpacked
        elif magic == b"\x28\xb5\x2f\xfd":
            with zstd.open(raw, "rb") as unpacked:
                yield unpacked
        else:
            yield raw
