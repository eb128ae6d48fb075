"""How many documents of an index carry which stamp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opensearchpy import OpenSearch

from langshift.plugin.fields import Fields
from langshift.plugin.shift_index_shift import IndexShift

Query = Mapping[str, Any]


class Stamps(NamedTuple):
    """Documents of an index by their stamps.

    Attributes:
        vectors: documents with a vector.
        without: those of them without a stamp.
        other_vectors: those that were shifted by other language vectors than the index's.
        other_scale: those that were shifted by the index's, and not by its scales.
    """

    vectors: int
    without: int
    other_vectors: int
    other_scale: int


def count_stamps(client: OpenSearch, index: str, shift: IndexShift, fields: Fields) -> Stamps:
    """Count the documents of an index by their stamps.

    Args:
        client: the cluster.
        index: the version.
        shift: how its documents are shifted.
        fields: the names of its fields.
    """
    vector, stamped, agreed = _vector(fields), _stamped(fields), agreeing(shift, fields)
    same = _same_vectors(shift, fields)
    # Nothing was taken from it by whatever vectors, and the pipeline can shift it.
    unmoved = _alpha(fields, 0)
    kinds = {
        "without": {"bool": {"must_not": [stamped]}},
        "other_vectors": {"bool": {"filter": [stamped], "must_not": [same, unmoved]}},
        "other_scale": {"bool": {"filter": [stamped, _any(same, unmoved)], "must_not": [agreed]}},
    }
    body = {
        "size": 0,
        "track_total_hits": True,
        "query": vector,
        "aggs": {name: {"filter": query} for name, query in kinds.items()},
    }
    found = client.search(index=index, body=body)
    counts = {name: int(found["aggregations"][name]["doc_count"]) for name in kinds}
    return Stamps(int(found["hits"]["total"]["value"]), **counts)


def agreeing(shift: IndexShift, fields: Fields) -> Query:
    """Documents with a vector that was shifted as the index's are."""
    languages: dict[float, list[str]] = {}
    for tag in sorted(shift.vectors):
        languages.setdefault(shift.scale(tag), []).append(tag)
    name = f"{fields.stamp}.language"
    moved: list[Query] = [
        {"bool": {"filter": [{"terms": {name: tags}}, _alpha(fields, alpha)]}} for alpha, tags in languages.items()
    ]
    still = {"bool": {"must_not": [{"exists": {"field": name}}], "filter": [_alpha(fields, 0)]}}
    return {"bool": {"filter": [_vector(fields), _same_vectors(shift, fields), _any(still, *moved)]}}


def _any(*queries: Query) -> Query:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}


def _vector(fields: Fields) -> Query:
    return {"exists": {"field": fields.vector}}


def _stamped(fields: Fields) -> Query:
    return {"exists": {"field": f"{fields.stamp}.alpha"}}


def _alpha(fields: Fields, alpha: float) -> Query:
    return {"term": {f"{fields.stamp}.alpha": alpha}}


def _same_vectors(shift: IndexShift, fields: Fields) -> Query:
    name = f"{fields.stamp}.vectors"
    if shift.hash is None:
        return {"bool": {"must_not": [{"exists": {"field": name}}]}}
    return {"term": {name: shift.hash}}
