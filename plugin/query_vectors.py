"""What the queries of an index can be shifted by, kept in the index: whoever searches it needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class QueryVectors:
    """The query side of a shifted index, kept in its mapping under ``_meta.langshift_queries``.

    The scales are those of the documents, which the fingerprint holds.

    Attributes:
        recommended: whether measurement recommends to shift queries; None where nobody measured.
        vectors: tag -> V_ℓ of texts encoded as queries, shape (dimension,), float32.
    """

    recommended: bool | None
    vectors: Mapping[str, NDArray[np.float32]]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_queries``: vectors as base64 of little-endian float32."""
        vectors = {tag: base64.b64encode(vector.astype("<f4").tobytes()) for tag, vector in self.vectors.items()}
        return {
            "recommended": self.recommended,
            "vectors": {tag: encoded.decode("ascii") for tag, encoded in vectors.items()},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> QueryVectors:
        """Read what ``to_dict`` made, bit for bit."""
        vectors = {tag: np.frombuffer(base64.b64decode(text), "<f4") for tag, text in stored["vectors"].items()}
        return cls(stored["recommended"], {tag: vector.astype(np.float32) for tag, vector in vectors.items()})
