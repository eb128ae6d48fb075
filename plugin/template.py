"""The body of a new index: settings, mappings, and one pair of text fields for each language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from langshift.languages import macrolanguage, primary
from langshift.plugin.fingerprint import Fingerprint

# What langshift itself writes into every document.
RESERVED_FIELDS = ("embedding", "language_confidence", "shift")


@cache
def analyzers() -> dict[str, str]:
    """Primary language tag -> the built-in analyzer of its text fields; others take ``standard``."""
    analyzers: dict[str, str] = _asset("analyzers.json")
    return analyzers


def text_language(tag: str) -> str:
    """Which text fields a document or query of a language goes to, by primary tag.

    Its own where it has an analyzer, else its macrolanguage's (``no`` for ``nn``, ``ar`` for ``arz``), else
    its own with the standard analyzer. This is also what the field ``language`` holds.
    """
    own, wider = primary(tag), macrolanguage(tag)
    return wider if own not in analyzers() and wider is not None and wider in analyzers() else own


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
