"""What made an index: vectors of two different makings must never meet in one index or search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final

import msgspec

from langshift.debias.encoders.base import MOST_TOKENS, Pooling
from langshift.errors import FingerprintError
from langshift.wording import join_words


def scales_in_words(alpha: float, alphas: Mapping[str, float], gamma: float, own: float = 0.0) -> str:
    """``alpha 0.6 (th 0.3), gamma 0.7, own 0.02``; all but alpha only where there is any."""
    single = ", ".join(f"{tag} {scale:g}" for tag, scale in sorted(alphas.items()))
    others = "".join(f", {name} {scale:g}" for name, scale in (("gamma", gamma), ("own", own)) if scale)
    return f"alpha {alpha:g}{f' ({single})' if single else ''}{others}"


_Scale = Annotated[float, msgspec.Meta(ge=0, le=1)]
# What a field of vectors may have on the server.
_Dimension = Annotated[int, msgspec.Meta(ge=1, le=16_000)]
_Tokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]


#: Of `_meta`; what cannot be read as before gives it another number.
FORMAT: Final = 1


@dataclass(frozen=True)
class Fingerprint:
    """The making of the vectors in an index, kept in its mapping under ``_meta.langshift``.

    Attributes:
        encoder: encoder id, such as ``e5-small``.
        revision: version of the encoder's weights.
        query_prefix: text that the encoder wants before a query.
        document_prefix: text that the encoder wants before a document.
        dimension: length of a vector.
        normalised: whether the encoder's own vectors have norm 1.
        pivot: pivot language, towards which documents were shifted; None without language vectors.
        alpha: scale of the shift, 0 to 1.
        alphas: scales of single languages that differ from ``alpha``.
        vectors: hash of the language vectors; None without.
        detector: id of the language detector.
        langshift: version that made the index.
        gamma: how much of what all queries have in common was taken out of documents, see ``CommonStep``.
        languages: those that detection is limited to; empty for all.
        pooling: how the encoder pooled tokens, ``mean``, ``cls`` or ``last``, where that was not the model's own way.
        max_tokens: how many tokens of a text it read, where that was not the usual number.
        own: β, how much nearer documents were moved to queries in their own language, in units of cosine.
        own_vectors: hash of the preference vectors that did it; None without β.
        format: of all that langshift keeps in ``_meta``, which other versions and the plugin read.
    """

    encoder: str
    revision: str
    query_prefix: str
    document_prefix: str
    dimension: _Dimension
    normalised: bool
    pivot: str | None
    alpha: _Scale
    vectors: str | None
    detector: str
    langshift: str
    alphas: Mapping[str, _Scale] = field(default_factory=dict)
    gamma: _Scale = 0.0
    languages: list[str] = field(default_factory=list)
    pooling: Pooling | None = None
    max_tokens: _Tokens | None = None
    own: _Scale = 0.0
    own_vectors: str | None = None
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Fingerprint:
        """Read what ``to_dict`` made; fields of other versions are left aside.

        Raises:
            msgspec.ValidationError: it is something else.
        """
        return msgspec.convert(stored, cls)

    @property
    def scales(self) -> str:
        """How much documents were moved, see ``scales_in_words``."""
        return scales_in_words(self.alpha, self.alphas, self.gamma, self.own)

    @property
    def moves(self) -> bool:
        """Whether any document is moved."""
        return self.vectors is not None and bool(self.alpha or self.gamma or self.own or any(self.alphas.values()))

    def differences(self, other: Fingerprint) -> list[tuple[str, Any, Any]]:
        """Name, own value and other value of each field in which the two make different vectors."""
        mine, theirs = self.to_dict(), other.to_dict()
        # Recorded, but no reason to refuse: the same vectors come out.
        same = {"langshift", "languages", "format"}
        if same_encoder((self.encoder, self.revision), (other.encoder, other.revision)):
            same.add("encoder")
        return [(name, mine[name], theirs[name]) for name in mine if name not in same and mine[name] != theirs[name]]

    def require_same(self, other: Fingerprint, index: str, remedy: str) -> None:
        """Refuse to mix ``other`` into an index of this fingerprint.

        Raises:
            FingerprintError: naming each field that differs, with both values.
        """
        if differing := self.differences(other):
            parts = [f"{name} {shown_value(there)}, not {shown_value(here)}" for name, there, here in differing]
            raise FingerprintError(f"Index {index} was built with {', '.join(parts)}: {remedy}.")


def same_encoder(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two encoders, each an id and a revision, give the same vectors.

    The same weights may lie in another folder (``st:…``), and a server may move (``http:…``): where the kind
    of encoder and the revision are the same, the place makes no difference.
    """
    (mine, my_revision), (theirs, their_revision) = one, other
    return my_revision == their_revision and mine.partition(":")[0] == theirs.partition(":")[0]


def shown_value(value: object) -> str:
    """How messages show what differs."""
    if isinstance(value, list):
        return join_words(value)
    return "none" if value is None else str(value) or "''"
