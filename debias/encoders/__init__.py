"""Encoders: texts in, vectors out, as the model makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError

_NORM_TOLERANCE = 1e-3


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


class Brought(NamedTuple):
    """What is known of vectors that come with the data, and that no encoder here makes.

    Attributes:
        dimension: length of a vector.
        normalised: whether they have norm 1.
    """

    dimension: int
    normalised: bool


def open_encoder(name: str, *, trust_remote_code: bool = False, brought: Brought | None = None) -> Encoder:
    """Open an encoder by its name.

    Args:
        name: ``use-m``, ``st:NAME_OR_PATH``, ``http:URL#MODEL``, ``given`` or ``given:NAME``.
        trust_remote_code: run code that comes with a model (``st:`` alone).
        brought: the vectors that came with the data, where some did (``given`` alone).

    Raises:
        UsageError: there is no encoder of that name, or it cannot be used with what there is.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if name == "use-m":
        from langshift.debias.encoders.use_m import UseM

        return UseM()
    if kind == "st" and rest:
        from langshift.debias.encoders.st import open_st

        return open_st(rest, trust_remote_code=trust_remote_code)
    if kind in ("http", "https") and rest:
        from langshift.debias.encoders.http import open_http

        return open_http(name)
    if is_given(name):
        from langshift.debias.encoders.given import open_given

        return open_given(rest, brought)
    raise UsageError(
        f"There is no encoder {name!r}; there are use-m, st:NAME_OR_PATH (sentence-transformers), http:URL#MODEL "
        "(a server of embeddings), and given or given:NAME (vectors that come with the data)."
    )


def identity(encoder: Encoder) -> dict[str, Any]:
    """What a fingerprint says of the encoder, by the fingerprint's names."""
    return {
        "encoder": encoder.id,
        "revision": encoder.revision,
        "query_prefix": encoder.query_prefix,
        "document_prefix": encoder.document_prefix,
        "dimension": encoder.dimension,
        "normalised": encoder.normalised,
    }


def is_given(name: str) -> bool:
    """Whether an encoder of this name or id takes vectors that come with the data."""
    return name.partition(":")[0] == "given"


def have_norm_1(vectors: NDArray[np.float32]) -> bool:
    """Whether vectors, shape (n, d), are normalised, as far as rounding them for transport leaves them so."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    # A single broken vector does not make the others another model's.
    return bool(np.median(np.abs(norms - 1)) < _NORM_TOLERANCE)
