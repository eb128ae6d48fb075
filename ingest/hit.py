"""What a search finds."""

from __future__ import annotations

from typing import Any, NamedTuple


class Hit(NamedTuple):
    """One document found.

    Attributes:
        id: its ``_id``.
        score: as the cluster gives it; in dense mode ``(1 + cos) / 2``.
        language: primary tag, or ``und``.
        title: may be empty.
        text: may be empty.
        group: translation group, or None.
    """

    id: str
    score: float
    language: str
    title: str
    text: str
    group: str | None


def to_hit(found: dict[str, Any]) -> Hit:
    """A hit of the cluster's answer."""
    source = found["_source"]
    return Hit(
        id=found["_id"],
        score=float(found["_score"]),
        language=source["language"],
        title=next(iter(source.get("title", {}).values()), ""),
        text=next(iter(source.get("text", {}).values()), ""),
        group=source.get("group"),
    )
