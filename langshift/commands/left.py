"""What still stands for a version that takes no writes any more."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift import console


def note_aliases_left(client: OpenSearch, index: str) -> None:
    """Name the aliases of a version that a retune or a rollback has left behind a write block."""
    # Somebody may have dropped it since.
    found = client.indices.get_alias(index=index, params={"ignore": 404}).get(index, {})
    for alias in sorted(found.get("aliases", {})):
        console.note(f"The alias {alias} still stands for {index}, which takes no writes any more: move it, too.")
