"""Opening the encoder of a live index: the one that made it, wherever it is now."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from langshift.debias.encoders import Brought, Encoder, identity, is_given, open_encoder
from langshift.plugin.query_shift import ShiftQueries
from langshift.plugin.versions import LiveIndex


class SearchOptions(NamedTuple):
    """How an index is opened for searching.

    Attributes:
        encoder: where the index's encoder is now; None for where it was when the index was made.
        trust_remote_code: whether to run code that comes with a model.
        shift_queries: whether queries are shifted as the documents are.
    """

    encoder: str | None = None
    trust_remote_code: bool = False
    shift_queries: ShiftQueries = "auto"


USUAL = SearchOptions()
# Two threads that open an encoder at once would load it twice.
_OPENING = Lock()


def open_encoder_of(index: LiveIndex, options: SearchOptions, opened: dict[str, Encoder]) -> Encoder:
    """The encoder that made an index.

    Args:
        index: the index.
        options: where the encoder is.
        opened: encoders by name that are open already; this one is added.

    Raises:
        UsageError: there is no such encoder.
        FingerprintError: the encoder is not the one that made the index.
    """
    made = index.fingerprint
    name = options.encoder or made.encoder
    with _OPENING:
        # Vectors that came with one index say nothing of those of another.
        encoder = None if is_given(name) else opened.get(name)
        if encoder is None:
            brought = Brought(made.dimension, made.normalised)
            encoder = opened[name] = open_encoder(name, trust_remote_code=options.trust_remote_code, brought=brought)
    installed = replace(made, **identity(encoder))
    made.require_same(installed, index.name, "search with the same encoder, or index the corpus again")
    return encoder
