"""How an encoder reads texts: prefixes, pooling and tokens, as a person, an index or a file of vectors names them."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, Protocol

from langshift.debias.encoders.prompts import Prefixes
from langshift.errors import UsageError
from langshift.output import note

Pooling = Literal["mean", "cls", "last"]
_OPTIONS: Final = ("query_prefix", "document_prefix", "pooling", "max_tokens")


class Recorded(Protocol):
    """What keeps how its vectors were made: a fingerprint, or language vectors."""

    @property
    def query_prefix(self) -> str:
        """Text before queries."""

    @property
    def document_prefix(self) -> str:
        """Text before documents."""

    @property
    def pooling(self) -> Pooling | None:
        """Where it is not the model's own."""

    @property
    def max_tokens(self) -> int | None:
        """Where it is not the usual number."""


@dataclass(frozen=True)
class Reading:
    """How texts are to be read; None leaves each to what is known of the model.

    Attributes:
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        pooling: what of the tokens' vectors becomes the text's: their mean, or the first or the last one (``st:``).
        max_tokens: how many tokens of a text are read (``st:``).
        recorded: whether an index or a file says so: then nothing is assumed that a person must be told of.
    """

    query_prefix: str | None = None
    document_prefix: str | None = None
    pooling: Pooling | None = None
    max_tokens: int | None = None
    recorded: bool = False

    @classmethod
    def take(cls, values: MutableMapping[str, Any]) -> Reading:
        """Take out of options' values what they say of it."""
        return cls(**{name: values.pop(name) for name in _OPTIONS})

    def of(self, made: Recorded, encoder: str) -> Reading:
        """Return it as vectors were made, as far as nothing else is asked for.

        Args:
            made: what says how.
            encoder: the encoder's name; only models that are not langshift's own can be read in several ways.
        """
        if encoder.partition(":")[0] not in ("st", "http", "https"):
            return self
        mine = {name: getattr(self, name) for name in _OPTIONS}
        return Reading(**{n: getattr(made, n) if one is None else one for n, one in mine.items()}, recorded=True)

    def prefixes(self, known: Prefixes | None, encoder: str) -> Prefixes:
        """Return the prefixes to use, and say so where none are known.

        Args:
            known: what is known of the model.
            encoder: its name, for the message.
        """
        given = (self.query_prefix, self.document_prefix)
        if known is None and given == (None, None):
            note_once(f"There is no prefix known for {encoder}: none is used (--query-prefix, --document-prefix).")
        return Prefixes(*(own if own is not None else of for own, of in zip(given, known or ("", ""), strict=True)))

    def require_only(self, allowed: tuple[str, ...], encoder: str, reason: str) -> None:
        """Refuse what an encoder cannot be told.

        Args:
            allowed: attributes that it can be told.
            encoder: its name.
            reason: why it can be told no others.

        Raises:
            UsageError: naming the options.
        """
        refused = [name for name in _OPTIONS if name not in allowed and getattr(self, name) is not None]
        if given := [f"--{name.replace('_', '-')}" for name in refused]:
            raise UsageError(f"The encoder {encoder} takes no {' or '.join(given)}: {reason}. Leave it out.")


@cache
def note_once(sentence: str) -> None:
    """Say what was assumed of a model, however often it is opened."""
    note(sentence)


#: As the model has it.
AS_KNOWN = Reading()
