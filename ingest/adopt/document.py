"""A document of an index that is to be adopted: its texts, its language, its vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.ingest.adopt.stored import loaded, stored_of
from langshift.ingest.documents import Document
from langshift.ingest.read import Bad
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin.fields import Fields, value_at


def document_of(hit: bytes, fields: Fields, dimension: int) -> Document | Bad:
    """Look at a document.

    Args:
        hit: as a search gives it.
        fields: the names of its fields, and of those that it is to get.
        dimension: the length of its vector.

    Returns:
        The document, its texts joined as ``text``; or why it cannot be adopted.
    """
    stored = stored_of(hit)
    source = loaded(stored.source)
    for name in (fields.language, fields.confidence, fields.stamp):
        if name in source:
            return Bad("field_taken", f"has a field {name!r} that the mapping does not know, and that langshift needs.")
    value, vector = value_at(source, fields.vector), None
    if value is not None:
        vector = _vector(value, dimension)
        if vector is None:
            return Bad("invalid_embedding", f"the field {fields.vector!r} is not one list of {dimension} numbers.")
    texts = [text for name in fields.texts for text in strings_at(source, name)]
    return Document(
        id=stored.id,
        title="",
        text="\n".join(texts),
        language=_language(source, fields.told),
        other={},
        embedding=vector,
    )


def strings_at(source: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """All strings at a field, also within lists, in the document's order."""
    if isinstance(source, list):
        for each in source:
            yield from strings_at(each, path)
    elif not path and isinstance(source, str):
        yield source
    elif path and isinstance(source, Mapping):
        for name, inner in source.items():
            if name == path:
                yield from strings_at(inner, "")
            elif path.startswith(f"{name}."):
                yield from strings_at(inner, path[len(name) + 1 :])


def _vector(value: Any, dimension: int) -> NDArray[np.float32] | None:  # noqa: ANN401 - any JSON
    if not isinstance(value, list) or len(value) != dimension:
        return None
    try:
        return np.array(value, np.float32)
    except (TypeError, ValueError):
        return None


def _language(source: Mapping[str, Any], name: str | None) -> str | None:
    """The tag that a document names; None where it names none, or several."""
    told = set(strings_at(source, name)) if name else set()
    if len(told) != 1:
        return None
    (given,) = told
    return UNDETERMINED if given.strip().lower() == UNDETERMINED else parse_tag(given)
