"""Lang-nDCG: nDCG that grades a relevant document higher when the query's language is its own."""

from __future__ import annotations

from langshift.evaluate.measures.family import Family, Measure, Option
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.measures.standard import calculate


def lang_ndcg(measure: Measure, ranked: Ranked) -> Scores:
    """Lang_nDCG@k: nDCG@k with the grade ``same`` for a relevant document in the query's language, ``other`` else.

    The gain of a grade g is ``2^g - 1``: with the defaults 2 and 1, 3 for the query's language and 1
    for others. The ideal ranking is graded in the same way. The data's own grades only say what is
    relevant (above 0). Queries and documents of unknown language stay out, and queries without a
    document of gain above 0 are left out.

    Direction: high. Source: MLAIRE, section 3.2.
    """
    import ir_measures

    same, other = measure.option("same"), measure.option("other")
    kept = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = {document: ranked.language(document) for document in ranked.relevant(query)}
            grades = {doc: same if its == language else other for doc, its in languages.items() if its is not None}
            if any(grades.values()):
                kept[query] = grades
    gains = {grade: 2**grade - 1 for grade in (same, other)}
    run = {query: ranked.run[query] for query in kept if query in ranked.run}
    base = ir_measures.nDCG(gains=gains) @ measure.depth
    return Scores(calculate(base, kept, run), len(ranked.queries) - len(kept))


def _grade(value: object) -> bool:
    return type(value) is int and 0 <= value <= 20


LANG_NDCG = Family(
    "Lang_nDCG",
    "nDCG with gain 2^grade - 1, where a relevant document in the query's language has a higher grade than others",
    "high",
    "MLAIRE, section 3.2",
    lang_ndcg,
    "Lang_nDCG@k",
    options={
        "same": Option(2, "a whole number from 0 to 20", _grade),
        "other": Option(1, "a whole number from 0 to 20", _grade),
    },
    across=True,
)
