"""Documents of an index drawn at random: their vectors as the encoder made them, and what they lack beside these."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin.index_body import vectors_come_back_normalised
from langshift.plugin.metadata import FieldNames, random_order, value_at
from langshift.plugin.stored_shift import StoredShift, unshifted
from langshift.plugin.stored_vector import masked_in, vector_required
from langshift.plugin.versions import IndexInfo

Source = Mapping[str, Any]
# How many documents of a shard are drawn from.
_DRAWN_FROM = 5000
# Languages whose documents one answer holds: it holds all of their vectors.
_AT_ONCE = 16


class DrawnDocument(NamedTuple):
    """A document with a vector.

    Attributes:
        source: the fields that were asked for.
        stored: the vector that is searched, shape (dimension,), float32.
        raw: the vector as the encoder made it, of the same shape, float64; None where that cannot be known.
    """

    source: Source
    stored: NDArray[np.float32]
    raw: NDArray[np.float64] | None


def draw(
    client: OpenSearch, index: str, meta: Source, tags: Sequence[str], size: int, more: Iterable[str] = ()
) -> dict[str, list[DrawnDocument]]:
    """Draw documents of some languages, the same each time as long as the index stays as it is.

    Args:
        client: the cluster.
        index: a version.
        meta: its whole ``_meta``.
        tags: languages as the field ``language`` holds them.
        size: how many of each at most.
        more: further fields of the documents.

    Returns:
        Tag -> documents with a vector; languages without any are left out.
    """
    fields, shift = FieldNames.from_meta(meta), StoredShift.from_meta(meta)
    shown = [fields.vector, fields.stamp, fields.language, *more]
    found = {}
    for start in range(0, len(tags), _AT_ONCE):
        searches: list[dict[str, Any]] = []
        for tag in (some := tags[start : start + _AT_ONCE]):
            chosen = [{"term": {fields.language: tag}}, {"exists": {"field": fields.vector}}]
            query = random_order({"bool": {"filter": chosen}}, seed=size)
            body = {"query": query, "size": size, "_source": shown, "terminate_after": _DRAWN_FROM}
            searches += [{"index": index}, body]
        for tag, answer in zip(some, client.msearch(body=searches)["responses"], strict=True):
            if hits := answer.get("hits", {}).get("hits", []):
                found[tag] = [_drawn(hit["_source"], fields, shift, index) for hit in hits]
    return found


def _drawn(source: Source, fields: FieldNames, shift: StoredShift | None, index: str) -> DrawnDocument:
    stored, stamp = vector_required(source, fields.vector, index), value_at(source, fields.stamp) or {}
    return DrawnDocument(source, stored, unshifted(stored, stamp, shift))


def stored_text(source: Source, fields: FieldNames) -> str:
    """Return all that a document holds in its text fields, or in the fields of each language below them."""
    parts: list[str] = []
    for field in fields.text_fields:
        value = value_at(source, field)
        values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
        parts += [one for one in values if isinstance(one, str)]
    return " ".join(parts)


def require_vectors_as_written(client: OpenSearch, index: IndexInfo) -> None:
    """Refuse an index that does not give back its vectors as they were written.

    Raises:
        ClusterError: saying how to make one that does.
    """
    if why := masked_in(client, index.index, index.fields.vector):
        raise ClusterError(f"Index {index.index} does not return its vectors as they were written: {why}.")
    if vectors_come_back_normalised(client, index.index, index.fields.vector):
        raise ClusterError(
            f"Index {index.index} stores its vectors with the engine faiss, cosinesimil and derived source, which "
            "returns them with norm 1 and not as they were written, so no shift can be undone: index the corpus again "
            "with `langshift ingest --if-exists new-version`, which switches derived source off."
        )


_SAMPLED = 200


class Lacking(NamedTuple):
    """How many entries with a vector have nothing beside it.

    Attributes:
        sampled: of how many.
        entries: how many.
    """

    sampled: int
    entries: int


def lacking_in_sample(client: OpenSearch, index: str, field: str, vector: str) -> Lacking:
    """Look at entries drawn at random: the server has no query for documents with weights.

    Args:
        client: the cluster.
        index: the version.
        field: what they may lack, a path with dots.
        vector: the field of vectors.
    """
    query = {"exists": {"field": vector}}
    body = {"size": _SAMPLED, "query": random_order(query), "_source": [field]}
    hits = client.search(index=index, body=body)["hits"]["hits"]
    return Lacking(len(hits), sum(value_at(hit["_source"], field) is None for hit in hits))


def any_lacking(client: OpenSearch, index: str, field: str, vector: str) -> bool:
    """Whether any entry with a vector has nothing beside it; the server reads all of them."""
    script = f"""
        def found = params._source;
        for (String part : {json.dumps(field)}.splitOnToken('.')) {{
            found = found instanceof Map ? found.get(part) : null;
        }}
        emit(found == null && params._source.get({json.dumps(field)}) == null);
    """
    body = {
        "size": 0,
        "terminate_after": 1,
        "derived": {"langshift_lacking": {"type": "boolean", "script": {"source": script}}},
        "query": {"bool": {"filter": [{"exists": {"field": vector}}, {"term": {"langshift_lacking": True}}]}},
    }
    return bool(client.search(index=index, body=body)["hits"]["total"]["value"])
