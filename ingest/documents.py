"""Documents: what a line of BEIR's ``corpus.jsonl`` must be, and a file of them read strictly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.compressed import open_unpacked
from langshift.ingest.fields import (
    EMBEDDING,
    KNOWN_FIELDS,
    OPERATION,
    Unusable,
    at,
    check_name,
    id_field,
    kind,
    language_field,
    parse_embedding,
    require_dimension,
    require_shallow,
    string_field,
)
from langshift.numbered import numbered

# What becomes of a document's own vector: an error, taken (and an error where there is none), or left aside unread.
Embeddings = Literal["refused", "needed", "ignored"]


@dataclass(frozen=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: its own ``_id``, or a hash of its content.
        title: may be empty.
        text: may be empty where there is a title.
        language: BCP 47 tag that the document brought (``zh-TW``), ``und``, or None where it brought none.
        other: every other field, as it came.
        embedding: the vector that came with it, shape (dimension,), float32; None where none is wanted.
    """

    id: str
    title: str
    text: str
    language: str | None
    other: Mapping[str, Any]
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


class Delete(NamedTuple):
    """A line that takes a document out of the index: ``{"_op": "delete", "_id": "x"}``."""

    id: str


def read_corpus(path: Path, shown: str, embeddings: Embeddings = "refused") -> Iterator[Document]:
    """Read the documents of a corpus, in order; blank lines are passed over.

    Args:
        path: the file; its first bytes tell how it is compressed.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: a line that is no document, named by file and line with what is wrong.
    """
    dimension = None
    with open_unpacked(path) as unpacked:
        for number, line in numbered(unpacked, shown):
            place = f"{shown}, line {number}"
            document = parse_document(line, place, embeddings)
            if document.embedding is not None:
                dimension = dimension or len(document.embedding)
                with at(place):
                    require_dimension(document.embedding, dimension)
            yield document


def parse_document(line: bytes, place: str, embeddings: Embeddings = "refused") -> Document:
    """One line of a corpus as a document.

    Args:
        line: the line.
        place: file and line, which begin a message.
        embeddings: what becomes of a vector that comes with it.

    Raises:
        UsageError: beginning with ``place``, what is wrong and what should be there.
    """
    with at(place):
        content = parse_fields(parse_object(line), embeddings)
        if isinstance(content, Delete):
            raise Unusable("takes a document out of an index, which only `langshift ingest` does; leave the line out.")
        return content


def parse_object(line: bytes) -> dict[str, Any]:
    """The fields of one line.

    Raises:
        Unusable: it is no JSON, or no object.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Unusable(f"not valid JSON ({error.msg} at character {error.pos + 1}).", "invalid_json") from None
    if not isinstance(fields, dict):
        raise Unusable(f"must be a JSON object with a text, but is {kind(fields)}.")
    return fields


def parse_fields(fields: Mapping[str, Any], embeddings: Embeddings = "refused") -> Document | Delete:
    """The fields of one line as a document, or as the deletion of one.

    Args:
        fields: as JSON has them; ``embedding`` may be an array, shape (dimension,).
        embeddings: what becomes of a vector that comes with it.

    Raises:
        Unusable: what is wrong and what should be there.
    """
    operation = fields.get(OPERATION)
    if operation == "delete":
        if fields.get("_id") in (None, ""):
            raise Unusable("a line with '_op': 'delete' needs the '_id' of the document.")
        return Delete(id_field(fields))
    if operation not in (None, "index"):
        raise Unusable("the field '_op' must be 'index' or 'delete', or be left out.")
    for name in fields:
        check_name(name)
    group = fields.get("group")
    if not isinstance(group, str | int | None):
        raise Unusable(f"the field 'group' must be a string, but is {kind(group)}.")
    title, text = string_field(fields, "title"), string_field(fields, "text")
    if not title.strip() and not text.strip():
        raise Unusable("has neither a text nor a title.")
    other = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    if any(isinstance(value, dict | list) for value in other.values()):
        require_shallow([other])
    return Document(
        id=id_field(fields),
        title=title,
        text=text,
        language=language_field(fields),
        other=other,
        embedding=_embedding(fields, embeddings),
    )


def _embedding(fields: Mapping[str, Any], embeddings: Embeddings) -> NDArray[np.float32] | None:
    there = fields.get(EMBEDDING) is not None
    if embeddings == "ignored" or (embeddings == "refused" and not there):
        return None
    if embeddings == "refused":
        raise Unusable(
            "the document brings an 'embedding', which only --encoder given takes; "
            "choose that, or leave the field out.",
            "invalid_embedding",
        )
    if not there:
        raise Unusable(
            "the document brings no 'embedding', which --encoder given needs; give it one.", "invalid_embedding"
        )
    return parse_embedding(fields[EMBEDDING])
