"""What a search is asked to do: the question, and the setting that any question can be asked in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from langshift.languages import UNDETERMINED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Mode = Literal["dense", "lexical", "hybrid", "balanced", "anchored"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
Fusion = Literal["min-max", "rrf"]
FUSIONS: Final[tuple[Fusion, ...]] = get_args(Fusion)

Filters = Mapping[str, Sequence[str]]
NO_FILTERS: Filters = {}


class Question(NamedTuple):
    """One query.

    Attributes:
        words: as the searcher wrote them.
        language: primary language tag, ``und`` where unknown.
        vector: the vector to search with, shape (dimension,), float32; None where the setting needs none.
    """

    words: str
    language: str = UNDETERMINED
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Setting:
    """How to search.

    Attributes:
        mode: ``dense``, ``lexical``, ``hybrid``, ``balanced`` or ``anchored``.
        preference: the language preference beta, in units of cosine: what a document in the searcher's language
            is given more than others. Below 0 the others are given more (``--spread``).
        fusion: how ``hybrid`` puts its two legs together.
        lexical_weight: the share of the words in ``hybrid``, 0 to 1; that of the vectors is the rest.
        one_per_group: whether of a translation group one document is shown, the one in the searcher's language
            where there is one, with the others inside it.
    """

    mode: Mode = "dense"
    preference: float = 0.0
    fusion: Fusion = "min-max"
    lexical_weight: float = 0.3
    one_per_group: bool = False

    @property
    def needs_vector(self) -> bool:
        """Whether the question's vector is needed: in all modes but lexical without a preference."""
        return self.mode != "lexical" or self.preference != 0


USUAL: Final = Setting()
