"""The modes, each in a module of its own."""

from collections.abc import Mapping
from typing import Final

from langshift.retrieval.modes import anchored, balanced, dense, hybrid, one_leg
from langshift.retrieval.modes.mode import SearchMode

#: What a setting calls a mode -> the mode; ``auto`` stands for one of these.
MODES: Final[Mapping[str, SearchMode]] = {
    "dense": dense.MODE,
    "lexical": one_leg.LEXICAL,
    "sparse": one_leg.SPARSE,
    "hybrid": hybrid.MODE,
    "balanced": balanced.MODE,
    "anchored": anchored.MODE,
}
