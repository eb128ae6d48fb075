"""langshift: language-fair vector search on OpenSearch.

What is named here is all that is meant for use as a library; see docs/search.md.
"""

import importlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from langshift.errors import ClusterError, FingerprintError, LangshiftError, UsageError
from langshift.settings import VERSION as __version__

if TYPE_CHECKING:
    from langshift.plugin.metadata import ChunkPlace
    from langshift.retrieval.hits import Anchor, Leg
    from langshift.retrieval.plans import HttpRequest
    from langshift.retrieval.request import SearchArguments, SearchSettings
    from langshift.retrieval.result import Hit, Other, Passage, SearchResult, ShiftEffect
    from langshift.retrieval.service import AsyncIndex, Index, open_index, open_index_async, search, search_async


# In a clone the other rooms stand beside this folder; where langshift is installed, they are in it.
_HERE = Path(__file__).parent
if not (_HERE / "plugin").is_dir():
    __path__.append(str(_HERE.parent))

__all__ = [
    "Anchor", "AsyncIndex", "ChunkPlace", "ClusterError", "FingerprintError", "Hit", "HttpRequest", "Index",
    "LangshiftError", "Leg", "Other", "Passage", "SearchArguments", "SearchResult", "SearchSettings", "ShiftEffect",
    "UsageError", "__version__", "open_index", "open_index_async", "search", "search_async",
]  # fmt: skip

# Module -> what is imported from it when that is first used, for all of it takes a second.
_LAZY = {
    "hits": ("Anchor", "ChunkPlace", "Leg"),
    "result": ("Hit", "Other", "Passage", "SearchResult", "ShiftEffect"),
    "service": ("AsyncIndex", "Index", "open_index", "open_index_async", "search", "search_async"),
    "request": ("SearchArguments", "SearchSettings"),
    "plans": ("HttpRequest",),
}

# As a library should: without a log, Python would print its warnings and errors.
logging.getLogger("langshift").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import what is named when it is first used."""
    for module, names in _LAZY.items():
        if name in names:
            found: object = getattr(importlib.import_module(f"langshift.retrieval.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is, also what is not imported yet."""
    return sorted({*globals(), *__all__})
