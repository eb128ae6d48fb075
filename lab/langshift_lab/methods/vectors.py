"""Language vectors beside what the other methods move by, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from langshift.debias.vectors import LanguageVectors, Vectors
from langshift.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class MethodVectors(LanguageVectors):
    """Language vectors, and what was fitted for the methods that change nothing in an index.

    Attributes:
        means: tag -> mean embedding μ_ℓ, the pivot's included, shape (dimension,), float32; may be empty.
        directions: tag -> principal directions (``lir``), shape (rank, dimension), float32; may be empty.
        maps: tag -> W_ℓ (``affine``), shape (dimension, dimension), float32; may be empty.
    """

    parts: ClassVar[Mapping[str, str]] = {
        **LanguageVectors.parts,
        "means": "mean",
        "directions": "lir",
        "maps": "affine",
    }

    means: Vectors = field(default_factory=dict)
    directions: Vectors = field(default_factory=dict)
    maps: Vectors = field(default_factory=dict)

    def shape_of(self, name: str, tensor: NDArray[np.float32]) -> tuple[int, ...]:
        """The shape that a tensor of one of the ``parts`` must have."""
        several = {"maps": (self.dimension, self.dimension), "directions": (*tensor.shape[:1], self.dimension)}
        return several.get(name, (self.dimension,))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a language-vector file with all that it holds.

        Raises:
            UsageError: there is no such file, or it is not one of ours, or damaged.
        """
        loaded = super().load(path)
        if set(loaded.maps) - set(loaded.means):
            raise UsageError(
                f"{path} has a map for a language without its mean embedding; create one with "
                "`langshift vectors methods`."
            )
        return loaded
