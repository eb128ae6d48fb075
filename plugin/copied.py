"""The body of an index that is to be like another one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from opensearchpy import OpenSearch

from langshift.plugin import meta

# What the server sets itself, or what says how the other index came to be; a block is no property of its documents.
_OF_ONE_INDEX = (
    "uuid",
    "creation_date",
    "provided_name",
    "version",
    "blocks",
    "resize",
    "history",
    "shrink",
    "verified_before_close",
    "remote_store",
    "routing.allocation.initial_recovery",
)


def copied_body(client: OpenSearch, index: str) -> dict[str, Any]:
    """The body of ``PUT /index`` for an index with the mappings, ``_meta`` and settings of another.

    Settings that a load or a transfer has changed for its own time are as they were before. What ``_meta`` says of
    the making of that one version (where it came from, what is unfinished) is left out.

    Args:
        client: the cluster.
        index: the other index, or an alias of it alone.

    Raises:
        NotFoundError: there is no such index.
    """
    ((_, found),) = client.indices.get(index=index).items()
    settings: dict[str, Any] = deepcopy(found["settings"]["index"])
    mappings: dict[str, Any] = deepcopy(found["mappings"])
    kept = mappings.setdefault("_meta", {})
    kept.pop(meta.ORIGIN, None)
    unfinished = kept.pop(meta.UNFINISHED, None)
    for name in _OF_ONE_INDEX:
        _remove(settings, name)
    restored = unfinished.get("restore", {}) if isinstance(unfinished, dict) else {}
    settings.update(restored)
    return {
        "settings": {"index": {name: value for name, value in settings.items() if value is not None}},
        "mappings": mappings,
    }


def _remove(settings: dict[str, Any], name: str) -> None:
    head, _, rest = name.partition(".")
    if not rest:
        settings.pop(head, None)
    elif isinstance(settings.get(head), dict):
        _remove(settings[head], rest)
        if not settings[head]:
            del settings[head]
