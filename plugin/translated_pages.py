"""How far an index, or a corpus, is translated: what tells how often readers find an answer in their own language."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from opensearchpy import OpenSearch

from langshift.plugin import metadata
from langshift.plugin.metadata import FieldNames
from langshift.wording import pluralize

# Up to so many pages are counted exactly, or nearly so.
_EXACT = 40_000
_LANGUAGES = 1000


class TranslatedPages(NamedTuple):
    """In how many of its languages an index has its pages.

    Attributes:
        pages: translation groups, and documents without one.
        per_page: in how many languages a page is there, on average.
        languages: how many languages the index has, by the shares of its documents: ``1 / Σ p²``.
        field: what a search collapses by to show each page once; empty for a corpus.
    """

    pages: int
    per_page: float
    languages: float
    field: str = ""

    @classmethod
    def of(cls, pages: float, per_language: Collection[float], field: str = "") -> TranslatedPages | None:
        """Of the pages, and how many of them there are in each language; None where none is in two."""
        held = sum(per_language)
        if held <= pages:
            return None
        return cls(round(pages), held / pages, held**2 / sum(one**2 for one in per_language), field)

    @property
    def share(self) -> float:
        """0 where nothing is translated, 1 where each page is there in every language."""
        return min((self.per_page - 1) / (self.languages - 1), 1.0) if self.languages > 1 else 0.0

    @property
    def in_words(self) -> str:
        """Such as ``240 pages, on average in 7.9 of 8.0 languages``."""
        languages = max(self.languages, self.per_page)
        return f"{pluralize(self.pages, 'page')}, on average in {self.per_page:.1f} of {languages:.1f} languages"


def noted_translations(client: OpenSearch, index: str, fields: FieldNames) -> TranslatedPages | None:
    """As ``translations_of``, and the version keeps how far it is translated."""
    found, meta = translations_of(client, index, fields), metadata.read_metadata(client, index)
    share = None if found is None else round(found.share, 2)
    if share != meta.get(metadata.TRANSLATED):
        metadata.change(client, index, {metadata.TRANSLATED: share})
    return found


def translations_of(client: OpenSearch, index: str, fields: FieldNames) -> TranslatedPages | None:
    """Count them by the pages that documents' stamps name; one search.

    Args:
        client: the cluster.
        index: a version.
        fields: the names of its fields.

    Returns:
        None where no page is there in several languages, or documents name no page.
    """
    pages = {"cardinality": {"field": fields.page, "precision_threshold": _EXACT}}
    languages = {"terms": {"field": fields.language, "size": _LANGUAGES}, "aggs": {"pages": pages}}
    body: dict[str, Any] = {"size": 0, "query": {"exists": {"field": fields.page}}}
    found = client.search(index=index, body={**body, "aggs": {"pages": pages, "languages": languages}})["aggregations"]
    each = [one["pages"]["value"] for one in found["languages"]["buckets"]]
    return TranslatedPages.of(found["pages"]["value"], each, fields.page)
