"""What ``langshift search`` does and prints."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from langshift.cluster import open_cluster
from langshift.commands import explained
from langshift.console import emit_json, note, out, table
from langshift.errors import UsageError
from langshift.plugin.versions import check_name
from langshift.retrieval.hit import Hit, Other
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.result import SearchResult
from langshift.retrieval.search import Searcher
from langshift.retrieval.wanted import Setting
from langshift.retrieval.words import require_query
from langshift.searching_languages import require_tag

_SHOWN_CHARACTERS = 70


@dataclass(frozen=True)
class Options:
    """The options of the command; see its help."""

    setting: Setting
    language: str | None
    size: int
    filters: tuple[str, ...]
    explain: bool
    show_request: bool
    opening: SearchOptions
    as_json: bool


def run(name: str, words: str, options: Options) -> None:
    """Search, and print the hits."""
    check_name(name)
    filters = parse_filters(options.filters)
    require_query(words, options.size)
    if options.language is not None:
        require_tag(options.language)
    searcher = Searcher(open_cluster(), name, options.opening)
    result = searcher.search(
        words,
        options.setting,
        language=options.language,
        size=options.size,
        filters=filters,
        explain=options.explain,
    )
    if options.as_json:
        requests = [request.to_dict() for request in result.requests] if options.show_request else None
        emit_json(result.to_dict() | {"requests": requests})
    else:
        _show(name, result, options)


def _show(name: str, result: SearchResult, options: Options) -> None:
    if options.show_request:
        for request in result.requests:
            # As it is: neither broken into lines nor taken for markup.
            out.file.write(f"{request.in_dev_tools_and_for_curl}\n")
    for told in result.notes:
        note(told)
    if not result.hits:
        note(f"Nothing in {name} matches.")
        return
    columns = ["rank", "language", "score", "title", "_id"]
    rows = [[str(rank), h.language, f"{h.score:.4f}", headline(h), h.id] for rank, h in enumerate(result.hits, start=1)]
    if options.setting.one_per_group:
        columns.append("translations")
        rows = [[*row, "; ".join(map(brief, hit.others))] for row, hit in zip(rows, result.hits, strict=True)]
    table(None, columns, rows, right={"rank", "score"})
    if options.explain:
        explained.show(result)


def parse_filters(given: tuple[str, ...]) -> dict[str, list[str]]:
    """``("language=th", "language=de")`` as ``{"language": ["th", "de"]}``.

    Raises:
        UsageError: one that is not ``FIELD=VALUE``, or not UTF-8 text.
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


def brief(other: Other) -> str:
    """A translation by its language, with its score and id."""
    score = "" if other.score is None else f" {other.score:.4f}"
    return f"{other.language}{score} {other.id}"
