"""Learned sparse encoders: texts in, weights of tokens out, as the model makes them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from langshift.normal_form import of_normal_form

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
