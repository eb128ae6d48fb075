"""Measures of a ranking: nDCG and recall from ir_measures, and what they hide about languages.

Nothing standard is written anew: trec_eval's code, through ir_measures, computes every figure.
TLR and SLR are recall over a part of the relevant documents, chosen by language, so they are
ir_measures' recall over qrels that keep only that part. Ties break as trec_eval does: by document
id, descending, after the score as a 32-bit float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from langshift.errors import UsageError
from langshift.evaluate.qrels import Qrels

Run = Mapping[str, Mapping[str, float]]
"""Query id -> document id -> score; a query that is missing or empty had no answer."""

DEFAULT_MEASURES = ("nDCG@20", "R@20", "TLR@20", "SLR@20")


@dataclass(frozen=True)
class Family:
    """A measure less its cutoff.

    Attributes:
        name: the name before the ``@``.
        base: the measure of ir_measures that computes it.
        says: what it is, in a line.
        good: which way is good.
        source: where it is defined.
        counts: whether a relevant document counts, by its language and the query's; None: all count.
    """

    name: str
    base: str
    says: str
    good: str
    source: str
    counts: Callable[[str, str], bool] | None = None


def _other(document: str, query: str) -> bool:
    return document != query


def _same(document: str, query: str) -> bool:
    return document == query


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "nDCG",
            "nDCG",
            "normalised discounted cumulative gain, gain = grade",
            "high",
            "trec_eval, ndcg_cut",
        ),
        Family("R", "R", "share of the relevant documents that is in the top k", "high", "trec_eval, recall"),
        Family(
            "TLR",
            "R",
            "target-languages recall: recall over relevant documents not in the query's language",
            "high",
            "Shift (Jang et al., 2026), section 4.3",
            _other,
        ),
        Family(
            "SLR",
            "R",
            "same-language recall: recall over relevant documents in the query's language",
            "high",
            "counterpart of TLR",
            _same,
        ),
    )
}


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff, such as ``TLR@20``."""

    family: Family
    cutoff: int

    @property
    def name(self) -> str:
        """The name as it is written: ``TLR@20``."""
        return f"{self.family.name}@{self.cutoff}"


@dataclass(frozen=True)
class Scores:
    """One measure over a run.

    Attributes:
        per_query: query id -> figure, for each query with a relevant document that counts.
        left_out: how many queries have no such document.
    """

    per_query: Mapping[str, float]
    left_out: int

    @property
    def queries(self) -> int:
        """How many queries the mean is over."""
        return len(self.per_query)

    @property
    def mean(self) -> float | None:
        """The mean over the queries; None where there is none."""
        return fmean(self.per_query.values()) if self.per_query else None

    def over(self, queries: Iterable[str]) -> Scores:
        """The same measure over some of the queries."""
        wanted = list(queries)
        kept = {query: self.per_query[query] for query in wanted if query in self.per_query}
        return Scores(kept, len(wanted) - len(kept))


def parse_measure(name: str) -> Measure:
    """Read a measure's name, such as ``nDCG@20``.

    Raises:
        UsageError: the name is none of the known ones.
    """
    match = re.fullmatch(r"(\w+)@([1-9][0-9]{0,5})", name.strip(), re.ASCII)
    if match is None or match[1] not in FAMILIES:
        known = ", ".join(f"{family}@k" for family in FAMILIES)
        raise UsageError(f"{name!r} is no known measure: the known ones are {known}, with k a rank such as 20.")
    return Measure(FAMILIES[match[1]], int(match[2]))


def score(
    names: Sequence[str],
    qrels: Qrels,
    run: Run,
    *,
    queries: Mapping[str, str | None],
    documents: Mapping[str, str | None],
) -> dict[str, Scores]:
    """Score a run with measures by name.

    Args:
        names: measures such as ``nDCG@20`` and ``TLR@20``.
        qrels: the judgements.
        run: the answers. A query without any counts as 0.
        queries: query id -> language, None where unknown, for all queries that were asked.
        documents: document id -> language, None where unknown. A relevant document, or a query, of
            unknown language stays out of the measures by language.

    Returns:
        For each name, the figure of each query with a relevant document that counts; the other
        queries are counted in ``left_out``.

    Raises:
        UsageError: an unknown measure.
    """
    measures = [parse_measure(name) for name in names]
    answers = {query: dict(hits) for query, hits in run.items() if hits and query in queries}
    return {measure.name: _score(measure, qrels, answers, queries, documents) for measure in measures}


def _score(
    measure: Measure,
    qrels: Qrels,
    run: dict[str, dict[str, float]],
    queries: Mapping[str, str | None],
    documents: Mapping[str, str | None],
) -> Scores:
    import ir_measures

    kept = {}
    for query, language in queries.items():
        judged = qrels.get(query, {})
        if measure.family.counts is not None:
            judged = _counting(measure.family.counts, judged, language, documents)
        if any(grade > 0 for grade in judged.values()):
            kept[query] = dict(judged)
    if not kept:
        return Scores({}, len(queries))
    base = ir_measures.parse_measure(f"{measure.family.base}@{measure.cutoff}")
    results = ir_measures.evaluator([base], kept).iter_calc(run)
    found = {result.query_id: float(result.value) for result in results}
    return Scores({query: found[query] for query in kept}, len(queries) - len(kept))


def _counting(
    counts: Callable[[str, str], bool],
    judged: Mapping[str, int],
    query: str | None,
    documents: Mapping[str, str | None],
) -> dict[str, int]:
    """Keep the judgements of the documents that count for a query in the language ``query``."""
    if query is None:
        return {}
    return {
        document: grade
        for document, grade in judged.items()
        if (language := documents.get(document)) is not None and counts(language, query)
    }
