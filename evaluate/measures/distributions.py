"""How evenly a ranking shows languages: Share, Entropy, JS and KL of its first documents, and PEER."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.datasets.dataset import gather
from langshift.evaluate.measures import base
from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.languages import UNDETERMINED

#: Language -> share; the shares add to 1.
Distribution = dict[str, float]


def mean(distributions: Sequence[Distribution]) -> Distribution:
    """The average of several distributions, sorted by language."""
    total: Counter[str] = Counter()
    for distribution in distributions:
        total.update(distribution)
    return {language: total[language] / len(distributions) for language in sorted(total)}


def top_distributions(ranked: RankedMaterial, depth: int) -> dict[str, list[tuple[str, Distribution]]]:
    """Query language -> the queries that have an answer, each with the languages' shares of its first documents.

    Three English and two Chinese documents make .6 and .4. An answer of fewer than ``depth``
    documents is divided by its own length. Documents of unknown language are ``und``.
    """
    rows = {}
    for row, queries in ranked.by_language().items():
        tops = [(query, top) for query in queries if (top := ranked.top(query, depth))]
        if tops:
            rows[row] = [(query, shares_of(ranked.language(one) or UNDETERMINED for one in top)) for query, top in tops]
    return rows


def shares_of(languages: Iterable[str]) -> Distribution:
    """The share of each of some languages, in the order in which they come."""
    counts = Counter(languages)
    return {language: count / counts.total() for language, count in counts.items()}


_REAL = (int, float)
#: The base of the logarithm. LAURA names none; its entropies (2.03 to 2.27 for 13 languages, Table 4) are in nats.
BASE = base.MeasureOption(
    math.e, "a number above 1, such as 2 for bits", lambda value: type(value) in _REAL and 1 < value < math.inf
)


def language_entropy(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Entropy@k: ``-Σ p log p`` of the languages' shares of the first k documents, mean over query languages.

    The shares are those of ``Share``: averaged over the queries of a query language first. The option
    ``base`` is the logarithm's, e (nats) by default.

    Direction: report. Source: LAURA, Table 4.
    """
    from scipy.stats import entropy

    rows = top_distributions(ranked, measure.depth)
    figures = []
    for pairs in rows.values():
        shares = list(mean([shares for _, shares in pairs]).values())
        figures.append((float(entropy(shares, base=measure.option("base"))), len(pairs)))
    return over_query_languages(measure, ranked, figures)


def over_query_languages(measure: Measure, ranked: RankedMaterial, figures: Sequence[tuple[float, int]]) -> Scores:
    """A measure whose figures belong to query languages, not to queries: their mean.

    Args:
        measure: what was computed.
        ranked: the run.
        figures: for each query language, its figure and the number of queries behind it.
    """
    counted = sum(queries for _, queries in figures)
    return Scores(
        {},
        len(ranked.queries) - counted,
        pooled=MeasureCell(base.mean_of([figure for figure, _ in figures]), counted),
        again=lambda queries: measure.family.compute(measure, ranked.only(queries)),
    )


ENTROPY = MeasureFamily("Entropy@k", "report", "LAURA, Table 4", language_entropy, {"base": BASE})


Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def jensen_shannon(measure: Measure, ranked: RankedMaterial) -> Scores:
    """JS@k: Jensen-Shannon distance of the languages' shares of the first k documents to the stand-in oracle's.

    For each query language, over the queries that have an answer and a relevant document of known
    language, both distributions are averaged over these queries, then compared; the figure is the mean
    over query languages. The oracle is a stand-in: the languages of the
    query's relevant documents, each of the same weight, since there are no utility scores.

    Base: e unless ``base`` says otherwise. Root: taken (the distance) unless ``root=False`` (the
    divergence). Smoothing: none needed. LAURA states neither base nor root; its figures (Table 4: JS
    .203 beside KL .186, .090 beside .041) fit the natural logarithm and the root, as SciPy has it.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    power = 1 if measure.option("root") else 2
    return _compare(measure, ranked, lambda pair: shannon_distance(pair, measure.option("base")) ** power)


def shannon_distance(pair: Pair, base: float = math.e) -> float:
    """Jensen-Shannon distance of two distributions: the root of the divergence."""
    from scipy.spatial.distance import jensenshannon

    # Rounding may leave less than 0 of two distributions that are alike, and SciPy takes its root.
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(jensenshannon(*pair, base=base)))


def kullback_leibler(measure: Measure, ranked: RankedMaterial) -> Scores:
    """KL@k: Kullback-Leibler divergence ``KL(found || stand-in oracle)`` of the languages' shares of the first k.

    Distributions, oracle and averages are those of ``JS``. Base: e unless ``base`` says otherwise.
    Smoothing: ``smoothing`` (1e-6 unless given) is added to every language's share in both
    distributions, over the languages of the corpus, and both are divided by their new sums; without
    it, one document in a language that holds no answer would make the divergence infinite. Root: none.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    options = measure.option("base"), measure.option("smoothing")
    return _compare(measure, ranked, lambda pair: smoothed_divergence(pair, *options))


def smoothed_divergence(pair: Pair, base: float = math.e, smoothing: float = 1e-6) -> float:
    """Kullback-Leibler divergence ``KL(first || second)`` of two distributions, ``smoothing`` added to every share."""
    from scipy.stats import entropy

    return float(entropy(*(part + smoothing for part in pair), base=base))


def aligned(one: Distribution, other: Distribution, languages: Iterable[str | None]) -> Pair:
    """Two distributions as arrays over the same languages: theirs and some more, shape (languages,), sorted."""
    every = sorted({language for language in (*languages, *one, *other) if language})
    first, second = (np.array([part.get(language, 0.0) for language in every]) for part in (one, other))
    return first, second


def _compare(measure: Measure, ranked: RankedMaterial, distance: Callable[[Pair], float]) -> Scores:
    """Compare with the languages of a query's relevant documents; ``evaluate rag`` has LAURA's own oracle."""
    figures = []
    for pairs in top_distributions(ranked, measure.depth).values():
        known = [(shares, set(ranked.languages_of_relevant(query).values())) for query, shares in pairs]
        both = [(shares, shares_of(languages)) for shares, languages in known if languages]
        if both:
            one, other = (mean(part) for part in zip(*both, strict=True))
            figures.append((distance(aligned(one, other, ranked.material.documents.values())), len(both)))
    return over_query_languages(measure, ranked, figures)


_ROOT = base.MeasureOption(True, "True or False", lambda value: isinstance(value, bool))
_SMOOTHING = base.MeasureOption(1e-6, "a number between 0 and 1", lambda value: type(value) in _REAL and 0 < value < 1)
_JS_OPTIONS, _KL_OPTIONS = {"base": BASE, "root": _ROOT}, {"base": BASE, "smoothing": _SMOOTHING}
JS = MeasureFamily("JS@k", "low", "LAURA, Table 4", jensen_shannon, _JS_OPTIONS, across=True)
KL = MeasureFamily("KL@k", "low", "LAURA, Table 4", kullback_leibler, _KL_OPTIONS, across=True)


_ENOUGH = 2
_TWO, _EVERY = "two", "all"
_UNDEFINED = (
    "undefined, because no query has two retrieved relevant documents in each of two languages; "
    "with one per language, the test gives the same p for every order."
)


def equal_expected_rank(measure: Measure, ranked: RankedMaterial) -> Scores:
    """PEER, probability of equal expected rank: the p-value of a Kruskal-Wallis test, mean over queries.

    ``PEER(q) = p(KW({R_q,l}))``: for each language l, ``R_q,l`` are the ranks, in the whole answer, of the
    retrieved relevant documents in l. Documents of unknown language stay out.

    LAURA averages over all queries. Here a query counts only where at least two languages have two or more
    such documents (those with a single one then take part), since with one document a language p is the
    same for every order; the note says how many are left out. ``queries='all'`` gives the paper's mean, over
    every query with a relevant document: where fewer than two languages have a retrieved one, it
    counts 1, which the paper does not say, but the code of PEER's authors (Yang et al., 2024) does.

    Direction: high, for near 1 no language is ranked apart. Source: LAURA, appendix A, Eq. 6.
    """
    from scipy.stats import kruskal

    every, per_query = measure.option("queries") == _EVERY, {}
    for query in ranked.queries:
        ranks = _ranks(ranked, query)
        if sum(len(group) >= _ENOUGH for group in ranks) >= _ENOUGH or (every and len(ranks) > 1):
            per_query[query] = float(kruskal(*ranks).pvalue)
        elif every and ranked.languages_of_relevant(query):
            per_query[query] = 1.0
    left_out = len(ranked.queries) - len(per_query)
    return Scores(per_query, left_out, None if every or not left_out else _of_two(len(per_query), left_out))


def _of_two(counted: int, left_out: int) -> str:
    """What a mean over some of the queries leaves out."""
    if not counted:
        return _UNDEFINED
    return (
        f"over {counted:,} of {counted + left_out:,} queries; the others are left out, because no two languages have "
        "two retrieved relevant documents each (PEER(queries='all') counts them)."
    )


def _ranks(ranked: RankedMaterial, query: str) -> list[list[int]]:
    """The ranks, from 1, of the relevant documents found, a list for each language."""
    languages = ranked.languages_of_relevant(query)
    ranks = gather((languages.get(document), rank) for rank, document in enumerate(ranked.rankings.get(query, ()), 1))
    return list(ranks.values())


_QUERIES = {"queries": base.MeasureOption(_TWO, "'two' or 'all'", lambda value: value in (_TWO, _EVERY))}
PEER = MeasureFamily("PEER", "high", "LAURA, appendix A, Eq. 6", equal_expected_rank, _QUERIES, across=True)


def language_share(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Share@k: each language's share of the first k documents, averaged per query language first.

    The table holds, for each query language, the mean over its queries of each document language's
    share; a row adds to 1. A query's own figure is the share of documents in its language; the
    measure's is the mean of these per query language first, then over query languages. Queries
    without answer have no shares and are left out, as are those of unknown language; documents of
    unknown language are ``und``.

    Direction: report. Source: LAURA, section 2.1, vanilla distribution.
    """
    rows = top_distributions(ranked, measure.depth)
    per_query = {query: shares.get(row, 0.0) for row, pairs in rows.items() for query, shares in pairs}
    cells = {
        row: {
            language: MeasureCell(share, len(pairs))
            for language, share in mean([shares for _, shares in pairs]).items()
        }
        for row, pairs in rows.items()
    }
    own = [fmean(per_query[query] for query, _ in pairs) for pairs in rows.values()]
    return Scores(
        per_query,
        len(ranked.queries) - len(per_query),
        table=MeasureTable("query language", "document language", cells),
        pooled=MeasureCell(base.mean_of(own), len(per_query)),
        again=lambda queries: language_share(measure, ranked.only(queries)),
    )


SHARE = MeasureFamily("Share@k", "report", "LAURA, section 2.1", language_share)
