"""What is made of texts beside their vectors, each in a field of its own: weights of tokens, and vectors of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Lock
from typing import Any, Final

import numpy as np
from msgspec import structs

from langshift.debias.encoders import open_sparse
from langshift.debias.encoders.base import is_given
from langshift.errors import FingerprintError
from langshift.plugin.representations import Kept, SparseWeights, TokenVectors, in_words, is_same

#: In place of an encoder's name: none.
OFF: Final = "off"


@dataclass(frozen=True)
class Representation:
    """One of them, and what makes it.

    Attributes:
        kept: its encoder and its field, as an index keeps them.
        encode: texts -> the value of each, as JSON has it; an empty one where there is nothing to keep.
    """

    kept: Kept
    encode: Callable[[Sequence[str]], Sequence[Any]]
    _lock: Lock = field(default_factory=Lock, compare=False, repr=False)

    @property
    def is_given(self) -> bool:
        """Whether documents bring it, and no text is encoded."""
        return is_given(self.kept.encoder)

    def at(self, field_name: str) -> Representation:
        """The same, kept in another field."""
        return replace(self, kept=structs.replace(self.kept, field=field_name))

    def of(self, texts: Sequence[str]) -> list[Any]:
        """The value of each text, as JSON has it; None where there is none, as of an empty text.

        Raises:
            LangshiftError: the encoder cannot be opened, or fails.
        """
        made: list[Any] = [None] * len(texts)
        if rows := [row for row, text in enumerate(texts) if text]:
            # Updates are encoded in threads of their own, and an encoder is no matter of two at once.
            with self._lock:
                values = self.encode([texts[row] for row in rows])
            for row, value in zip(rows, values, strict=True):
                made[row] = value or None
        return made

    def difference(self, stored: Any, made: Any) -> float:  # noqa: ANN401 - any JSON
        """How far a stored value is from one that was made; infinite where one alone is there. Both may be None.

        Of weights it is the norm of what differs, in lengths of those that were made. Of vectors of tokens it is the
        mean squared distance from each to the nearest of the others: which tokens are merged may differ.
        """
        if stored is None or made is None:
            return 0.0 if stored is made else math.inf
        if isinstance(made, Mapping):
            tokens = list(dict.fromkeys([*stored, *made]))
            here, there = (np.array([float(each.get(token, 0.0)) for token in tokens]) for each in (stored, made))
            return float(np.linalg.norm(here - there) / np.linalg.norm(there))
        from langshift.debias.encoders.token_vectors import unpack

        try:
            nearness = unpack(stored) @ unpack(made).T
        except ValueError:
            return math.inf
        return float(2 - nearness.max(axis=0).mean() - nearness.max(axis=1).mean())


def open_representation(kind: type[Kept], name: str, *, named_by: str = "") -> Representation:
    """Open what makes one of them.

    Args:
        kind: which.
        name: its encoder, as ``open_sparse`` or ``open_token_encoder`` takes it.
        named_by: what names the encoder where no person did, see ``open_encoder``.

    Raises:
        UsageError: there is no such encoder, or it cannot be used with what there is.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    if kind is SparseWeights:
        sparse = open_sparse(name, named_by=named_by)
        weights = SparseWeights(encoder=sparse.id, revision=sparse.revision)
        return Representation(weights, lambda texts: [dict(one) for one in sparse.encode_documents(texts)])
    from langshift.debias.encoders.token_vectors import open_token_encoder, pack

    tokens = open_token_encoder(name)
    vectors = TokenVectors(encoder=tokens.id, revision=tokens.revision, dimension=tokens.dimension)
    return Representation(vectors, lambda texts: [len(one) and pack(one) for one in tokens.encode_documents(texts)])


def representation_of(stored: Kept, name: str | None = None, *, named_by: str = "") -> Representation:
    """The one that an index keeps; its encoder is opened when the first text is to be encoded.

    Args:
        stored: how it was made, and where it stands.
        name: where its encoder is now; None for where it was.
        named_by: what names the encoder where no person did.
    """

    @cache
    def opened() -> Representation:
        made = open_representation(type(stored), name or stored.encoder, named_by=named_by)
        if not is_same(stored, made.kept):
            raise FingerprintError(
                f"The index keeps {in_words(stored)}, not {in_words(made.kept)}: make the same encoder available again."
            )
        return made

    return Representation(stored, lambda texts: opened().encode(texts))
