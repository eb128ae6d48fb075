"""Which language a ranking prefers: Lang_nDCG, LPR and Top1."""

from collections.abc import Mapping

from langshift.evaluate.measures import base
from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.evaluate.measures.standard import calculate


def lang_ndcg(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Lang_nDCG@k: nDCG@k with the grade ``same`` for a relevant document in the query's language, ``other`` else.

    The gain of a grade g is ``2^g - 1``: with the defaults 2 and 1, 3 for the query's language and 1
    for others. The ideal ranking is graded in the same way. The data's own grades only say what is
    relevant (above 0). Queries and documents of unknown language stay out, and queries without a
    document of gain above 0 are left out. MLAIRE grades the query's language higher; the defaults 2 and 1, and the
    gain, are langshift's choice.

    Direction: high. Source: MLAIRE, section 3.2.
    """
    import ir_measures

    same, other = measure.option("same"), measure.option("other")
    qrels = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = ranked.languages_of_relevant(query)
            grades = {document: same if its == language else other for document, its in languages.items()}
            if any(grades.values()):
                qrels[query] = grades
    gains = {grade: 2**grade - 1 for grade in (same, other)}
    graded = ir_measures.nDCG(gains=gains) @ measure.depth
    return Scores(calculate(graded, qrels, ranked.run), len(ranked.queries) - len(qrels))


def _grade(value: object) -> bool:
    return type(value) is int and 0 <= value <= 20


_HOW = "a whole number from 0 to 20"
_GRADES = {"same": base.MeasureOption(2, _HOW, _grade), "other": base.MeasureOption(1, _HOW, _grade)}
LANG_NDCG = MeasureFamily("Lang_nDCG@k", "high", "MLAIRE, section 3.2", lang_ndcg, _GRADES, across=True)


_NO_SCORES = (
    "undefined without the scores of the whole target group, including those below the cutoff: group-scores.jsonl "
    "beside the run, which `langshift evaluate replay --output` and `offline --output` write."
)


def language_preference(measure: Measure, ranked: RankedMaterial) -> Scores:  # noqa: ARG001 - it has no cutoff or options
    """LPR, language preference rate: share of queries that score a passage in their language best in the target group.

    The target group is the relevant documents and all documents of their translation groups, whether
    or not they made the top k: their scores are ``group_scores``. With ``--within``, it is what the query searches of
    that.

    - Tie: where several passages have the best score (equal as 32-bit floats), the query counts as the
      share of these that is in its language, which is what breaking ties at random would give on average.
    - Non-match: a passage without a score is behind every passage that has one; a query that was scored
      and matched none of its passages counts 0, as a query without answer does.
    - A passage of unknown language counts as not in the query's language.
    - A query whose group has no passage in its language, or none in another, leaves nothing to prefer and is
      left out, as are one of unknown language and one whose group was not scored (it is not in
      ``group_scores``); the note counts the last.

    Direction: report, for it depends on what the searcher wants. Source: MLAIRE, section 3.2.
    """
    given = ranked.material.group_scores
    if not given:
        return Scores({}, len(ranked.queries), note=_NO_SCORES)
    per_query, unscored = {}, 0
    for query, language in ranked.queries.items():
        group = _group(ranked, query)
        if language is None or len({ranked.language(document) == language for document in group}) < 2:
            continue
        if query in given:
            per_query[query] = _preference(ranked, given[query], language, group)
        else:
            unscored += 1
    note = f"queries left out because their target group was not scored: {unscored:,}." if unscored else None
    return Scores(per_query, len(ranked.queries) - len(per_query), note)


def _group(ranked: RankedMaterial, query: str) -> set[str]:
    relevant = ranked.relevant(query)
    groups = {ranked.material.groups.get(document) for document in relevant} - {None}
    together = set(relevant).union(*(ranked.members[group] for group in groups if group is not None))
    return together.difference(ranked.material.outside.get(query, ()))


def _preference(ranked: RankedMaterial, given: Mapping[str, float], language: str, group: set[str]) -> float:
    matched = [document for document in given if document in group]
    if not matched:
        return 0.0
    scores = base.as_float32([given[document] for document in matched])
    best = max(scores)
    leaders = [document for document, score in zip(matched, scores, strict=True) if score == best]
    return sum(ranked.language(document) == language for document in leaders) / len(leaders)


LPR = MeasureFamily("LPR", "report", "MLAIRE, section 3.2", language_preference, across=True)


OUTCOMES = ("perfect", "lang_fail", "sem_fail", "both_fail")


def first_document_outcomes(measure: Measure, ranked: RankedMaterial) -> Scores:
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
        cells[base.ALL] = _shares(list(found.values()))
    return Scores(
        per_query,
        len(ranked.queries) - len(found),
        table=MeasureTable("query language", "first document", cells),
        again=lambda queries: first_document_outcomes(measure, ranked.only(queries)),
    )


def _outcome(ranked: RankedMaterial, query: str, language: str) -> str:
    for document in ranked.top(query, 1):
        right, own = document in ranked.relevant(query), ranked.language(document) == language
        return OUTCOMES[(not right) * 2 + (not own)]
    return "both_fail"


def _shares(outcomes: list[str]) -> dict[str, MeasureCell]:
    return {outcome: MeasureCell(outcomes.count(outcome) / len(outcomes), len(outcomes)) for outcome in OUTCOMES}


TOP1 = MeasureFamily("Top1", "high", "MLAIRE, section 3.3", first_document_outcomes, across=True)
