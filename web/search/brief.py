"""Documents cut down to what lists show of them: what is kept for sliders stays small however long texts are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langshift.plugin.fields import Fields
from langshift.retrieval.hit import GROUP, Hit, group_of, title_and_text
from langshift.web.search.rows import excerpt


def brief_sources(sources: Mapping[str, Mapping[str, Any]], fields: Fields, words: str) -> dict[str, Mapping[str, Any]]:
    """Documents with nothing but title, text and group, the texts cut down.

    Args:
        sources: document -> its fields.
        fields: the names of the index's.
        words: the query, around whose words lists show a text.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for name, source in sources.items():
        title, text = title_and_text(source, fields)
        text, group = excerpt(text, words), group_of(source)
        texts = {fields.texts[0]: text} if fields.texts else {"title": excerpt(title), "text": text}
        found[name] = texts if group is None else {**texts, GROUP: group}
    return found


def brief_hit(hit: Hit, words: str) -> Hit:
    """A hit, and what is inside it, without any other fields, the texts cut down."""
    others = tuple(replace(one, title=excerpt(one.title), text=excerpt(one.text), source={}) for one in hit.others)
    return replace(hit, title=excerpt(hit.title), text=excerpt(hit.text, words), others=others, source={})
