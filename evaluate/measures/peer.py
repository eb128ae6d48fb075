"""PEER: whether relevant documents of different languages are ranked alike."""

from __future__ import annotations

from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Scores

_ENOUGH = 2
_UNDEFINED = (
    "undefined, since no query has two retrieved relevant documents in each of two languages, "
    "and with one a language the test gives the same p for every order."
)


def equal_expected_rank(measure: Measure, ranked: Ranked) -> Scores:  # noqa: ARG001 - it has no cutoff or options
    """PEER, probability of equal expected rank: the p-value of a Kruskal-Wallis test, mean over queries.

    ``PEER(q) = p(KW({R_q,l}))``: for each language l, ``R_q,l`` are the ranks, in the whole answer, of the
    retrieved relevant documents in l. Languages with a single such document take part, but a query
    counts only where at least two languages have two or more; all others are left out, since with one
    document a language p is the same for every order. Documents of unknown language stay out.

    Direction: high, for near 1 no language is ranked apart. Source: LAURA, appendix A, Eq. 6.
    """
    from scipy.stats import kruskal

    per_query = {}
    for query in ranked.queries:
        ranks = _ranks(ranked, query)
        if sum(len(group) >= _ENOUGH for group in ranks) >= _ENOUGH:
            per_query[query] = float(kruskal(*ranks).pvalue)
    left_out = len(ranked.queries) - len(per_query)
    return Scores(per_query, left_out, note=None if per_query else _UNDEFINED)


def _ranks(ranked: Ranked, query: str) -> list[list[int]]:
    """The ranks, from 1, of the relevant documents found, a list for each language."""
    relevant = ranked.relevant(query)
    ranks: dict[str, list[int]] = {}
    for rank, document in enumerate(ranked.rankings.get(query, ()), 1):
        language = ranked.language(document) if document in relevant else None
        if language is not None:
            ranks.setdefault(language, []).append(rank)
    return list(ranks.values())


PEER = Family(
    "PEER",
    "probability of equal expected rank: p of a Kruskal-Wallis test on the ranks of relevant documents by language",
    "high",
    "LAURA, appendix A, Eq. 6",
    equal_expected_rank,
    "PEER",
    across=True,
)
