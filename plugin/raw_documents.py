"""Documents of a search's answer, byte for byte: what is looked at is read, and only what is changed is written."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import orjson
from msgspec import Raw
from opensearchpy import OpenSearch
from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer

from langshift.client import address, make_client
from langshift.credentials import redact
from langshift.files import replace_halves
from langshift.plugin.metadata import inner_paths
from langshift.settings import Settings

T = TypeVar("T")

# Stands before the digits of half a surrogate pair, which readers of JSON refuse, until that is written again.
_MARK = f"\ue000{uuid4().hex}"
_MARKED = re.compile(f"{_MARK}([0-9a-fA-F]{{4}})")
_MARKED_BYTES = re.compile(f"{_MARK}([0-9a-fA-F]{{4}})".encode())


# Reading JSON and writing it again may change numbers: integers beyond 64 bits, decimals of many digits. So only what
# is looked at is read, and only what is changed is written; all else passes as it is.
class StoredDocument(msgspec.Struct):
    """A document of a search's answer.

    Attributes:
        id: its ``_id``.
        version: its ``_version``.
        source: its ``_source``, byte for byte.
        routing: its ``_routing``, if it has one.
        sort: where in its slice it stands; absent where nothing was sorted.
    """

    id: str = msgspec.field(name="_id")
    version: int = msgspec.field(name="_version")
    source: Raw = msgspec.field(name="_source")
    routing: str | None = msgspec.field(name="_routing", default=None)
    sort: list[Any] = msgspec.field(default_factory=list)


class RawHits(msgspec.Struct):
    """The part of a search's answer that holds the documents, each byte for byte; and how many it finds, if asked."""

    hits: list[Raw]
    total: dict[str, Any] = msgspec.field(default_factory=dict)


class RawPage(msgspec.Struct):
    """A search's answer."""

    hits: RawHits


class FoundDocument(msgspec.Struct):
    """A document that was asked for by its ``_id``.

    Attributes:
        id: its ``_id``.
        found: whether it is there; else nothing more is known.
        error: why it cannot be read, if so.
        version: its ``_version``.
        seq_no: its place among all writes of its shard.
        primary_term: the shard's.
        source: its ``_source``, byte for byte.
    """

    id: str = msgspec.field(name="_id")
    found: bool = False
    error: dict[str, Any] | None = None
    version: int = msgspec.field(name="_version", default=0)
    seq_no: int = msgspec.field(name="_seq_no", default=0)
    primary_term: int = msgspec.field(name="_primary_term", default=0)
    source: Raw = msgspec.field(name="_source", default=Raw(b"{}"))


class FoundDocuments(msgspec.Struct):
    """The answer of ``_mget``."""

    docs: list[FoundDocument]


_stored = msgspec.json.Decoder(StoredDocument).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def decode_hit(hit: bytes | Raw) -> StoredDocument:
    """A document of a search's answer."""
    return _decoded(_stored, hit)


def hit_bytes(hit: Raw) -> bytes:
    """A document of a search's answer byte for byte; it needs no longer the whole answer in memory."""
    return _unmarked(bytes(hit))


def parse_source(source: Raw) -> dict[str, Any]:
    """A document's fields, to be looked at; half a surrogate pair is U+FFFD there."""
    text = _MARKED.sub("\ufffd", bytes(source).decode())
    fields: dict[str, Any] = orjson.loads(text)
    return fields


def edit_source(source: Raw, changes: Mapping[str, Any]) -> bytes:
    """A document with some fields changed; all else is the same byte for byte.

    Args:
        source: the document.
        changes: field, as ``value_at`` finds it -> its new value; None removes the field.

    Returns:
        The document on one line.
    """
    fields = _decoded(_fields, source)
    for path, new in changes.items():
        value = None if new is None else orjson.dumps(new, option=orjson.OPT_SERIALIZE_NUMPY)
        if not _replace(fields, path, value) and value is not None:
            _add(fields, path, value)
    # Inside of a JSON text no line breaks but between its parts.
    return _unmarked(msgspec.json.encode(fields)).replace(b"\n", b" ").replace(b"\r", b" ")


def _replace(fields: dict[str, Raw], path: str, value: bytes | None) -> bool:
    """Replace or remove the field where it is there."""
    if path in fields:
        if value is None:
            del fields[path]
        else:
            fields[path] = Raw(value)
        return True
    for head, rest in inner_paths(path):
        if (inner := _object(fields, head)) is not None and _replace(inner, rest, value):
            fields[head] = Raw(msgspec.json.encode(inner))
            return True
    return False


def _add(fields: dict[str, Raw], path: str, value: bytes) -> None:
    """Add the field, to the first object on its path that is there."""
    for head, rest in inner_paths(path):
        if (inner := _object(fields, head)) is not None:
            _add(inner, rest, value)
            fields[head] = Raw(msgspec.json.encode(inner))
            return
    head, dot, rest = path.partition(".")
    if dot and head not in fields:
        inner = {}
        _add(inner, rest, value)
        fields[head] = Raw(msgspec.json.encode(inner))
    else:
        # A list of objects, or null, stays beside it: the server reads a name with dots as a path, too.
        fields[path] = Raw(value)


def _object(fields: Mapping[str, Raw], name: str) -> dict[str, Raw] | None:
    """A field that is an object; None where it is none, or absent."""
    if name not in fields or not bytes(fields[name]).lstrip().startswith(b"{"):
        return None
    return _decoded(_fields, fields[name])


def _decoded(decode: Callable[[Any], T], content: str | bytes | Raw) -> T:
    try:
        return decode(content)
    except msgspec.DecodeError:
        text = content if isinstance(content, str) else bytes(content).decode()
        marked = replace_halves(text, lambda half: f"{_MARK}{half}")
        if marked == text:
            raise
    return decode(marked)


def _unmarked(content: bytes) -> bytes:
    return _MARKED_BYTES.sub(rb"\\u\1", content)


class RawSerializer(JSONSerializer):
    """Reads answers only in part: the bytes of documents are to be kept."""

    def __init__(self, answer: type = RawPage) -> None:
        """Read answers of one kind: a search's, or ``FoundDocuments``."""
        self._decode: Callable[[Any], Any] = msgspec.json.Decoder(answer).decode

    def loads(self, s: str) -> Any:  # noqa: ANN401 - of the kind that was named
        """Read an answer, with its documents byte for byte."""
        try:
            return _decoded(self._decode, s)
        except msgspec.DecodeError as error:
            raise SerializationError(redact(s), error) from error


def open_raw(client: OpenSearch, answer: type = RawPage) -> OpenSearch:
    """Another client of the same cluster, which reads answers of one kind only in part, and tries nothing again."""
    return make_client(Settings.from_env(), address(client), retries=0, serializer=RawSerializer(answer))
