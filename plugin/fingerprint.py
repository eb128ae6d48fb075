"""What made an index: vectors of two different makings must never meet in one index or search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from langshift.errors import FingerprintError

# Recorded, but no reason to refuse: the same vectors come out.
_INFORMATIVE = {"langshift"}


@dataclass(frozen=True)
class Fingerprint:
    """The making of the vectors in an index, kept in its mapping under ``_meta.langshift``.

    Attributes:
        encoder: encoder id, such as ``use-m``.
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
    """

    encoder: str
    revision: str
    query_prefix: str
    document_prefix: str
    dimension: int
    normalised: bool
    pivot: str | None
    alpha: float
    vectors: str | None
    detector: str
    langshift: str
    alphas: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Fingerprint:
        """Read what ``to_dict`` made; fields of later versions are left aside."""
        return cls(**{f.name: stored[f.name] for f in fields(cls) if f.name in stored})

    def differences(self, other: Fingerprint) -> list[tuple[str, Any, Any]]:
        """Name, own value and other value of each field in which the two make different vectors."""
        mine, theirs = self.to_dict(), other.to_dict()
        return [
            (name, mine[name], theirs[name]) for name in mine if name not in _INFORMATIVE and mine[name] != theirs[name]
        ]

    def require_same(self, other: Fingerprint, index: str, remedy: str) -> None:
        """Refuse to mix ``other`` into an index of this fingerprint.

        Raises:
            FingerprintError: naming each field that differs, with both values.
        """
        differing = self.differences(other)
        if differing:
            told = ", ".join(f"{name} {_shown(there)}, not {_shown(here)}" for name, there, here in differing)
            raise FingerprintError(f"Index {index} was made with {told}: {remedy}.")


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) and not value else str(value)
