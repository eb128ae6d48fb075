"""Learned sparse encoders: texts in, weights of tokens out, as the model makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from langshift.errors import UsageError

#: Token -> weight above 0. Tokens are what the encoder calls them: numbers of its vocabulary, as text.
TokenWeights = Mapping[str, float]

#: The heaviest so many tokens of a text are kept: of a query the server takes 1,024 clauses, and models make some 300.
MOST_TOKENS: Final = 1000


class SparseEncoder(Protocol):
    """What every learned sparse encoder offers. Whatever it reads is in normal form.

    Attributes:
        id: how it is asked for, such as ``st:NAME``. An index keeps it, and a search opens the encoder by it.
        revision: version of the weights, by their content and not their place; two that differ are never mixed.
    """

    id: str
    revision: str

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
    if name == "e5-small":
        from langshift.debias.encoders.e5_small import E5SmallSparse

        return E5SmallSparse()
    raise UsageError(f"Unknown sparse encoder {name!r}.")


def heaviest(weights: TokenWeights) -> TokenWeights:
    """Without weights of 0 or below, and the heaviest ``MOST_TOKENS`` of what is left, heaviest first."""
    above = sorted(((token, weight) for token, weight in weights.items() if weight > 0), key=lambda one: -one[1])
    return dict(above[:MOST_TOKENS])
