"""What an index keeps of its texts beside their vectors: weights of a learned sparse encoder, and vectors of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

_Dimension = Annotated[int, msgspec.Meta(ge=1, le=16_000)]

#: The fields that a new index keeps them in.
SPARSE_FIELD: Final = "sparse_embedding"
TOKENS_FIELD: Final = "token_vectors"


class SparseWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of tokens by a learned sparse encoder, kept under ``_meta.langshift_sparse``.

    Attributes:
        encoder: its id, such as ``st:NAME``; weights that came with the data are those of ``given`` or ``given:NAME``.
        revision: version of its weights.
        field: the field with a document's weights, token -> weight; a ``rank_features``.
    """

    encoder: str
    revision: str
    field: str = SPARSE_FIELD

    @property
    def mapping(self) -> dict[str, Any]:
        """How the field is mapped."""
        return {"type": "rank_features"}


class TokenVectors(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of tokens by a late-interaction model, kept under ``_meta.langshift_tokens``.

    Attributes:
        encoder: its id, ``st:NAME``.
        revision: version of its weights.
        dimension: length of a token's vector as it is kept.
        field: the field with a document's vectors, packed; a ``binary``, which nothing searches.
    """

    encoder: str
    revision: str
    dimension: _Dimension
    field: str = TOKENS_FIELD

    @property
    def mapping(self) -> dict[str, Any]:
        """How the field is mapped."""
        return {"type": "binary"}


#: Their keys under ``_meta``.
SPARSE: Final = "langshift_sparse"
TOKENS: Final = "langshift_tokens"


def sparse_weights(meta: Mapping[str, Any]) -> SparseWeights | None:
    """The weights that an index keeps, by its whole ``_meta``, which has been checked; None where it keeps none."""
    return msgspec.convert(meta[SPARSE], SparseWeights) if SPARSE in meta else None


def token_vectors(meta: Mapping[str, Any]) -> TokenVectors | None:
    """The vectors of tokens that an index keeps, likewise."""
    return msgspec.convert(meta[TOKENS], TokenVectors) if TOKENS in meta else None
