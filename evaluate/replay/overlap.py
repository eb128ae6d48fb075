"""Two indices asked the same, without judgements: how alike their answers are, and which languages come up more.

- RBO, rank-biased overlap (Webber, Moffat and Zobel, 2010), extrapolated, with p = .9: the first ten ranks
  have 86 % of the weight. 1 where two rankings are the same, 0 where they share nothing.
- Jaccard@20: of the documents in either top 20, the share that is in both.
- Share@20: of a query's first 20 documents, the share in each language; averaged over the queries of a language.

A query that failed in either index is left out, and counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from opensearchpy import OpenSearch

from langshift.evaluate.datasets.dataset import gather
from langshift.evaluate.datasets.texts import indexed_languages
from langshift.evaluate.measures.distributions import shares_of
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.requests import QueryResult
from langshift.languages import UNDETERMINED

DEPTH = 20
PERSISTENCE = 0.9
#: Document language -> mean share, most frequent first.
Shares = dict[str, float]


class Drift(NamedTuple):
    """What changes from one index to another for some queries.

    Attributes:
        queries: how many were answered by both.
        rbo: mean rank-biased overlap; None where there is no query.
        jaccard: mean Jaccard of the first 20; None where there is no query.
        before: shares of the document languages in the first index.
        after: those in the other.
    """

    queries: int
    rbo: float | None
    jaccard: float | None
    before: Shares
    after: Shares

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``drift.json``."""
        return {
            "queries": self.queries,
            f"RBO(p={PERSISTENCE:g})": self.rbo,
            f"Jaccard@{DEPTH}": self.jaccard,
            f"Share@{DEPTH}": {"before": self.before, "after": self.after},
        }


class Overlap(NamedTuple):
    """The drift from one index to another.

    Attributes:
        before: the first index.
        after: the other.
        whole: over all queries. Its shares are means over the query languages' shares, so that each
            language counts alike.
        by_language: query language -> over its queries.
        left_out: how many queries failed in either.
    """

    before: str
    after: str
    whole: Drift
    by_language: Mapping[str, Drift]
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``drift.json``."""
        return {
            "before": self.before,
            "after": self.after,
            "left_out": self.left_out,
            **self.whole.to_dict(),
            "by_language": {language: part.to_dict() for language, part in self.by_language.items()},
        }


Drifts = Sequence[Overlap]


def measure_overlap(
    names: tuple[str, str],
    before: Sequence[QueryResult],
    after: Sequence[QueryResult],
    *,
    queries: Mapping[str, str | None],
    documents: Mapping[str, str | None],
) -> Overlap:
    """Compare two indices' answers to the same queries.

    Args:
        names: the two indices.
        before: the answers of the first.
        after: those of the other.
        queries: query id -> language.
        documents: document id -> language.
    """
    others = {answer.query: answer for answer in after if answer.error is None}
    pairs = [(answer, others[answer.query]) for answer in before if answer.error is None and answer.query in others]
    by_language = gather((queries.get(pair[0].query) or UNDETERMINED, pair) for pair in pairs)
    apart = {language: _drift(by_language[language], documents) for language in sorted(by_language)}
    parts = list(apart.values())
    whole = Drift(
        len(pairs),
        _mean((part.rbo, part.queries) for part in parts),
        _mean((part.jaccard, part.queries) for part in parts),
        mean_shares([part.before for part in parts]),
        mean_shares([part.after for part in parts]),
    )
    return Overlap(*names, whole, apart, len(before) - len(pairs))


def rank_biased_overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """RBO of two rankings without ties, extrapolated from the lengths they have (Webber et al., Eq. 32).

    With X_d the overlap at depth d, s and l the shorter and longer length:
    ``(1-p)/p (Σ_{d≤l} X_d/d p^d + Σ_{s<d≤l} X_s (d-s)/(s d) p^d) + ((X_l - X_s)/l + X_s/s) p^l``.
    1 where both are empty, 0 where one is. (The package ``rbo`` does not go with NumPy 2.)
    """
    short, long = sorted((one, other), key=len)
    if not short:
        return 0.0 if long else 1.0
    p, s, length = PERSISTENCE, len(short), len(long)
    in_short, in_long, overlap, at_short, total = set[str](), set[str](), 0, 0, 0.0
    for depth in range(1, length + 1):
        new_long = long[depth - 1]
        in_long.add(new_long)
        overlap += new_long in in_short
        if depth <= s:
            in_short.add(short[depth - 1])
            overlap += short[depth - 1] in in_long
            at_short = overlap
        else:
            total += at_short * (depth - s) / (s * depth) * p**depth
        total += overlap / depth * p**depth
    return (1 - p) / p * total + ((overlap - at_short) / length + at_short / s) * p**length


def jaccard(one: Sequence[str], other: Sequence[str]) -> float:
    """Shared by all, of two top-20s; 1 where both are empty."""
    first, second = set(one[:DEPTH]), set(other[:DEPTH])
    return len(first & second) / len(first | second) if first or second else 1.0


def shares(ranking: Sequence[str], documents: Mapping[str, str | None]) -> Shares:
    """Language -> its share of the first 20 documents; unknown languages are ``und``."""
    return shares_of(documents.get(name) or UNDETERMINED for name in ranking[:DEPTH])


def mean_shares(given: Sequence[Shares]) -> Shares:
    """The mean of shares, largest first; what has no share of one counts there as 0."""
    languages = {language for one in given for language in one}
    means = {language: fmean(one.get(language, 0.0) for one in given) for language in languages}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


def _drift(pairs: Sequence[tuple[QueryResult, QueryResult]], documents: Mapping[str, str | None]) -> Drift:
    rankings = [tuple([name for name, _ in answer.hits] for answer in pair) for pair in pairs]
    return Drift(
        len(pairs),
        fmean(rank_biased_overlap(one, other) for one, other in rankings),
        fmean(jaccard(one, other) for one, other in rankings),
        mean_shares([shares(one, documents) for one, _ in rankings if one]),
        mean_shares([shares(other, documents) for _, other in rankings if other]),
    )


def _mean(figures: Iterable[tuple[float | None, int]]) -> float | None:
    """The mean of figures, each weighted by its number of queries."""
    known = [(figure, weight) for figure, weight in figures if figure is not None]
    return sum(figure * weight for figure, weight in known) / sum(weight for _, weight in known) if known else None


def drifts(client: OpenSearch, found: Sequence[ReplayResult]) -> Drifts:
    """Compare the first replay with each other one.

    Documents' languages are the dataset's, and the indices' own where it names none.

    Raises:
        ClusterError: the cluster does not tell languages.
    """
    first = found[0]
    known = {name: document.language for name, document in first.dataset.documents.items()} if first.dataset else {}
    for one in found:
        top = (name for answer in one.answers for name, _ in answer.hits[:DEPTH])
        unnamed = dict.fromkeys(name for name in top if known.get(name) is None)
        known.update(indexed_languages(client, one.version, one.fields, unnamed))
    return [
        measure_overlap(
            (first.index, other.index), first.answers, other.answers, queries=first.languages, documents=known
        )
        for other in found[1:]
    ]
