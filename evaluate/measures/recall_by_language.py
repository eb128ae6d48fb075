"""TLR, SLR and TR: recall by the documents' language."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from statistics import fmean

from langshift.evaluate.measures.base import (
    Measure,
    MeasureCell,
    MeasureFamily,
    MeasureTable,
    RankedMaterial,
    Scores,
)
from langshift.evaluate.measures.standard import calculate


def target_languages(measure: Measure, ranked: RankedMaterial) -> Scores:
    """TLR@k: recall@k over the relevant documents that are not in the query's language.

    ``|top k ∩ R_tgt| / |R_tgt|`` with ``R_tgt = {relevant d: L(d) != L(q)}``. Queries without such a
    document are left out.

    Direction: high. Source: Shift (Jang et al., 2026), section 4.3.
    """
    return _recall(measure, ranked, lambda document, query: document != query)


def same_language(measure: Measure, ranked: RankedMaterial) -> Scores:
    """SLR@k: recall@k over the relevant documents in the query's language, what debiasing may cost.

    Queries without such a document are left out.

    Direction: high. Source: counterpart of TLR.
    """
    return _recall(measure, ranked, lambda document, query: document == query)


def _recall(measure: Measure, ranked: RankedMaterial, counts: Callable[[str, str], bool]) -> Scores:
    """Recall over the documents whose language counts for the query's; documents of unknown language never do."""
    import ir_measures

    qrels = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = ranked.languages_of_relevant(query)
            part = {document: 1 for document, its in languages.items() if counts(its, language)}
            if part:
                qrels[query] = part
    return Scores(calculate(ir_measures.R @ measure.depth, qrels, ranked.run), len(ranked.queries) - len(qrels))


TLR = MeasureFamily("TLR@k", "high", "Shift (Jang et al., 2026), section 4.3", target_languages, across=True)
SLR = MeasureFamily("SLR@k", "high", "counterpart of TLR", same_language)


def target_recall(measure: Measure, ranked: RankedMaterial) -> Scores:
    """TR@k, Target Recall: recall@k over the relevant documents in one language, for each language.

    The table holds, for a query language and a document language, the mean over the queries that have
    a relevant document in it; a fair index has even rows. A query's own figure is the mean over the
    languages in which it has a relevant document. Queries and documents of unknown language stay out.

    Direction: high. Source: Shift (Jang et al., 2026), section 5.5 and appendices H and I.
    """
    import ir_measures

    parts: dict[tuple[str, str], dict[str, int]] = {}
    for query, language in ranked.queries.items():
        if language is not None:
            for document, its in ranked.languages_of_relevant(query).items():
                parts.setdefault((query, its), {})[document] = 1
    # One query for each language of its relevant documents.
    names = {f"{language} {query}": (query, language) for query, language in parts}
    qrels = {name: parts[pair] for name, pair in names.items()}
    # What is below the cut cannot count, and each answer is given once for every language.
    tops = {query: dict(islice(ranked.run[query].items(), measure.depth)) for query in ranked.run}
    run = {name: tops[query] for name, (query, _) in names.items() if query in tops}
    found = calculate(ir_measures.R @ measure.depth, qrels, run)
    figures: dict[str, dict[str, float]] = {}
    for name, (query, language) in names.items():
        figures.setdefault(query, {})[language] = found[name]
    per_query = {query: fmean(recalls.values()) for query, recalls in figures.items()}
    return Scores(
        per_query,
        len(ranked.queries) - len(per_query),
        table=_table(ranked, figures),
        again=lambda queries: target_recall(measure, ranked.only(queries)),
    )


def _table(ranked: RankedMaterial, figures: dict[str, dict[str, float]]) -> MeasureTable:
    columns = sorted({language for recalls in figures.values() for language in recalls})
    cells = {}
    for row, queries in ranked.by_language().items():
        values = {column: [figures[q][column] for q in queries if column in figures.get(q, {})] for column in columns}
        cells[row] = {column: MeasureCell(fmean(found), len(found)) for column, found in values.items() if found}
    return MeasureTable("query language", "document language", cells)


TR = MeasureFamily("TR@k", "high", "Shift (Jang et al., 2026), section 5.5", target_recall, across=True)
