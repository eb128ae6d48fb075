"""The shift of one index: language vectors and scales, as the cluster's own script is given them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langcodes.data_dicts import MACROLANGUAGES
from numpy.typing import NDArray

from langshift.debias.fingerprint import Fingerprint
from langshift.languages import UNDETERMINED, macrolanguage, primary
from langshift.plugin.kept_vectors import decoded, encoded
from langshift.plugin.meta import FINGERPRINT, VECTORS


@dataclass(frozen=True)
class IndexShift:
    """How the documents of an index are shifted: ``z̃ = z − α_ℓ V_ℓ``.

    Attributes:
        hash: names the language vectors; None where there are none, and nothing moves.
        pivot: the pivot language; None without language vectors.
        vectors: tag -> V_ℓ of documents, shape (dimension,), float32.
        alpha: scale of all languages.
        alphas: scales of single languages, by the tag of their vector, that differ from ``alpha``.
    """

    hash: str | None = None
    pivot: str | None = None
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    alpha: float = 0.0
    alphas: Mapping[str, float] = field(default_factory=dict)

    def key(self, language: str) -> str | None:
        """Which vector a document of this language takes: its own, its primary tag's, or its macrolanguage's.

        None for ``und``, the pivot language and languages without a vector: those are not shifted.
        """
        if language == UNDETERMINED:
            return None
        for tag in (language, primary(language), macrolanguage(language)):
            if tag is not None and tag == self.pivot:
                return None
            if tag in self.vectors:
                return tag
        return None

    @property
    def keys(self) -> dict[str, str]:
        """What ``key`` says, for a script that knows no macrolanguages.

        A document's tag is looked up in lower case, then its primary tag: the value is the vector's tag, or empty for
        what is not shifted.
        """
        if self.pivot is None:
            return {}
        members = {tag: self.key(tag) or "" for tag, wider in MACROLANGUAGES.items() if self._knows(wider)}
        own = {tag: tag for tag in self.vectors if tag != UNDETERMINED}
        return {tag.lower(): key for tag, key in {**members, **own, self.pivot: ""}.items()}

    def scale(self, key: str) -> float:
        """The scale of one language, by the tag of its vector."""
        return self.alphas.get(key, self.alpha)

    def _knows(self, tag: str) -> bool:
        return tag in self.vectors or tag == self.pivot

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_vectors``; the scales and the pivot are in the fingerprint."""
        return {"hash": self.hash, "vectors": encoded(self.vectors)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> IndexShift | None:
        """The shift of an index by its whole ``_meta``; None where that does not hold the vectors that it names."""
        made = Fingerprint.from_dict(meta[FINGERPRINT])
        if made.vectors is None:
            return cls()
        kept = meta.get(VECTORS)
        return cls.of(made, decoded(kept["vectors"])) if kept and kept["hash"] == made.vectors else None

    @classmethod
    def of(cls, made: Fingerprint, vectors: Mapping[str, NDArray[np.float32]]) -> IndexShift:
        """The shift of an index of this fingerprint, by its vectors."""
        return cls(made.vectors, made.pivot, vectors, made.alpha, made.alphas)
