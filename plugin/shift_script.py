"""The stored script that shifts documents inside the cluster, its parameters, and the stamps that it writes."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.languages import folds, tag_tables
from langshift.plugin.index_body import asset
from langshift.plugin.metadata import FieldNames, encoded
from langshift.plugin.stored_shift import StoredShift

# The fields that the script reads or writes.
_NAMED = ("vector", "language", "confidence", "stamp", "told", "group", "parent")
# What the ids of the script begin with, of whatever langshift.
PREFIX = "langshift-shift-"


def source() -> str:
    """The script, in Painless."""
    return asset("shift.painless")


def script_id() -> str:
    """The id under which the cluster stores the script; another source has another."""
    return f"{PREFIX}{hashlib.sha256(source().encode()).hexdigest()[:8]}"


def is_stored(client: OpenSearch) -> bool:
    """Whether the cluster has the script, as it must be."""
    try:
        there = client.get_script(id=script_id())["script"]
    except NotFoundError:
        return False
    return all(there.get(name) == value for name, value in _stored().items())


def install(client: OpenSearch) -> str:
    """Store the script where it is not stored yet; gives its id.

    Raises:
        TransportError: the cluster refuses it.
    """
    if not is_stored(client):
        client.put_script(id=script_id(), body={"script": _stored()})
    return script_id()


def params(
    old: StoredShift, new: StoredShift, fields: FieldNames, *, pipeline: bool, unit: bool = False
) -> dict[str, Any]:
    """What the script is to be told, as plain JSON.

    Args:
        old: how documents that have a stamp were shifted.
        new: how they are to be shifted.
        fields: the names of their fields, which do not change.
        pipeline: whether documents come through an ingest pipeline, from any client: then those without a stamp are
            as the encoder made them, and each names its language as it likes. Otherwise they come by ``_reindex``.
        unit: whether the encoder makes vectors of norm 1, so that one beside the stamp of another can be told.
    """
    same, same_own = old.hash == new.hash, old.own_hash == new.own_hash
    # Of what is the same in both, the new one has it.
    kept = {"hash": old.hash} if same else old.to_dict() | _excess(old)
    if not same_own:
        kept |= old.own_to_dict()
    named = {**fields.to_dict(), "told": fields.declared_language or fields.language}
    every = [*new.vectors.values(), *old.vectors.values()]
    return {
        "pipeline": pipeline,
        "same": same,
        # Without language vectors the index itself refuses vectors of another dimension.
        "dimension": len(every[0]) if every else 0,
        "fields": {name: named[name] for name in _NAMED},
        "texts": list(fields.text_fields) if fields.split else [],
        "same_own": same_own,
        "old": kept,
        "new": {
            **new.to_dict(),
            **_excess(new),
            "alpha": float(new.alpha),
            "alphas": {tag: float(alpha) for tag, alpha in new.alphas.items()},
            "gamma": float(new.gamma),
            "keys": new.keys,
        },
        **({"tags": tag_tables()} if pipeline else {}),
        **({"unit": True} if unit else {}),
        **({"content": [fields.vector, *fields.text_fields]} if pipeline and fields.parent else {}),
        "folds": folds(),
    }


def _excess(shift: StoredShift) -> dict[str, str]:
    """How far the rows of B, rounded to 32 bits, are from orthonormal: ``B Bᵀ − I``, shape (k, k), float32."""
    if shift.step is None:
        return {}
    basis = shift.step.directions.astype(np.float64)
    return encoded({"excess": (basis @ basis.T - np.eye(len(basis))).astype(np.float32)})


def reason(error: Mapping[str, Any]) -> str:
    """The sentence of the innermost cause of an error that the cluster reports, such as one that the script throws."""
    while isinstance(cause := error.get("caused_by"), Mapping):
        error = cause
    return str(error.get("reason") or error.get("type"))


def _stored() -> dict[str, str]:
    return {"lang": "painless", "source": source()}


Query = Mapping[str, Any]


class StampCounts(NamedTuple):
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


def count_stamps(client: OpenSearch, index: str, shift: StoredShift, fields: FieldNames) -> StampCounts:
    """Count the documents of an index by their stamps.

    Args:
        client: the cluster.
        index: the version.
        shift: how its documents are shifted.
        fields: the names of its fields.
    """
    vector, stamped = _vector(fields), {"exists": {"field": f"{fields.stamp}.alpha"}}
    agreed, same = matching_stamp_query(shift, fields), _same_vectors(shift, fields)
    unmoved = unmoved_query(fields)
    kinds = {
        "without": {"bool": {"must_not": [stamped]}},
        "other_vectors": {"bool": {"filter": [stamped], "must_not": [same, unmoved]}},
        "other_scale": {"bool": {"filter": [stamped, _any(same, unmoved)], "must_not": [agreed]}},
    }
    filters = {name: {"filter": query} for name, query in kinds.items()}
    body = {"size": 0, "track_total_hits": True, "query": vector, "aggs": filters}
    found = client.search(index=index, body=body)
    counts = {name: int(found["aggregations"][name]["doc_count"]) for name in kinds}
    return StampCounts(int(found["hits"]["total"]["value"]), **counts)


def matching_stamp_query(shift: StoredShift, fields: FieldNames) -> Query:
    """Documents with a vector that was shifted as the index's are."""
    languages: dict[float, list[str]] = {}
    for tag in sorted(shift.vectors):
        languages.setdefault(shift.scale(tag), []).append(tag)
    name = f"{fields.stamp}.language"
    moved: list[Query] = [
        {"bool": {"filter": [{"terms": {name: tags}}, _alpha(fields, alpha)]}} for alpha, tags in languages.items()
    ]
    still = {"bool": {"must_not": [{"exists": {"field": name}}], "filter": [_alpha(fields, 0)]}}
    scales = [_gamma(fields, shift.gamma), _any(still, *moved), _own(shift, fields)]
    return {"bool": {"filter": [_vector(fields), _same_vectors(shift, fields), *scales]}}


def unmoved_query(fields: FieldNames) -> Query:
    """Documents to which nothing was done, by whatever vectors: a script can shift them."""
    return {"bool": {"filter": [_alpha(fields, 0), _gamma(fields, 0)], "must_not": [_preferred(fields)]}}


def _any(*queries: Query) -> Query:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}


def _vector(fields: FieldNames) -> Query:
    return {"exists": {"field": fields.vector}}


def _alpha(fields: FieldNames, alpha: float) -> Query:
    return {"term": {f"{fields.stamp}.alpha": alpha}}


def _gamma(fields: FieldNames, gamma: float) -> Query:
    name = f"{fields.stamp}.gamma"
    given = {"term": {name: gamma}}
    # Stamps without a gamma have none.
    return given if gamma else _any(given, {"bool": {"must_not": [{"exists": {"field": name}}]}})


def _preferred(fields: FieldNames) -> Query:
    """Documents that were moved towards their own language."""
    return {"range": {f"{fields.stamp}.own.weight": {"gt": 0}}}


def _own(shift: StoredShift, fields: FieldNames) -> Query:
    """Documents that were moved towards their own language as the index's are."""
    if not shift.own:
        return {"bool": {"must_not": [_preferred(fields)]}}
    given = {"term": {f"{fields.stamp}.own.weight": shift.weight}}
    lacking = [_preferred(fields), {"terms": {fields.language: sorted(shift.own_vectors)}}]
    return _any(given, {"bool": {"must_not": lacking}})


def _same_vectors(shift: StoredShift, fields: FieldNames) -> Query:
    """Documents whose stamp names the index's vectors, also those of their own language where it names any."""
    names = {f"{fields.stamp}.vectors": shift.hash, f"{fields.stamp}.own.vectors": shift.own_hash}
    same = [[{"term": {name: value}}] if value else [] for name, value in names.items()]
    strange = {"bool": {"filter": [_preferred(fields)], "must_not": same[1]}}
    other = [] if shift.hash else [{"exists": {"field": f"{fields.stamp}.vectors"}}]
    return {"bool": {"filter": same[0], "must_not": [strange, *other]}}
