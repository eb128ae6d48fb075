"""What langshift keeps in an index's mapping, under ``_meta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.plugin import index_settings

FINGERPRINT, VECTORS, QUERIES = "langshift", "langshift_vectors", "langshift_queries"
UNFINISHED, ORIGIN = "langshift_unfinished", "langshift_origin"
ANCHORS = "langshift_anchors"


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
    change(client, index, {UNFINISHED: None if noted is None else noted or True})


def change(client: OpenSearch, index: str, values: Mapping[str, Any]) -> None:
    """Set some of it; None removes."""
    changed = {**read(client, index), **values}
    kept = {name: value for name, value in changed.items() if value is not None}
    client.indices.put_mapping(index=index, body={"_meta": kept})


def uuid_of(client: OpenSearch, index: str) -> str:
    """The server's own id of an index; empty where there is no such index."""
    try:
        found: str = index_settings.read(client, index)["uuid"]
    except NotFoundError:
        return ""
    return found
