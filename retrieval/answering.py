"""From a search in a mode to what a person is told: hits, notes, requests, and what the shift did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langshift.languages import UNDETERMINED
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import LiveIndex
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.explaining import Effects, Vector, effects
from langshift.retrieval.found import Found
from langshift.retrieval.hit import to_hit
from langshift.retrieval.requests import Request, recorded
from langshift.retrieval.result import SearchResult
from langshift.retrieval.wanted import Filters, Question, Setting


class Explaining(NamedTuple):
    """What it takes to tell what the shift did.

    Attributes:
        raw: the query's vector as the encoder made it, shape (dimension,), float32.
        shift: of the index; None where it cannot be taken back.
        note: a sentence on that, where it cannot.
        filters: which documents were searched.
    """

    raw: Vector
    shift: IndexShift | None
    note: str | None
    filters: Filters


def answer(
    index: LiveIndex,
    question: Question,
    setting: Setting,
    exchange: Exchange[Found],
    *,
    shift_queries: bool,
    explaining: Explaining | None = None,
    remarks: Sequence[str] = (),
) -> Exchange[SearchResult]:
    """Carry on a search until it can be shown.

    Args:
        index: what is searched.
        question: the query; with its vector where the shift's effect is to be told.
        setting: how it is searched.
        exchange: the search.
        shift_queries: whether the query was shifted.
        explaining: None where the shift's effect is not asked for.
        remarks: what is to be told of the index beside that.
    """
    requests: list[Request] = []
    found = yield from recorded(exchange, index.index, requests)
    seen = Effects({}, 0)
    if explaining is not None and question.vector is not None and found.hits:
        ids = [hit.id for hit in found.hits]
        asked = effects(explaining.raw, question.vector, ids, explaining.shift, index.fields, explaining.filters)
        seen = yield from recorded(asked, index.index, requests)
    return SearchResult(
        index=index.index,
        setting=setting,
        language=question.language,
        shift_queries=shift_queries,
        hits=tuple(to_hit(hit, index.fields, seen.by_id.get(hit.id)) for hit in found.hits),
        bonus=found.how.bonus,
        anchors=found.how.anchors,
        compared=seen.compared,
        notes=(*remarks, *found.notes, *_notes(index, question, setting, explaining, seen)),
        took=found.took,
        requests=tuple(requests),
    )


def _notes(
    index: LiveIndex, question: Question, setting: Setting, explaining: Explaining | None, seen: Effects
) -> list[str]:
    notes = preference_notes(index, question, setting)
    unknown = any(effect.similarity_before is None for effect in seen.by_id.values())
    if explaining is not None and unknown:
        notes.append(explaining.note or "Some documents were shifted by other language vectors than the index's own.")
    return notes


def preference_notes(index: LiveIndex, question: Question, setting: Setting) -> list[str]:
    """Why a language preference has no effect, where it has none."""
    if not setting.preference:
        return []
    if question.language == UNDETERMINED:
        return ["The query's language is unknown, so no language is preferred: name it."]
    if question.language not in index.languages:
        return [
            f"{index.name} holds no document in {question.language}, the query's language, so the preference "
            "changes no order."
        ]
    return []
