"""What a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import Fields, value_at


class Hit(NamedTuple):
    """One document found.

    Attributes:
        id: its ``_id``.
        score: as the cluster gives it; in dense mode ``(1 + cos) / 2``.
        language: primary tag, or ``und``.
        title: may be empty, and is where the index has text fields of its own.
        text: may be empty.
        group: translation group, or None.
    """

    id: str
    score: float
    language: str
    title: str
    text: str
    group: str | None


def to_hit(found: dict[str, Any], fields: Fields) -> Hit:
    """A hit of the cluster's answer, from an index with these fields."""
    source = found["_source"]
    return Hit(
        id=found["_id"],
        score=float(found["_score"]),
        # Any client may write documents, also without a language.
        language=value_at(source, fields.language) or UNDETERMINED,
        title="" if fields.texts else _words(source.get("title")),
        text=_words(value_at(source, fields.texts[0]) if fields.texts else source.get("text")),
        group=source.get("group"),
    )


def _words(value: Any) -> str:  # noqa: ANN401 - any JSON
    """The words of a field: of several values all, of languages the first."""
    if isinstance(value, Mapping):
        return _words(next(iter(value.values()), None))
    if isinstance(value, list):
        return " ".join(filter(None, map(_words, value)))
    return "" if value is None else str(value)
