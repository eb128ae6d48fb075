"""What an index keeps of its texts beside their vectors: weights of a learned sparse encoder, and vectors of tokens."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec

from langshift.debias.fingerprint import same_encoder
from langshift.errors import FingerprintError

_Dimension = Annotated[int, msgspec.Meta(ge=1, le=16_000)]

#: The fields that a new index keeps them in.
SPARSE_FIELD: Final = "sparse_embedding"
TOKENS_FIELD: Final = "token_vectors"


class SparseWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of tokens by a learned sparse encoder, kept under ``_meta.langshift_sparse``.

    Attributes:
        key: their key under ``_meta``.
        option: the option of commands that names their encoder.
        what: what messages call them.
        field_type: how the field is mapped.
        encoder: its id, such as ``st:NAME``; weights that came with the data are those of ``given`` or ``given:NAME``.
        revision: version of its weights.
        field: the field with a document's weights, token -> weight.
    """

    key: ClassVar[str] = "langshift_sparse"
    option: ClassVar[str] = "--sparse"
    what: ClassVar[str] = "weights of tokens"
    field_type: ClassVar[str] = "rank_features"
    encoder: str
    revision: str
    field: str = SPARSE_FIELD


class TokenVectors(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of tokens by a late-interaction model, kept under ``_meta.langshift_tokens``.

    Attributes:
        key: their key under ``_meta``.
        option: the option of commands that names their encoder.
        what: what messages call them.
        field_type: how the field is mapped.
        encoder: its id, ``st:NAME``.
        revision: version of its weights.
        dimension: length of a token's vector as it is kept.
        field: the field with a document's vectors, packed, which nothing searches.
    """

    key: ClassVar[str] = "langshift_tokens"
    option: ClassVar[str] = "--tokens"
    what: ClassVar[str] = "vectors of tokens"
    field_type: ClassVar[str] = "binary"
    encoder: str
    revision: str
    dimension: _Dimension
    field: str = TOKENS_FIELD


Kept = SparseWeights | TokenVectors
#: Their keys under ``_meta``.
SPARSE: Final = SparseWeights.key
TOKENS: Final = TokenVectors.key


def sparse_weights(meta: Mapping[str, Any]) -> SparseWeights | None:
    """The weights that an index keeps, by its whole ``_meta``, which has been checked; None where it keeps none."""
    return msgspec.convert(meta[SPARSE], SparseWeights) if SPARSE in meta else None


def token_vectors(meta: Mapping[str, Any]) -> TokenVectors | None:
    """The vectors of tokens that an index keeps, likewise."""
    return msgspec.convert(meta[TOKENS], TokenVectors) if TOKENS in meta else None


def stored_beside(meta: Mapping[str, Any]) -> dict[str, Kept]:
    """All that an index keeps of its texts beside their vectors, by their keys under its ``_meta``."""
    return {one.key: one for one in (sparse_weights(meta), token_vectors(meta)) if one is not None}


def to_metadata(stored: Iterable[Kept]) -> dict[str, Any]:
    """The part of ``_meta`` that says what is kept."""
    return {one.key: msgspec.to_builtins(one) for one in stored}


def in_words(one: Kept) -> str:
    """Such as ``weights of tokens by st:NAME (revision 0c2f)``."""
    revision = f" (revision {one.revision})" if one.revision else ""
    return f"{one.what} by {one.encoder}{revision}"


def is_same(one: Kept | None, other: Kept | None) -> bool:
    """Whether two are by the same model, wherever it lies; or both None."""
    if one is None or other is None:
        return one is other
    identities = ((each.encoder, each.revision) for each in (one, other))
    return same_encoder(*identities) and getattr(one, "dimension", None) == getattr(other, "dimension", None)


def require_same(name: str, there: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse to add documents to an index that keeps other things beside vectors.

    Args:
        name: the index's name.
        there: its whole ``_meta``.
        given: what ``_meta`` would say of the documents.

    Raises:
        FingerprintError: saying what it keeps, and what to do.
    """
    kept, made = stored_beside(there), stored_beside(given)
    for kind in (SparseWeights, TokenVectors):
        mine, theirs = kept.get(kind.key), made.get(kind.key)
        if is_same(mine, theirs):
            continue
        if mine is None:
            assert theirs is not None  # noqa: S101 - else they are the same
            raise FingerprintError(
                f"Index {name} keeps no {kind.what}: add them to all of its documents with `langshift reencode {name} "
                f"{kind.option} {theirs.encoder}`, or leave {kind.option} out."
            )
        instead = f"not {in_words(theirs)}" if theirs else "which these documents would not have"
        raise FingerprintError(
            f"Index {name} keeps {in_words(mine)}, {instead}: leave {kind.option} out to add to it, or change them "
            f"with `langshift reencode {name} {kind.option} {theirs.encoder if theirs else 'off'}`."
        )
