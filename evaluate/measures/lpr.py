"""LPR: how often the query's language wins among the translations of the passage that is sought."""

from __future__ import annotations

from collections.abc import Mapping

from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked, singles
from langshift.evaluate.measures.scores import Scores

_NO_SCORES = "undefined without the scores of the whole target group, also below the cut."


def language_preference(measure: Measure, ranked: Ranked) -> Scores:  # noqa: ARG001 - it has no cutoff or options
    """LPR, language preference rate: share of queries that score a passage in their language best in the target group.

    The target group is the relevant documents and all documents of their translation groups, whether
    or not they made the top k: their scores are ``group_scores``.

    - Tie: where several passages have the best score (equal as 32-bit floats), the query counts as the
      share of these that is in its language, which is what breaking ties at random would give on average.
    - Non-match: a passage without a score is behind every passage that has one; a query that was scored
      and matched none of its passages counts 0, as a query without answer does.
    - A passage of unknown language counts as not in the query's language.
    - A query whose group has no passage in its language cannot prefer one and is left out, as are one of
      unknown language and one whose group was not scored (it is not in ``group_scores``); the note counts
      the last.

    Direction: report, for it depends on what the searcher wants. Source: MLAIRE, section 3.2.
    """
    given = ranked.material.group_scores
    if not given:
        return Scores({}, len(ranked.queries), note=_NO_SCORES)
    per_query, unscored = {}, 0
    for query, language in ranked.queries.items():
        group = _group(ranked, query)
        if language is None or all(ranked.language(document) != language for document in group):
            continue
        if query in given:
            per_query[query] = _preference(ranked, given[query], language, group)
        else:
            unscored += 1
    note = f"queries left out because their target group was not scored: {unscored:,}." if unscored else None
    return Scores(per_query, len(ranked.queries) - len(per_query), note)


def _group(ranked: Ranked, query: str) -> set[str]:
    relevant = ranked.relevant(query)
    groups = {ranked.material.groups.get(document) for document in relevant} - {None}
    return set(relevant).union(*(ranked.members[group] for group in groups if group is not None))


def _preference(ranked: Ranked, given: Mapping[str, float], language: str, group: set[str]) -> float:
    matched = [document for document in given if document in group]
    if not matched:
        return 0.0
    scores = singles([given[document] for document in matched])
    best = max(scores)
    leaders = [document for document, score in zip(matched, scores, strict=True) if score == best]
    return sum(ranked.language(document) == language for document in leaders) / len(leaders)


LPR = Family(
    "LPR",
    "language preference rate: share of queries whose best-scored passage of the target group is in their language",
    "report",
    "MLAIRE, section 3.2",
    language_preference,
    "LPR",
    across=True,
)
