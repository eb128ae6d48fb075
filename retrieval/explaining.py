"""What the shift of an index did to hits: their nearness to the query before and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.taken_back import moving, taken_back
from langshift.errors import ClusterError
from langshift.plugin.fields import Fields, value_at
from langshift.plugin.index_shift import of_meta
from langshift.plugin.shift_index_shift import IndexShift
from langshift.retrieval import bodies
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.hit import ShiftEffect
from langshift.retrieval.reading import sources
from langshift.retrieval.wanted import Filters

Vector = NDArray[np.float32]


class Effects(NamedTuple):
    """What the shift did to hits.

    Attributes:
        by_id: document -> effect; without documents that have no vector.
        compared: how many documents the ranks are among.
    """

    by_id: Mapping[str, ShiftEffect]
    compared: int


def known_shift(kept: Mapping[str, Any], index: str) -> tuple[IndexShift | None, str | None]:
    """The shift of an index by its whole ``_meta``; where it cannot be taken back, None and a sentence that says so."""
    try:
        return of_meta(kept, index), None
    except ClusterError:
        return None, (
            f"How near the hits were before the shift is not known: {index} does not hold what could take it back "
            "exactly."
        )


def effects(
    raw: Vector, moved: Vector, ids: Sequence[str], shift: IndexShift | None, fields: Fields, filters: Filters
) -> Exchange[Effects]:
    """Compare hits, and the documents nearest to the query, before and after the shift.

    Args:
        raw: the query's vector as the encoder made it, shape (dimension,), float32.
        moved: that which is searched with.
        ids: the hits.
        shift: of the index; None where it cannot be taken back.
        fields: the index's names of fields.
        filters: which documents were searched.
    """
    source = [fields.vector, fields.stamp]
    nearest = bodies.dense(moved, size=bodies.LEAST_CANDIDATES, filters=filters, fields=fields, source=source)
    among = bodies.named(ids, fields, source)
    documents = sources((yield nearest, among))
    return _compared(raw, moved, documents, shift, fields)


def _compared(
    raw: Vector,
    moved: Vector,
    documents: Mapping[str, Mapping[str, Any]],
    shift: IndexShift | None,
    fields: Fields,
) -> Effects:
    before: dict[str, float | None] = {}
    after: dict[str, float] = {}
    by: dict[str, dict[str, float]] = {}
    for name, source in documents.items():
        vector = value_at(source, fields.vector)
        if vector is None:
            continue
        stored, stamp = np.array(vector, np.float32), value_at(source, fields.stamp) or {}
        by[name] = moving(stamp)
        after[name] = _cosine(moved, stored)
        made = as_made(stored, stamp, by[name], shift)
        before[name] = None if made is None else _cosine(raw, made)
    known = {name: value for name, value in before.items() if value is not None}
    # A rank among some of them only would be too good.
    ranks_before = _ranks(known) if len(known) == len(after) else {}
    ranks_after = _ranks(after)
    found = {
        name: ShiftEffect(by[name], before[name], after[name], ranks_before.get(name), ranks_after[name])
        for name in after
    }
    return Effects(found, len(after))


def as_made(
    stored: Vector, stamp: Mapping[str, Any], by: Mapping[str, float], shift: IndexShift | None
) -> Vector | None:
    """The vector as the encoder made it; None where that cannot be known."""
    if not by:
        return stored
    # Any client may write a stamp.
    if shift is None or stamp.get("vectors") != shift.hash or not by.keys() <= shift.vectors.keys():
        return None
    return taken_back(stored, stamp, shift.vectors)


def _cosine(one: Vector, other: Vector) -> float:
    first, second = one.astype(np.float64), other.astype(np.float64)
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / norms if norms else 0.0


def _ranks(similarities: Mapping[str, float]) -> dict[str, int]:
    """Document -> its rank from 1; of equal ones the first by id comes first."""
    ordered = sorted(similarities, key=lambda name: (-similarities[name], name))
    return {name: rank for rank, name in enumerate(ordered, start=1)}
