"""What the queries of an index can be shifted by, kept in the index: whoever searches it needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.kept_vectors import decoded, encoded


@dataclass(frozen=True)
class QueryVectors:
    """The query side of an index, kept in its mapping under ``_meta.langshift_queries``.

    The scales are those of the documents, which the fingerprint holds.

    Attributes:
        recommended: whether measurement recommends to shift queries; None where nobody measured.
        vectors: tag -> V_ℓ of texts encoded as queries, shape (dimension,), float32, where it is not the one that
            documents are shifted by. Indices of earlier langshifts keep all of them here.
    """

    recommended: bool | None
    vectors: Mapping[str, NDArray[np.float32]]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_queries``."""
        return {"recommended": self.recommended, "vectors": encoded(self.vectors)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> QueryVectors:
        """Read what ``to_dict`` made, bit for bit."""
        return cls(stored["recommended"], decoded(stored["vectors"]))
