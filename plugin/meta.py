"""What langshift keeps in an index's mapping, under ``_meta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

FINGERPRINT, QUERIES, UNFINISHED = "langshift", "langshift_queries", "langshift_unfinished"


def read(client: OpenSearch, index: str) -> dict[str, Any]:
    """All of it; empty where there is none.

    Raises:
        NotFoundError: there is no such index.
    """
    meta: dict[str, Any] = client.indices.get_mapping(index=index)[index]["mappings"].get("_meta", {})
    return meta


def unfinished(client: OpenSearch, index: str) -> dict[str, Any] | None:
    """What the load that made a version has noted there; None where it is finished, or never was a load's.

    Raises:
        NotFoundError: there is no such index.
    """
    noted = read(client, index).get(UNFINISHED)
    if not noted:
        return None
    # Earlier langshifts noted nothing but ``true``.
    return dict(noted) if isinstance(noted, Mapping) else {}


def note_unfinished(client: OpenSearch, index: str, noted: Mapping[str, Any] | None) -> None:
    """Note what the load of a version must still do there, or with None that nothing is left to do."""
    meta = read(client, index)
    meta.pop(UNFINISHED, None)
    if noted is not None:
        meta[UNFINISHED] = noted or True
    client.indices.put_mapping(index=index, body={"_meta": meta})
