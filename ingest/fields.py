"""The fields of a document as a line of JSON has them, each found sound or refused."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin.template import RESERVED_FIELDS

EMBEDDING = "embedding"
OPERATION = "_op"
_LONGEST_ID = 512  # bytes, the server's limit
_LONGEST_SHOWN = 60  # characters of what is wrong that a message repeats; no tag of a language is longer
_tag = lru_cache(1024)(parse_tag)
KNOWN_FIELDS = {"_id", "title", "text", "language", EMBEDDING, OPERATION}
# Fields of OpenSearch itself, which no document may bring.
_METADATA = {
    *("_index", "_source", "_routing", "_field_names", "_ignored", "_nested_path", "_doc_count", "_seq_no", "_version"),
    *("_primary_term", "_size", "_type", "_uid", "_feature", "_data_stream_timestamp", "_tier"),
}


class Unusable(Exception):
    """A line that is no document.

    Attributes:
        type: one word for programs: ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
        reason: a sentence that says what is wrong and what should be there, but not where.
    """

    def __init__(self, reason: str, type: str = "invalid_document") -> None:
        super().__init__(reason)
        self.type, self.reason = type, reason


@contextmanager
def at(place: str) -> Iterator[None]:
    """Turn what is unusable into an error that begins with its place.

    Raises:
        UsageError: instead of ``Unusable``.
    """
    try:
        yield
    except Unusable as error:
        raise UsageError(f"{place}: {error.reason}") from None


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def check_name(name: str) -> None:
    """Refuse a field's name that the server refuses, or that means one of our own fields.

    Raises:
        Unusable: saying which.
    """
    fault = _name_fault(name)
    if fault:
        raise Unusable(fault)


# All lines of a corpus have the same few names.
@lru_cache(1024)
def _name_fault(name: str) -> str | None:
    parts = name.split(".")
    if not all(part.strip() for part in parts) or name in _METADATA:
        return f"OpenSearch takes no field of the name {_cut(name)}; rename it."
    if (name in RESERVED_FIELDS and name != EMBEDDING) or (
        len(parts) > 1 and parts[0] in (*RESERVED_FIELDS, *KNOWN_FIELDS, "group")
    ):
        return f"the field {_cut(name)} is one that langshift writes itself; rename it."
    return None


def _cut(text: str) -> str:
    """A text between quotation marks, only its beginning where it is long."""
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}..."


def string_field(fields: Mapping[str, Any], name: str) -> str:
    """A field that is a string, "" where it is missing or null.

    Raises:
        Unusable: it is anything else.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unusable(f"the field {name!r} must be a string, but is {kind(value)}.")
    return value


def id_field(fields: Mapping[str, Any]) -> str:
    """A document's own ``_id``, or a hash of its content.

    Raises:
        Unusable: an ``_id`` that the server does not take.
    """
    given = fields.get("_id")
    if given is None or given == "":
        # The same content gets the same id, whatever model made its vector: writing it twice never doubles it.
        content = {name: value for name, value in fields.items() if name not in (EMBEDDING, OPERATION)}
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise Unusable(f"the field '_id' must be a string, but is {kind(given)}.")
    identifier = str(given)
    if len(identifier.encode()) > _LONGEST_ID:
        raise Unusable(f"the '_id' is longer than {_LONGEST_ID} bytes.")
    return identifier


def language_field(fields: Mapping[str, Any]) -> str | None:
    """The tag that a document names, ``und``, or None where it names none.

    Raises:
        Unusable: what it names is no language.
    """
    given = string_field(fields, "language").strip()
    if not given:
        return None
    if given.lower() == UNDETERMINED:
        return UNDETERMINED
    tag = _tag(given) if len(given) <= _LONGEST_SHOWN else None
    if tag is None:
        raise Unusable(
            f"{_cut(given)} is no language: use a BCP 47 tag such as 'th' or 'zh-TW', "
            "or leave the field out to have it detected."
        )
    return tag


def require_shallow(value: object) -> None:
    """Refuse what is nested so deep that it can be read but not written again.

    Raises:
        Unusable: it is.
    """
    try:
        orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        raise Unusable("is nested too deep: OpenSearch takes 20 objects within each other.") from None


def parse_embedding(value: Any) -> NDArray[np.float32]:  # noqa: ANN401 - any JSON value
    """The field ``embedding`` of a document or query as a vector.

    Args:
        value: a list of numbers, as JSON has them; or an array, shape (dimension,), of integers or floats.

    Returns:
        The vector, shape (dimension,), float32; it may be read-only.

    Raises:
        Unusable: what is wrong and what should be there.
    """
    if not isinstance(value, list | np.ndarray):
        raise _no_vector(f"but is {kind(value)}")
    if not len(value):
        raise _no_vector("but is empty")
    # Numbers beyond the range of float32 become infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        vector = _packed(value) if isinstance(value, list) else np.asarray(value, np.float32)
        squared = vector.dot(vector)
    # By far the cheapest look: in all but strange cases, a sound vector's squared norm is neither 0 nor infinite.
    if not 0 < squared < np.inf:
        if np.isnan(value).any():
            raise _no_vector("but holds one that is not a number (NaN)")
        if not np.isfinite(vector).all():
            raise _no_vector("but holds one too large for 32 bits")
        if not vector.any():
            raise _no_vector("that are not all zero: such a vector has no direction", comma="")
    return vector


def _packed(numbers: list[Any]) -> NDArray[np.float32]:
    """Numbers as 32 bits, infinite where they are too large; ``struct`` takes a third of NumPy's time."""
    try:
        vector = np.frombuffer(struct.pack(f"{len(numbers)}f", *numbers), np.float32)
    except struct.error:
        _require_numbers(numbers)
        raise
    # What struct takes besides numbers is true and false, as 1 and 0.
    if ((vector == 0) | (vector == 1)).any():
        _require_numbers(numbers)
    return vector


def _require_numbers(values: list[Any]) -> None:
    for value in values:
        if type(value) not in (float, int):
            raise _no_vector(f"but holds {kind(value)}")


def _no_vector(what: str, comma: str = ",") -> Unusable:
    return Unusable(f"the field 'embedding' must be a list of numbers{comma} {what}.", "invalid_embedding")


def require_dimension(vector: NDArray[np.float32], dimension: int) -> None:
    """Refuse a vector of another dimension than those of its file.

    Raises:
        Unusable: it is.
    """
    if len(vector) != dimension:
        raise Unusable(
            f"the field 'embedding' has {len(vector)} numbers, but those of the file have {dimension}: "
            "all must be made by the same model.",
            "invalid_embedding",
        )
