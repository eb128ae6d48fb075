"""langshift: language-fair vector search on OpenSearch.

What is named here is all that is meant for use as a library; see docs/search.md.
"""

import importlib
import logging
from typing import TYPE_CHECKING

from langshift.errors import ClusterError, FingerprintError, LangshiftError, UsageError
from langshift.settings import VERSION

if TYPE_CHECKING:
    from langshift.ingest.hit import Hit, Other, ShiftEffect
    from langshift.ingest.searching.api import open_index, open_index_async, search, search_async
    from langshift.ingest.searching.requests import Request
    from langshift.ingest.searching.result import SearchResult
    from langshift.ingest.searching.service import Index
    from langshift.ingest.searching.service_async import AsyncIndex
    from langshift.ingest.searching.wish import SearchArguments
    from langshift.plugin.search.found import Anchor, Leg
    from langshift.plugin.search.wanted import Setting

__version__ = VERSION
__all__ = [
    "Anchor", "AsyncIndex", "ClusterError", "FingerprintError", "Hit", "Index", "LangshiftError", "Leg", "Other",
    "Request", "SearchArguments", "SearchResult", "Setting", "ShiftEffect", "UsageError", "__version__", "open_index",
    "open_index_async", "search", "search_async",
]  # fmt: skip

# Name -> where it is defined: imported when it is first used, for all of it takes a second.
_LAZY = {
    **dict.fromkeys(("Hit", "Other", "ShiftEffect"), "langshift.ingest.hit"),
    **dict.fromkeys(("open_index", "open_index_async", "search", "search_async"), "langshift.ingest.searching.api"),
    "Request": "langshift.ingest.searching.requests",
    "SearchResult": "langshift.ingest.searching.result",
    "Index": "langshift.ingest.searching.service",
    "AsyncIndex": "langshift.ingest.searching.service_async",
    "SearchArguments": "langshift.ingest.searching.wish",
    **dict.fromkeys(("Anchor", "Leg"), "langshift.plugin.search.found"),
    "Setting": "langshift.plugin.search.wanted",
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
