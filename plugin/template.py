"""The body of a new index: settings, mappings, and one pair of text fields for each language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from langshift.debias.fingerprint import Fingerprint
from langshift.languages import analyzers

# What langshift itself writes into every document.
RESERVED_FIELDS = ("embedding", "language_confidence", "shift")


def index_body(fingerprint: Fingerprint, kept: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The body of ``PUT /index`` for an index that holds vectors of this fingerprint.

    Args:
        fingerprint: what makes the vectors.
        kept: what else ``_meta`` holds.
    """
    body: dict[str, Any] = _asset("index.json")
    mappings = body["mappings"]
    mappings["_meta"] = {"langshift": fingerprint.to_dict(), **kept}
    properties = mappings["properties"]
    properties["embedding"]["dimension"] = fingerprint.dimension
    for field in ("title", "text"):
        for language, analyzer in analyzers().items():
            properties[field]["properties"][language] = {"type": "text", "analyzer": analyzer}
    return body


@cache
def own_mappings() -> dict[str, Any]:
    """The mappings of every index, without what differs between indices; not to be changed."""
    mappings: dict[str, Any] = _asset("index.json")["mappings"]
    return mappings


def _asset(name: str) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
