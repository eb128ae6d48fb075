"""Facets: how many of the documents that match the filters have which value of a field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langshift.plugin.metadata import FieldNames
from langshift.retrieval.filters import IndexFilter
from langshift.retrieval.plans import Body, Response, SearchPlan

#: So many values of each field are told.
MOST_VALUES: Final = 10
# Each shard tells so many, so that the most frequent of all are among them.
_OF_SHARD: Final = 1000
# Of chunks so many values are looked at: a value of few long documents has more chunks than one of many short ones.
_OF_CHUNKS: Final = 100
# The server counts so many different documents, and above only about.
_EXACT: Final = 40_000
_DOCUMENTS, _NAMELESS = "documents", "nameless"


@dataclass(frozen=True)
class FacetValue:
    """One value of a field.

    Attributes:
        value: as a filter takes it; of a date or a boolean as the server writes it.
        count: how many documents have it.
    """

    value: str | float
    count: int


@dataclass(frozen=True)
class Facet:
    """The values of one field.

    Attributes:
        values: the most frequent ten, most frequent first.
        other: how often documents have another value.
    """

    values: tuple[FacetValue, ...]
    other: int


def count_values(facets: Mapping[str, str], filters: IndexFilter, fields: FieldNames) -> SearchPlan[dict[str, Facet]]:
    """Count the values of fields over the documents that match the filters; one step, of an index of chunks as well.

    Args:
        facets: name -> field of the index with doc values.
        filters: what is counted must match them.
        fields: the index's names of fields.
    """
    (response,) = yield (_body(facets, filters, fields),)
    return {name: _facet(response, number, fields) for number, name in enumerate(facets)}


def _body(facets: Mapping[str, str], filters: IndexFilter, fields: FieldNames) -> Body:
    key = fields.document_key
    documents = {"cardinality": {"field": key, "precision_threshold": _EXACT}}
    of_chunks = {_DOCUMENTS: documents, _NAMELESS: {"missing": {"field": key}}}
    asked: dict[str, Any] = {}
    # By number: not every name of a field may be an aggregation's.
    for number, field in enumerate(facets.values()):
        if fields.parent is None:
            asked[str(number)] = {"terms": {"field": field, "size": MOST_VALUES, "shard_size": _OF_SHARD}}
            continue
        terms = {"field": field, "size": _OF_CHUNKS, "shard_size": _OF_SHARD, "collect_mode": "breadth_first"}
        inside = {"values": {"terms": terms, "aggs": of_chunks}, **of_chunks}
        asked[str(number)] = {"filter": {"exists": {"field": field}}, "aggs": inside}
    return {"size": 0, "query": {"bool": {"filter": filters.clauses}}, "aggs": asked}


def _facet(response: Response, number: int, fields: FieldNames) -> Facet:
    counted = response["aggregations"][str(number)]
    if fields.parent is None:
        values = [FacetValue(_value(one), one["doc_count"]) for one in counted["buckets"]]
        return Facet(tuple(values), counted["sum_other_doc_count"])
    values = [FacetValue(_value(one), _documents(one)) for one in counted["values"]["buckets"]]
    values = sorted(values, key=lambda one: -one.count)[:MOST_VALUES]
    return Facet(tuple(values), max(0, _documents(counted) - sum(one.count for one in values)))


def _value(bucket: Mapping[str, Any]) -> str | float:
    value: str | float = bucket.get("key_as_string", bucket["key"])
    return value


def _documents(bucket: Mapping[str, Any]) -> int:
    """How many documents the chunks of a bucket are of; one that names no document is one itself."""
    return int(bucket[_DOCUMENTS]["value"]) + int(bucket[_NAMELESS]["doc_count"])
