"""Vectors of documents and queries, whether an encoder makes them or they came with the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import Encoder, is_given
from langshift.errors import UsageError
from langshift.ingest.documents import Document

Matrix = NDArray[np.float32]


class Asked(Protocol):
    """A query."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def embedding(self) -> Matrix | None: ...  # noqa: D102


def full_text(title: str, text: str) -> str:
    """What is encoded of a document."""
    return f"{title} {text}".strip()


def document_vectors(encoder: Encoder, documents: Sequence[Document]) -> Matrix:
    """Vectors of documents, shape (len(documents), dimension), float32, not shifted.

    Raises:
        UsageError: a document without a vector of the dimension, where vectors come with the data.
    """
    if is_given(encoder.id):
        return _brought("Document", encoder, [(document.id, document.embedding) for document in documents])
    return encoder.encode_documents([full_text(document.title, document.text) for document in documents])


def query_vectors(encoder: Encoder, queries: Sequence[Asked]) -> Matrix:
    """Vectors of queries, shape (len(queries), dimension), float32, not shifted.

    Raises:
        UsageError: a query without a vector of the dimension, where vectors come with the data.
    """
    if is_given(encoder.id):
        return _brought("Query", encoder, [(query.id, query.embedding) for query in queries])
    return encoder.encode_queries([query.text for query in queries])


def _brought(what: str, encoder: Encoder, vectors: Sequence[tuple[str, Matrix | None]]) -> Matrix:
    found = np.empty((len(vectors), encoder.dimension), np.float32)
    for row, (name, vector) in enumerate(vectors):
        if vector is None:
            raise UsageError(
                f"{what} {name!r} brings no 'embedding', which the encoder {encoder.id} needs: give it one, of "
                f"{encoder.dimension} numbers."
            )
        if vector.shape != (encoder.dimension,):
            raise UsageError(
                f"{what} {name!r} brings an 'embedding' of {len(vector)} numbers, but {encoder.dimension} are needed: "
                "documents and queries must be encoded by the same model."
            )
        found[row] = vector
    return found
