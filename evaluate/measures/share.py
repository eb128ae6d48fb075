"""Share: how much of what is found first each language has."""

from __future__ import annotations

from statistics import fmean

from langshift.evaluate.measures.distribution import found_by_language, mean
from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Cell, Pooled, Scores, Table


def language_share(measure: Measure, ranked: Ranked) -> Scores:
    """Share@k: each language's share of the first k documents, averaged per query language first.

    The table holds, for each query language, the mean over its queries of each document language's
    share; a row adds to 1. A query's own figure is the share of documents in its language; the
    measure's is the mean of these per query language first, then over query languages. Queries
    without answer have no shares and are left out, as are those of unknown language; documents of
    unknown language are ``und``.

    Direction: report. Source: LAURA, section 2.1, vanilla distribution.
    """
    rows = found_by_language(ranked, measure.depth)
    per_query = {query: shares.get(row, 0.0) for row, pairs in rows.items() for query, shares in pairs}
    cells = {
        row: {language: Cell(share, len(pairs)) for language, share in mean([shares for _, shares in pairs]).items()}
        for row, pairs in rows.items()
    }
    own = [fmean(per_query[query] for query, _ in pairs) for pairs in rows.values()]
    return Pooled(
        per_query,
        len(ranked.queries) - len(per_query),
        table=Table("query language", "document language", cells),
        figure=fmean(own) if own else None,
        counted=len(per_query),
        again=lambda queries: language_share(measure, ranked.only(queries)),
    )


SHARE = Family(
    "Share",
    "share of the first k documents that is in the query's language; its table has every language's share",
    "report",
    "LAURA, section 2.1",
    language_share,
    "Share@k",
)
