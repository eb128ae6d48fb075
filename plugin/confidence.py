"""How sure the detector was of the documents' languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import Fields

BINS: Final = 10
LOW, FAIR = 0.5, 0.8
_LANGUAGES: Final = 1000


class Sureness(NamedTuple):
    """How sure the detector was of one language.

    Attributes:
        documents: of the language that tell it.
        mean: of the confidence, 0 to 1.
        low: share of these documents below 0.5.
        fair: share of these documents below 0.8.
    """

    documents: int
    mean: float
    low: float
    fair: float


class Confidence(NamedTuple):
    """The detector's confidence over an index; 1 where a document named its language.

    Attributes:
        documents: how many tell it.
        bins: documents by confidence, in tenths: the first is 0 to below 0.1, the last 0.9 to 1.
        languages: tag -> how sure, without languages of which no document tells it.
    """

    documents: int
    bins: Sequence[int]
    languages: Mapping[str, Sureness]


def confidence(client: OpenSearch, index: str, fields: Fields) -> Confidence:
    """The confidence that the documents of a version carry; one search.

    Args:
        client: the cluster.
        index: the version.
        fields: the names of its fields.
    """
    found = client.search(index=index, body=body(fields))["aggregations"]
    languages = {one["key"]: sure for one in found["languages"]["buckets"] if (sure := _sureness(one)) is not None}
    bins = [int(found["bins"]["buckets"][str(number)]["doc_count"]) for number in range(BINS)]
    return Confidence(int(found["documents"]["doc_count"]), bins, languages)


def body(fields: Fields) -> dict[str, Any]:
    """The request for it."""
    told, field = {"exists": {"field": fields.confidence}}, fields.confidence
    by_language = {"field": fields.language, "missing": UNDETERMINED, "size": _LANGUAGES}
    return {
        "size": 0,
        "aggs": {
            "documents": {"filter": told},
            "bins": {"filters": {"filters": {str(number): _bin(field, number) for number in range(BINS)}}},
            "languages": {
                "terms": by_language,
                "aggs": {
                    "told": {"filter": told},
                    "mean": {"avg": {"field": field}},
                    "low": {"filter": {"range": {field: {"lt": LOW}}}},
                    "fair": {"filter": {"range": {field: {"lt": FAIR}}}},
                },
            },
        },
    }


def _bin(field: str, number: int) -> dict[str, Any]:
    # As queries, so that the limits are rounded as the field's own values are: 0.9 of 32 bits is below that of 64.
    limits = {"gte": number / BINS} if number else {}
    if number < BINS - 1:
        limits["lt"] = (number + 1) / BINS
    return {"range": {field: limits}}


def _sureness(bucket: Mapping[str, Any]) -> Sureness | None:
    documents = int(bucket["told"]["doc_count"])
    if not documents:
        return None
    return Sureness(
        documents,
        min(1.0, float(bucket["mean"]["value"])),
        int(bucket["low"]["doc_count"]) / documents,
        int(bucket["fair"]["doc_count"]) / documents,
    )
