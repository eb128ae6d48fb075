"""Vectors of an index as the encoder made them, by language: drawn at random, with their shift taken back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.debiaser import is_shifted, undo
from langshift.errors import ClusterError
from langshift.plugin.index_body import vectors_come_back_normalised
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.stored_vector import masked_in, vector_required
from langshift.plugin.versions import IndexInfo

Source = Mapping[str, Any]
# How many documents of a shard are drawn from.
_DRAWN_FROM = 5000
# Languages whose documents one answer holds: it holds all of their vectors.
_AT_ONCE = 16


def draw(
    client: OpenSearch, index: str, meta: Source, tags: Sequence[str], size: int, more: Iterable[str] = ()
) -> dict[str, tuple[list[Source], NDArray[np.float32]]]:
    """Draw documents of some languages, the same each time as long as the index stays as it is.

    Args:
        client: the cluster.
        index: a version.
        meta: its whole ``_meta``.
        tags: languages as the field ``language`` holds them.
        size: how many of each at most.
        more: further fields of the documents.

    Returns:
        Tag -> documents and their vectors as the encoder made them, up to rounding, shape (n, d), float32. Languages
        and documents without any, or shifted by other vectors than the index's, are left out.
    """
    fields, shift = FieldNames.from_meta(meta), StoredShift.from_meta(meta)
    shown = [fields.vector, fields.stamp, fields.language, *more]
    found = {}
    for start in range(0, len(tags), _AT_ONCE):
        searches: list[dict[str, Any]] = []
        for tag in (some := tags[start : start + _AT_ONCE]):
            chosen = [{"term": {fields.language: tag}}, {"exists": {"field": fields.vector}}]
            random = {"seed": size, "field": "_seq_no"}
            query = {"function_score": {"query": {"bool": {"filter": chosen}}, "random_score": random}}
            body = {"query": query, "size": size, "_source": shown, "terminate_after": _DRAWN_FROM}
            searches += [{"index": index}, body]
        for tag, answer in zip(some, client.msearch(body=searches)["responses"], strict=True):
            sources = [hit["_source"] for hit in answer.get("hits", {}).get("hits", [])]
            sources = [one for one in sources if _is_known(value_at(one, fields.stamp), shift)]
            if sources:
                found[tag] = sources, np.stack([_unshifted(one, fields, shift, index) for one in sources])
    return found


def _is_known(stamp: Source | None, shift: StoredShift | None) -> bool:
    if not stamp or "vectors" not in stamp:
        return False
    return shift is None or stamp["vectors"] == shift.hash or not is_shifted(stamp)


def _unshifted(source: Source, fields: FieldNames, shift: StoredShift | None, index: str) -> NDArray[np.float32]:
    stored, stamp = vector_required(source, fields.vector, index), value_at(source, fields.stamp)
    return stored if shift is None or not is_shifted(stamp) else undo(stored, stamp, shift.vectors, shift.step)


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
