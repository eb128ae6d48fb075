"""Learned sparse encoders: texts in, weights of tokens out, as the model makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from langshift.debias.encoders.base import is_given, of_normal_form
from langshift.errors import UsageError

#: Token -> weight above 0. Tokens are what the encoder calls them: numbers of its vocabulary, as text.
TokenWeights = Mapping[str, float]

#: The heaviest so many tokens of a text are kept: of a query the server takes 1,024 clauses, and models make some 300.
MOST_TOKENS: Final = 1000
# The server takes no smaller ones than are normal for float32, and no larger ones than are finite.
_SMALLEST: Final = float(np.finfo(np.float32).smallest_normal)
_LARGEST: Final = float(np.finfo(np.float32).max)
_SHOWN: Final = 40


class SparseEncoder(Protocol):
    """What every learned sparse encoder offers. Whatever it reads is in normal form.

    Attributes:
        id: how it is asked for, such as ``st:NAME``. An index keeps it, and a search opens the encoder by it.
        revision: version of the weights, by their content and not their place; two that differ are never mixed.
    """

    id: str
    revision: str

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - the protocol's
        """Have no encoder, and no caller, forget the normal form."""
        super().__init_subclass__(**options)
        for name in ("encode_documents", "encode_queries"):
            if name in vars(cls):
                setattr(cls, name, of_normal_form(vars(cls)[name]))

    def encode_documents(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of documents; at most ``MOST_TOKENS`` of each, none of them 0 or below."""

    def encode_queries(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of queries, likewise."""


def open_sparse(name: str, *, trust_remote_code: bool = False, named_by: str = "") -> SparseEncoder:
    """Open a learned sparse encoder by its name.

    Args:
        name: ``e5-small`` (its sparse head), ``st:NAME_OR_PATH``, ``http:URL#MODEL``, ``given`` or ``given:NAME``.
        trust_remote_code: run code that comes with a model (``st:`` alone).
        named_by: what names the encoder where no person did, see ``open_encoder``.

    Raises:
        UsageError: there is no sparse encoder of that name, or it cannot be used with what there is; or its server is
            not trusted.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if kind == "st" and rest:
        from langshift.debias.encoders.sparse_models import SentenceTransformersSparse

        return SentenceTransformersSparse(rest, trust_remote_code=trust_remote_code)
    if kind in ("http", "https") and rest:
        from langshift.debias.encoders.sparse_api import HttpSparse

        return HttpSparse(name, named_by)
    if name == "e5-small":
        from langshift.debias.encoders.e5_small import E5SmallSparse

        return E5SmallSparse()
    if is_given(name):
        from langshift.debias.encoders.precomputed import PrecomputedSparse

        return PrecomputedSparse(rest)
    raise UsageError(
        f"Unknown sparse encoder {name!r}; choose e5-small, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (text-embeddings-inference), or given or given:NAME (weights that come with the data)."
    )


def heaviest(weights: TokenWeights) -> TokenWeights:
    """Without weights of 0 or below, or too small for the server, and the heaviest ``MOST_TOKENS`` of what is left.

    Returns:
        Heaviest first.
    """
    above = sorted(
        ((token, weight) for token, weight in weights.items() if weight >= _SMALLEST), key=lambda one: -one[1]
    )
    return dict(above[:MOST_TOKENS])


def parse_weights(value: Any) -> TokenWeights:  # noqa: ANN401 - any JSON value
    """The weights that a document or a query brings with it, of which the heaviest are kept.

    Args:
        value: what its field ``sparse_embedding`` holds: an object, token -> number.

    Raises:
        ValueError: it is something else; the message says so, as a sentence goes on after the field's name.
    """
    if not isinstance(value, Mapping):
        raise _no_weights(f"is {value!r:.{_SHOWN}}")
    for token, weight in value.items():
        if not isinstance(token, str) or not token:
            raise _no_weights(f"has the token {token!r}")
        shown = f"the weight {weight!r:.{_SHOWN}} for {token!r:.{_SHOWN}}"
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise _no_weights(f"has {shown}")
        # Neither NaN nor infinity is below.
        if not abs(weight) <= _LARGEST:
            raise _no_weights(f"has {shown}, which is no finite number of 32 bits")
    return heaviest({token: float(weight) for token, weight in value.items()})


def _no_weights(what: str) -> ValueError:
    return ValueError(f"must be an object of tokens and their weights, but {what}")
