"""A dead letter: a line that could not become a document, with the reason, as it stands in a file."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import orjson

from langshift.ingest.bulk.item import Original

Stage = Literal["read", "encode", "write"]


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
        version: with which version it was, or would have been, written; None where none was given.
    """

    document: Original
    line: int
    id: str | None
    type: str
    reason: str
    stage: Stage
    time: str
    corpus: str
    version: int | None


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
    """Read what ``to_line`` made.

    Raises:
        ValueError: it is no dead letter.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = _loaded(line)
    if not isinstance(row, dict):
        raise ValueError("no object")
    letter = DeadLetter(
        _document(row),
        *(row.get("_id" if name == "id" else name) for name in DeadLetter._fields[1:]),  # type: ignore[arg-type]
    )
    texts = (letter.type, letter.reason, letter.time, letter.corpus)
    if (
        not all(isinstance(text, str) for text in texts)
        or not _whole(letter.line)
        or letter.stage not in get_args(Stage)
        or not (letter.id is None or isinstance(letter.id, str))
        or not (letter.version is None or _whole(letter.version))
    ):
        raise ValueError("a field is missing or of another type")
    return letter


def _loaded(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None


def _document(row: Mapping[str, Any]) -> Original:
    document, packed = row.get("document"), row.get("document_base64")
    if isinstance(document, dict):
        return document
    if isinstance(document, str):
        return document.encode()
    if isinstance(packed, str):
        return base64.b64decode(packed, validate=True)
    raise ValueError("no document")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.tolist() if hasattr(value, "tolist") else str(value)
