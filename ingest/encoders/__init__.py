"""Encoders: texts in, vectors out, as the model makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError


class Encoder(Protocol):
    """What every encoder offers.

    Attributes:
        id: how it is asked for, such as ``use-m``.
        revision: version of the weights; two that differ are never mixed.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 as the model makes them.
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        longest: how many characters of a text are read; None where all are.
    """

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def revision(self) -> str: ...  # noqa: D102
    @property
    def dimension(self) -> int: ...  # noqa: D102
    @property
    def normalised(self) -> bool: ...  # noqa: D102
    @property
    def query_prefix(self) -> str: ...  # noqa: D102
    @property
    def document_prefix(self) -> str: ...  # noqa: D102
    @property
    def longest(self) -> int | None: ...  # noqa: D102

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (len(texts), dimension), float32, not normalised by us."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (len(texts), dimension), float32, not normalised by us."""
        ...


def open_encoder(name: str) -> Encoder:
    """Open an encoder by its name.

    Raises:
        UsageError: there is no encoder of that name.
    """
    if name == "use-m":
        from langshift.ingest.encoders.use_m import UseM

        return UseM()
    raise UsageError(f"There is no encoder {name!r}; there is: use-m.")
