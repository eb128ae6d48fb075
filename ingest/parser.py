"""Lines and rows of one input as documents, or as what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import Brought
from langshift.debias.encoders.given import LookedAt
from langshift.errors import UsageError
from langshift.ingest.documents import Delete, Document, Embeddings, parse_fields, parse_object
from langshift.ingest.fields import Unusable, require_dimension
from langshift.ingest.read import Bad, Read

#: How many lines tell whether an input holds documents, and what vectors it brings; at most so many bytes of them,
#: since those of a pipe are kept meanwhile.
LOOKED_AT_LINES = 1000
_LOOKED_AT_BYTES = 64 << 20


class Parser:
    """Makes documents of lines and rows.

    Args:
        embeddings: what becomes of vectors that come with documents.
        dimension: the one that all vectors must have; None while nobody knows.
    """

    def __init__(self, embeddings: Embeddings, dimension: int | None = None) -> None:
        self._embeddings = embeddings
        self._dimension = dimension

    def line(self, numbered: tuple[int, bytes]) -> Read:
        """A line of JSON, of which the number is known."""
        number, line = numbered
        return Read(number, self._content(lambda: parse_object(line)), line)

    def row(self, number: int, fields: Mapping[str, Any]) -> Read:
        """A row, of which the fields are known."""
        return Read(number, self._content(lambda: fields), fields)

    def _content(self, fields: Callable[[], Mapping[str, Any]]) -> Document | Delete | Bad:
        try:
            content = parse_fields(fields(), self._embeddings)
            if self._dimension is not None and isinstance(content, Document) and content.embedding is not None:
                require_dimension(content.embedding, self._dimension)
        except Unusable as error:
            return Bad(error.type, error.reason)
        return content


def first_lines(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The first lines of an input, as far as one looks before anything is begun."""
    size = 0
    for count, (number, line) in enumerate(lines, start=1):
        yield number, line
        size += len(line)
        if count == LOOKED_AT_LINES or size > _LOOKED_AT_BYTES:
            return


def look(first: Iterable[Read], shown: str, unit: str = "line") -> Brought | None:
    """Look whether an input holds documents, and what vectors they bring: those of the most frequent dimension.

    Args:
        first: its first lines or rows.
        shown: how messages name it.
        unit: what messages call a line.

    Raises:
        UsageError: there is none, or none of them can be used: what is wrong with the very first.
    """
    vectors: list[NDArray[np.float32]] = []
    wrong, sound = None, False
    for line, content, _ in first:
        if isinstance(content, Bad):
            wrong = wrong or f"{shown}, {unit} {line}: {content.reason}"
            continue
        sound = True
        if isinstance(content, Document) and content.embedding is not None:
            vectors.append(content.embedding)
    if not sound:
        raise UsageError(wrong or f"{shown} holds no document.")
    looked_at = LookedAt()
    # A single vector of another model must not turn all its neighbours away.
    ((dimension, _),) = Counter(map(len, vectors)).most_common(1) or [(0, 0)]
    for vector in vectors:
        looked_at.add(vector if len(vector) == dimension else None)
    return looked_at.brought()
