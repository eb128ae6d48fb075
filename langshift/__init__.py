"""langshift: language-fair vector search on OpenSearch.

What is named here is all that is meant for use as a library; see docs/search.md.
"""

import importlib
import logging
from typing import TYPE_CHECKING

from langshift.errors import ClusterError, FingerprintError, LangshiftError, UsageError
from langshift.settings import VERSION

if TYPE_CHECKING:
    from langshift.retrieval.api import open_index, open_index_async, search, search_async
    from langshift.retrieval.found import Anchor, Leg
    from langshift.retrieval.hit import Hit, Other, ShiftEffect
    from langshift.retrieval.requests import Request
    from langshift.retrieval.result import SearchResult
    from langshift.retrieval.service import Index
    from langshift.retrieval.service_async import AsyncIndex
    from langshift.retrieval.wanted import Setting
    from langshift.retrieval.wish import SearchArguments

__version__ = VERSION
__all__ = [
    "Anchor", "AsyncIndex", "ClusterError", "FingerprintError", "Hit", "Index", "LangshiftError", "Leg", "Other",
    "Request", "SearchArguments", "SearchResult", "Setting", "ShiftEffect", "UsageError", "__version__", "open_index",
    "open_index_async", "search", "search_async",
]  # fmt: skip

# Name -> where it is defined: imported when it is first used, for all of it takes a second.
_LAZY = {
    **dict.fromkeys(("Hit", "Other", "ShiftEffect"), "langshift.retrieval.hit"),
    **dict.fromkeys(("open_index", "open_index_async", "search", "search_async"), "langshift.retrieval.api"),
    "Request": "langshift.retrieval.requests",
    "SearchResult": "langshift.retrieval.result",
    "Index": "langshift.retrieval.service",
    "AsyncIndex": "langshift.retrieval.service_async",
    "SearchArguments": "langshift.retrieval.wish",
    **dict.fromkeys(("Anchor", "Leg"), "langshift.retrieval.found"),
    "Setting": "langshift.retrieval.wanted",
}

# As a library should: without a log, Python would print its warnings and errors.
logging.getLogger("langshift").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import what is named when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Name what there is, also what is not imported yet."""
    return sorted({*globals(), *__all__})
