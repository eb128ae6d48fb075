"""The fields of a document as a line of JSON has them, each found sound or refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin.template import RESERVED_FIELDS

EMBEDDING = "embedding"
_LONGEST_ID = 512  # bytes, the server's limit
KNOWN_FIELDS = {"_id", "title", "text", "language", EMBEDDING}
# Fields of OpenSearch itself, which no document may bring.
_METADATA = {
    *("_index", "_source", "_routing", "_field_names", "_ignored", "_nested_path", "_doc_count", "_seq_no", "_version"),
    *("_primary_term", "_size", "_type", "_uid", "_feature", "_data_stream_timestamp", "_tier"),
}


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def check_name(name: str, place: str) -> None:
    """Refuse a field's name that the server refuses, or that means one of our own fields.

    Raises:
        UsageError: saying which.
    """
    parts = name.split(".")
    if not all(part.strip() for part in parts) or name in _METADATA:
        raise UsageError(f"{place}: OpenSearch takes no field of the name {name!r}; rename it.")
    if (name in RESERVED_FIELDS and name != EMBEDDING) or (
        len(parts) > 1 and parts[0] in (*RESERVED_FIELDS, *KNOWN_FIELDS, "group")
    ):
        raise UsageError(f"{place}: the field {name!r} is one that langshift writes itself; rename it.")


def string_field(fields: Mapping[str, Any], name: str, place: str) -> str:
    """A field that is a string, "" where it is missing or null.

    Raises:
        UsageError: it is anything else.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{place}: the field {name!r} must be a string, but is {kind(value)}.")
    return value


def id_field(fields: Mapping[str, Any], place: str) -> str:
    """A document's own ``_id``, or a hash of its content.

    Raises:
        UsageError: an ``_id`` that the server does not take.
    """
    given = fields.get("_id")
    if given is None or given == "":
        # The same content gets the same id, whatever model made its vector: writing it twice never doubles it.
        content = {name: value for name, value in fields.items() if name != EMBEDDING}
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise UsageError(f"{place}: the field '_id' must be a string, but is {kind(given)}.")
    identifier = str(given)
    if len(identifier.encode()) > _LONGEST_ID:
        raise UsageError(f"{place}: the '_id' is longer than {_LONGEST_ID} bytes.")
    return identifier


def language_field(fields: Mapping[str, Any], place: str) -> str | None:
    """The tag that a document names, ``und``, or None where it names none.

    Raises:
        UsageError: what it names is no language.
    """
    given = string_field(fields, "language", place).strip()
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


def parse_embedding(value: Any, place: str) -> NDArray[np.float32]:  # noqa: ANN401 - any JSON value
    """The field ``embedding`` of a document or query as a vector, shape (dimension,), float32.

    Raises:
        UsageError: beginning with ``place``, what is wrong and what should be there.
    """
    wanted = f"{place}: the field 'embedding' must be a list of numbers"
    if not isinstance(value, list):
        raise UsageError(f"{wanted}, but is {kind(value)}.")
    if not value:
        raise UsageError(f"{wanted}, but is empty.")
    if not set(map(type, value)) <= {float, int}:
        stranger = next(number for number in value if type(number) not in (float, int))
        raise UsageError(f"{wanted}, but holds {kind(stranger)}.")
    # Numbers beyond the range of float32 become infinite.
    with np.errstate(over="ignore"):
        vector = np.array(value, np.float32)
    if not np.isfinite(vector).all():
        raise UsageError(f"{wanted}, but holds one too large for 32 bits.")
    if not vector.any():
        raise UsageError(f"{wanted} that are not all zero: such a vector has no direction.")
    return vector


def require_dimension(vector: NDArray[np.float32], dimension: int, place: str) -> None:
    """Refuse a vector of another dimension than the first one of its file.

    Raises:
        UsageError: beginning with ``place``.
    """
    if len(vector) != dimension:
        raise UsageError(
            f"{place}: the field 'embedding' has {len(vector)} numbers, but the first one of the file has {dimension}: "
            "all must be made by the same model."
        )
