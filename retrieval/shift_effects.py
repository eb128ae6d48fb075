"""What the shift of an index did to each hit: its nearness to the query before and after, and its ranks by these."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import own_of
from langshift.errors import ClusterError
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift, from_metadata, unshifted
from langshift.plugin.stored_vector import vector_at
from langshift.retrieval import dsl, hits
from langshift.retrieval.filters import IndexFilter
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES
from langshift.retrieval.result import ShiftEffect

Vector = NDArray[np.float32]


def effect_notes(found: Mapping[str, ShiftEffect], unknown: str | None) -> list[str]:
    """Why the similarity before the shift is not known of some, or of all, which ``unknown`` says then."""
    if all(effect.similarity_before is not None for effect in found.values()):
        return []
    return [unknown or "Some documents were shifted with language vectors other than the index's own."]


def known_shift(metadata: Mapping[str, Any], index: str) -> tuple[StoredShift | None, str | None]:
    """The shift of an index by its whole ``_meta``; where it cannot be taken back, None and a sentence that says so."""
    try:
        return from_metadata(metadata, index), None
    except ClusterError:
        return None, (
            f"The similarity before the shift is not available: {index} does not store what is needed to reverse "
            "its shift exactly."
        )


def effects(
    query: Vector, ids: Sequence[str], shift: StoredShift | None, fields: FieldNames, filters: IndexFilter
) -> SearchPlan[dict[str, ShiftEffect]]:
    """Compare hits, and the documents nearest to the query, before and after the shift.

    Args:
        query: the query's vector, shape (dimension,), float32.
        ids: the hits.
        shift: of the index; None where it cannot be taken back.
        fields: the index's names of fields.
        filters: which documents were searched.

    Returns:
        Document -> effect, of all that were compared: those with a vector.
    """
    brought = [fields.vector, fields.stamp]
    near = dsl.knn(query, LEAST_CANDIDATES, filters.clauses, fields)
    nearest = dsl.body(near, LEAST_CANDIDATES, fields, brought)
    among = dsl.named(ids, fields, brought)
    found: dict[str, ShiftEffect] = {}
    for name, source in hits.sources((yield nearest, among)).items():
        stored, stamp = vector_at(source, fields.vector), value_at(source, fields.stamp) or {}
        if stored is None:
            continue
        made = unshifted(stored, stamp, shift)
        alpha, gamma = (float(stamp.get(scale) or 0) for scale in ("alpha", "gamma"))
        before = None if made is None else _cosine(query, made)
        language = stamp.get("language") if alpha else None
        own = own_of(stamp).weight
        found[name] = ShiftEffect(language, alpha, gamma, own, before, _cosine(query, stored), None, 0)
    known = {name: one.similarity_before for name, one in found.items() if one.similarity_before is not None}
    # A rank among some of them only would be too good.
    earlier = _ranks(known) if len(known) == len(found) else {}
    after = _ranks({name: one.similarity_after for name, one in found.items()})
    return {name: replace(one, rank_before=earlier.get(name), rank_after=after[name]) for name, one in found.items()}


def _cosine(one: Vector, other: NDArray[np.floating[Any]]) -> float:
    first, second = one.astype(np.float64), other.astype(np.float64)
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / norms if norms else 0.0


def _ranks(similarities: Mapping[str, float]) -> dict[str, int]:
    """Document -> its rank from 1; of equal ones the first by id comes first."""
    ordered = sorted(similarities, key=lambda name: (-similarities[name], name))
    return {name: rank for rank, name in enumerate(ordered, start=1)}
