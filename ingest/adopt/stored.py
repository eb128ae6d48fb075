"""Documents as an index gives them back, with the very bytes of what they hold.

Reading JSON and writing it again may change numbers: integers beyond 64 bits, decimals of many digits. So only what
is looked at is read, and only what is changed is written; all else passes as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import orjson
from msgspec import Raw

from langshift.surrogates import replace_halves

T = TypeVar("T")

# Stands before the digits of half a surrogate pair, which readers of JSON refuse, until that is written again.
_MARK = f"\ue000{uuid4().hex}"
_MARKED = re.compile(f"{_MARK}([0-9a-fA-F]{{4}})")
_MARKED_BYTES = re.compile(f"{_MARK}([0-9a-fA-F]{{4}})".encode())


class Stored(msgspec.Struct):
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


class Total(msgspec.Struct):
    """How many documents a search finds."""

    value: int


class Found(msgspec.Struct):
    """The part of a search's answer that holds the documents, each byte for byte."""

    hits: list[Raw]
    total: Total | None = None


class Page(msgspec.Struct):
    """A search's answer."""

    hits: Found


_page = msgspec.json.Decoder(Page).decode
_stored = msgspec.json.Decoder(Stored).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def page_of(answer: str) -> Page:
    """The documents of a search's answer.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decoded(_page, answer)


def stored_of(hit: bytes | Raw) -> Stored:
    """A document of a search's answer."""
    return _decoded(_stored, hit)


def whole(hit: Raw) -> bytes:
    """A document of a search's answer byte for byte; it needs no longer the whole answer in memory."""
    return _unmarked(bytes(hit))


def loaded(source: Raw) -> dict[str, Any]:
    """A document's fields, to be looked at; half a surrogate pair is U+FFFD there."""
    text = _MARKED.sub("\ufffd", bytes(source).decode())
    fields: dict[str, Any] = orjson.loads(text)
    return fields


def changed(source: Raw, path: str, value: bytes | None, added: Mapping[str, bytes]) -> bytes:
    """A document with one value replaced and fields added; all else is the same byte for byte.

    Args:
        source: the document.
        path: the field to replace, as ``value_at`` finds it.
        value: its new value as JSON; None leaves it as it is.
        added: new fields as JSON; the document must not have them.

    Returns:
        The document on one line.
    """
    fields = _decoded(_fields, source)
    if value is not None:
        _replace(fields, path, Raw(value))
    fields.update((name, Raw(new)) for name, new in added.items())
    # Inside of a JSON text no line breaks but between its parts.
    return _unmarked(msgspec.json.encode(fields)).replace(b"\n", b" ").replace(b"\r", b" ")


def _replace(fields: dict[str, Raw], path: str, value: Raw) -> bool:
    if path in fields:
        fields[path] = value
        return True
    head, dot, rest = path.partition(".")
    while dot:
        if head in fields and bytes(fields[head]).lstrip().startswith(b"{"):
            inner = _decoded(_fields, fields[head])
            if _replace(inner, rest, value):
                fields[head] = Raw(msgspec.json.encode(inner))
                return True
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return False


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
