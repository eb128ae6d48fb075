"""What is written of a document, and the lines of a bulk request that write it."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.ingest.bulk.item import Operation


def entry(
    title: str,
    text: str,
    language: str,
    confidence: float,
    embedding: NDArray[np.float32],
    stamp: dict[str, Any],
    other: dict[str, Any],
) -> dict[str, Any]:
    """The index entry of one document.

    Args:
        title: may be empty; then the field is left out, as is an empty text.
        text: the document's text.
        language: as ``text_language`` gives it; it names the text fields.
        confidence: the detector's posterior.
        embedding: the shifted vector, shape (dimension,), float32, C-contiguous.
        stamp: what was done to the vector.
        other: every other field, as it came.
    """
    made: dict[str, Any] = {**other, "language": language, "language_confidence": confidence}
    if title:
        made["title"] = {language: title}
    if text:
        made["text"] = {language: text}
    made["embedding"] = embedding
    made["shift"] = stamp
    return made


def action(operation: Operation, identifier: str, version: int, routing: str | None = None) -> bytes:
    """The first line of an operation, with its line break; the arguments are those of ``body``, and the routing."""
    told = {"_id": identifier, "version": version, "version_type": "external_gte"}
    if routing is not None:
        told["routing"] = routing
    return orjson.dumps({operation: told}, option=orjson.OPT_APPEND_NEWLINE)


def body(operation: Operation, identifier: str, version: int, source: dict[str, Any] | None = None) -> bytes:
    """One operation's lines of a bulk request.

    Args:
        operation: what is done.
        identifier: the document's ``_id``.
        version: its place in the order of all writes: the server keeps what has a later one, so that an operation
            sent again never undoes a newer one.
        source: the index entry; none for a delete.
    """
    lines = action(operation, identifier, version)
    if source is None:
        return lines
    return lines + orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
