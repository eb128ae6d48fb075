"""The settings of an index, as the server tells them: numbers and truth values are text there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

_WINDOW = 10_000  # where an index says nothing else


def read(client: OpenSearch, index: str) -> dict[str, Any]:
    """The ``index`` part of an index's settings, nested.

    Args:
        client: the cluster.
        index: the index's own name, no alias.

    Raises:
        NotFoundError: there is no such index.
    """
    settings: dict[str, Any] = client.indices.get_settings(index=index)[index]["settings"]["index"]
    return settings


def is_on(value: object) -> bool:
    """Whether a setting is true; one that is not set is not."""
    return str(value).lower() == "true"


def is_write_blocked(settings: Mapping[str, Any]) -> bool:
    """Whether an index is behind a write block, by the ``index`` part of its settings."""
    return is_on(settings.get("blocks", {}).get("write"))


def window(settings: Mapping[str, Any]) -> int:
    """How many documents one request to an index may ask for, by the ``index`` part of its settings."""
    return int(settings.get("max_result_window", _WINDOW))
