"""What a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from langshift.plugin.fields import Fields, value_at
from langshift.retrieval.found import Candidate, Leg


@dataclass(frozen=True)
class ShiftEffect:
    """What the shift of the index did to a hit's nearness to the query.

    Attributes:
        moved: tag of a language vector -> what it was multiplied with before it was subtracted from the document's
            vector; empty where that is as the encoder made it.
        similarity_before: cosine of the query's and the document's vector as the encoder made them; None where that
            cannot be known.
        similarity_after: cosine of the vectors that are searched with.
        rank_before: by the former among the documents compared, counted from 1; None where it cannot be known.
        rank_after: by the latter.
    """

    moved: Mapping[str, float]
    similarity_before: float | None
    similarity_after: float
    rank_before: int | None
    rank_after: int


@dataclass(frozen=True)
class Other:
    """Another document of a hit's translation group.

    Attributes:
        id: its ``_id``.
        score: what the search would have given it; None where it matches nothing.
        language: primary tag, or ``und``.
        title: may be empty.
        text: may be empty.
        source: all its fields but the vector.
    """

    id: str
    score: float | None
    language: str
    title: str
    text: str
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Hit:
    """One document found.

    Attributes:
        id: its ``_id``.
        score: by which it is ranked; in dense mode ``(1 + cos) / 2``.
        language: primary tag, or ``und``.
        title: may be empty, and is where the index has text fields of its own.
        text: may be empty.
        group: translation group, the first where it names several, or None.
        legs: leg of the search -> score and rank there, None where it gave none; a leg that did not find it is absent.
        others: the other documents of its group, where one is shown of each.
        shift: what the shift did, where that was to be explained and the document has a vector.
        source: all its fields but the vector.
    """

    id: str
    score: float
    language: str
    title: str
    text: str
    group: str | None
    legs: Mapping[str, Leg] = field(default_factory=dict)
    others: tuple[Other, ...] = ()
    shift: ShiftEffect | None = None
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)


def to_hit(found: Candidate, fields: Fields, shift: ShiftEffect | None = None) -> Hit:
    """A candidate, from an index with these fields, as a hit."""
    title, text = title_and_text(found.source, fields)
    return Hit(
        id=found.id,
        score=0.0 if found.score is None else found.score,
        language=found.language,
        title=title,
        text=text,
        group=group_of(found.source),
        legs=found.legs,
        others=tuple(_other(one, fields) for one in found.others),
        shift=shift,
        source=found.source,
    )


def _other(found: Candidate, fields: Fields) -> Other:
    title, text = title_and_text(found.source, fields)
    return Other(found.id, found.score, found.language, title, text, found.source)


def title_and_text(source: Mapping[str, Any], fields: Fields) -> tuple[str, str]:
    """Title and text of a document, from an index with these fields; either may be empty."""
    if fields.texts:
        return "", _words(value_at(source, fields.texts[0]))
    return _words(source.get("title")), _words(source.get("text"))


def _words(value: Any) -> str:  # noqa: ANN401 - any JSON
    """The words of a field: of several values all, of languages the first."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _words(next(iter(value.values()), None))
    if isinstance(value, list):
        return " ".join(filter(None, map(_words, value)))
    return "" if value is None else str(value)


GROUP: Final = "group"


def group_of(source: Mapping[str, Any]) -> str | None:
    """The translation group that a document names, the first if it names several; None where it names none."""
    group = value_at(source, GROUP)
    if isinstance(group, list):
        group = group[0] if group else None
    return None if group is None else str(group)
