"""What ``langshift search`` does and prints."""

from __future__ import annotations

import textwrap

from langshift.cluster import open_cluster
from langshift.console import emit_json, note, table
from langshift.errors import UsageError
from langshift.ingest.hit import Hit
from langshift.ingest.opening import SearchOptions
from langshift.ingest.search import Searcher, require_language
from langshift.plugin.versions import check_name

_SHOWN_CHARACTERS = 70


def run(
    name: str,
    words: str,
    mode: str,
    language: str | None,
    size: int,
    filters: tuple[str, ...],
    options: SearchOptions,
    *,
    as_json: bool,
) -> None:
    """Search, and print the hits."""
    check_name(name)
    wanted = parse_filters(filters)
    tag = None if language is None else require_language(language)
    searcher = Searcher(open_cluster(), name, options)
    tag = tag or searcher.language(words, mode).language
    hits = searcher.search(words, mode=mode, language=language or tag, size=size, filters=wanted)
    if as_json:
        shifted = mode == "dense" and searcher.query_debias.shift_queries
        emit_json(
            {
                "index": searcher.index.index,
                "mode": mode,
                "language": tag,
                "shift_queries": shifted,
                "hits": [hit._asdict() for hit in hits],
            }
        )
    elif hits:
        rows = [[str(rank), h.language, f"{h.score:.4f}", headline(h), h.id] for rank, h in enumerate(hits, start=1)]
        table(None, ["rank", "language", "score", "title", "_id"], rows, right={"rank", "score"})
    else:
        note(f"Nothing in {name} matches.")


def parse_filters(given: tuple[str, ...]) -> dict[str, list[str]]:
    """``("language=th", "language=de")`` as ``{"language": ["th", "de"]}``.

    Raises:
        UsageError: one that is not ``FIELD=VALUE``.
    """
    filters: dict[str, list[str]] = {}
    for text in given:
        field, equals, value = text.partition("=")
        if not equals or not field or not value:
            raise UsageError(f"--filter takes FIELD=VALUE, such as language=th, not {text!r}.")
        filters.setdefault(field, []).append(value)
    return filters


def headline(hit: Hit) -> str:
    """The title of a hit, or the beginning of its text."""
    return hit.title or textwrap.shorten(hit.text, _SHOWN_CHARACTERS, placeholder=" …") or hit.text[:_SHOWN_CHARACTERS]
