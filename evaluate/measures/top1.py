"""Top1: the first document, by relevance and by language."""

from __future__ import annotations

from statistics import fmean

from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Cell, Pooled, Scores, Table

OUTCOMES = ("perfect", "lang_fail", "sem_fail", "both_fail")
ALL = "all"


def four_ways(measure: Measure, ranked: Ranked) -> Scores:
    """Top1: share of queries whose first document is perfect; the table has all four outcomes, which add to 1.

    perfect: relevant and in the query's language; lang_fail: relevant, in another language; sem_fail:
    not relevant, in the query's language; both_fail: neither. A query without answer is a both_fail,
    and a document of unknown language is not in the query's. Queries of unknown language, and those
    without relevant document, are left out.

    Direction: high. Source: MLAIRE, section 3.3.
    """
    found = {
        query: _outcome(ranked, query, language)
        for query, language in ranked.queries.items()
        if language is not None and ranked.relevant(query)
    }
    per_query = {query: float(outcome == "perfect") for query, outcome in found.items()}
    rows = {language: [q for q in queries if q in found] for language, queries in ranked.by_language().items()}
    cells = {row: _shares([found[query] for query in queries]) for row, queries in rows.items() if queries}
    if found:
        cells[ALL] = _shares(list(found.values()))
    return Pooled(
        per_query,
        len(ranked.queries) - len(found),
        table=Table("query language", "first document", cells),
        figure=fmean(per_query.values()) if per_query else None,
        counted=len(found),
        again=lambda queries: four_ways(measure, ranked.only(queries)),
    )


def _outcome(ranked: Ranked, query: str, language: str) -> str:
    for document in ranked.top(query, 1):
        right, own = document in ranked.relevant(query), ranked.language(document) == language
        return OUTCOMES[(not right) * 2 + (not own)]
    return "both_fail"


def _shares(outcomes: list[str]) -> dict[str, Cell]:
    return {outcome: Cell(outcomes.count(outcome) / len(outcomes), len(outcomes)) for outcome in OUTCOMES}


TOP1 = Family(
    "Top1",
    "share of first documents that are relevant and in the query's language; its table has the four outcomes",
    "high",
    "MLAIRE, section 3.3",
    four_ways,
    "Top1",
    across=True,
)
