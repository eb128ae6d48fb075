"""Queries with an answer in the searcher's language and queries without: no gain of one hides a loss of the other."""

from __future__ import annotations

from collections.abc import Mapping

from langshift.evaluate.datasets.qrels import Qrels

OWN, NONE = "own", "none"
SLICES = {OWN: "Answer in the searcher's language", NONE: "No answer in the searcher's language"}


def slices(
    qrels: Qrels, queries: Mapping[str, str | None], documents: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """Slice -> its queries; a slice without a query is left out.

    Empty where every query has an answer in its language: then there is nothing to tell apart. Queries of unknown
    language, and those without a relevant document, are in neither.

    Args:
        qrels: query id -> document id -> grade; above 0 is relevant.
        queries: query id -> language, None where unknown.
        documents: document id -> language, None where unknown.
    """
    found: dict[str, list[str]] = {part: [] for part in SLICES}
    for query, language in queries.items():
        relevant = [name for name, grade in qrels.get(query, {}).items() if grade > 0]
        if language is not None and relevant:
            own = any(documents.get(name) == language for name in relevant)
            found[OWN if own else NONE].append(query)
    return {part: asked for part, asked in found.items() if asked} if found[NONE] else {}
