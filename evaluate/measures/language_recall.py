"""TLR and SLR: recall over the relevant documents of other languages, and of the query's own."""

from __future__ import annotations

from collections.abc import Callable

from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.measures.standard import calculate


def target_languages(measure: Measure, ranked: Ranked) -> Scores:
    """TLR@k: recall@k over the relevant documents that are not in the query's language.

    ``|top k ∩ R_tgt| / |R_tgt|`` with ``R_tgt = {relevant d: L(d) != L(q)}``. Queries without such a
    document are left out.

    Direction: high. Source: Shift (Jang et al., 2026), section 4.3.
    """
    return _recall(measure, ranked, lambda document, query: document != query)


def same_language(measure: Measure, ranked: Ranked) -> Scores:
    """SLR@k: recall@k over the relevant documents in the query's language, what debiasing may cost.

    Queries without such a document are left out.

    Direction: high. Source: counterpart of TLR.
    """
    return _recall(measure, ranked, lambda document, query: document == query)


def _recall(measure: Measure, ranked: Ranked, counts: Callable[[str, str], bool]) -> Scores:
    """Recall over the documents whose language counts for the query's; documents of unknown language never do."""
    import ir_measures

    kept = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = {document: ranked.language(document) for document in ranked.relevant(query)}
            part = {document: 1 for document, its in languages.items() if its is not None and counts(its, language)}
            if part:
                kept[query] = part
    run = {query: ranked.run[query] for query in kept if query in ranked.run}
    return Scores(calculate(ir_measures.R @ measure.depth, kept, run), len(ranked.queries) - len(kept))


TLR = Family(
    "TLR",
    "target-languages recall: recall over relevant documents not in the query's language",
    "high",
    "Shift (Jang et al., 2026), section 4.3",
    target_languages,
    "TLR@k",
    across=True,
)
SLR = Family(
    "SLR",
    "same-language recall: recall over relevant documents in the query's language",
    "high",
    "counterpart of TLR",
    same_language,
    "SLR@k",
)
