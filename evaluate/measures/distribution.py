"""Distributions over languages: of what was found, and of where the answers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from langshift.evaluate.measures.ranked import Ranked
from langshift.languages import UNDETERMINED

Distribution = Mapping[str, float]
"""Language -> share; the shares add to 1."""


def found(ranked: Ranked, query: str, depth: int) -> Distribution | None:
    """Each language's share of a query's first documents; None where it has no answer.

    Three English and two Chinese documents make .6 and .4. An answer of fewer than ``depth``
    documents is divided by its own length. Documents of unknown language are ``und``.
    """
    top = ranked.top(query, depth)
    return _even(ranked.language(document) or UNDETERMINED for document in top) if top else None


def stand_in(ranked: Ranked, query: str) -> Distribution | None:
    """The languages of a query's relevant documents, each of the same weight; None where none is known.

    This stands in for LAURA's oracle (section 2.1), which is the language of the documents that give
    the best answer, several of them with the same weight where they tie: that needs utility scores.
    """
    languages = {ranked.language(document) for document in ranked.relevant(query)} - {None}
    return _even(language for language in languages if language) if languages else None


def mean(distributions: Sequence[Distribution]) -> Distribution:
    """The average of several distributions, sorted by language."""
    total: Counter[str] = Counter()
    for distribution in distributions:
        total.update(distribution)
    return {language: total[language] / len(distributions) for language in sorted(total)}


def found_by_language(ranked: Ranked, depth: int) -> dict[str, list[tuple[str, Distribution]]]:
    """Query language -> the queries that have an answer, each with the languages of its first documents."""
    rows = {}
    for language, queries in ranked.by_language().items():
        pairs = [(query, shares) for query in queries if (shares := found(ranked, query, depth)) is not None]
        if pairs:
            rows[language] = pairs
    return rows


def _even(languages: Iterable[str]) -> Distribution:
    counts = Counter(languages)
    return {language: count / counts.total() for language, count in counts.items()}
