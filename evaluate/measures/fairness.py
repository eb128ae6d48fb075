"""PEER, language shares, entropy, JS and KL, and PSI: how even a ranking is."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.measures.base import (
    Measure,
    MeasureCell,
    MeasureFamily,
    MeasureOption,
    MeasureTable,
    RankedMaterial,
    Scores,
    mean_of,
)
from langshift.evaluate.measures.standard import calculate
from langshift.languages import UNDETERMINED

Distribution = Mapping[str, float]
"""Language -> share; the shares add to 1."""


def top_distribution(ranked: RankedMaterial, query: str, depth: int) -> Distribution | None:
    """Each language's share of a query's first documents; None where it has no answer.

    Three English and two Chinese documents make .6 and .4. An answer of fewer than ``depth``
    documents is divided by its own length. Documents of unknown language are ``und``.
    """
    top = ranked.top(query, depth)
    return _even(ranked.language(document) or UNDETERMINED for document in top) if top else None


def relevant_distribution(ranked: RankedMaterial, query: str) -> Distribution | None:
    """The languages of a query's relevant documents, each of the same weight; None where none is known.

    This stands in for LAURA's oracle (section 2.1), which is the language of the documents that give
    the best answer, several of them with the same weight where they tie: that needs utility scores.
    """
    languages = set(ranked.languages_of_relevant(query).values())
    return _even(languages) if languages else None


def mean(distributions: Sequence[Distribution]) -> Distribution:
    """The average of several distributions, sorted by language."""
    total: Counter[str] = Counter()
    for distribution in distributions:
        total.update(distribution)
    return {language: total[language] / len(distributions) for language in sorted(total)}


def top_distributions(ranked: RankedMaterial, depth: int) -> dict[str, list[tuple[str, Distribution]]]:
    """Query language -> the queries that have an answer, each with the languages of its first documents."""
    rows = {}
    for language, queries in ranked.by_language().items():
        pairs = [(query, shares) for query in queries if (shares := top_distribution(ranked, query, depth)) is not None]
        if pairs:
            rows[language] = pairs
    return rows


def _even(languages: Iterable[str]) -> Distribution:
    counts = Counter(languages)
    return {language: count / counts.total() for language, count in counts.items()}


def is_base(value: object) -> bool:
    """Whether a value can be the base of a logarithm here: a number above 1."""
    return type(value) in (int, float) and math.isfinite(value) and value > 1  # type: ignore[arg-type,operator]


BASE = MeasureOption(math.e, "a number above 1, such as 2 for bits", is_base)
"""The base of the logarithm. LAURA names none; its entropies (2.03 to 2.27 for 13 languages, Table 4) are in nats."""


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
        pooled=MeasureCell(mean_of([figure for figure, _ in figures]), counted),
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
    from scipy.spatial.distance import jensenshannon

    def distance(pair: Pair) -> float:
        root = float(jensenshannon(*pair, base=measure.option("base")))
        return root if measure.option("root") else root**2

    return _compare(measure, ranked, distance)


def kullback_leibler(measure: Measure, ranked: RankedMaterial) -> Scores:
    """KL@k: Kullback-Leibler divergence ``KL(found || stand-in oracle)`` of the languages' shares of the first k.

    Distributions, oracle and averages are those of ``JS``. Base: e unless ``base`` says otherwise.
    Smoothing: ``smoothing`` (1e-6 unless given) is added to every language's share in both
    distributions, over the languages of the corpus, and both are divided by their new sums; without
    it, one document in a language that holds no answer would make the divergence infinite. Root: none.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    from scipy.stats import entropy

    def divergence(pair: Pair) -> float:
        shares, oracle = (part + measure.option("smoothing") for part in pair)
        return float(entropy(shares / shares.sum(), oracle / oracle.sum(), base=measure.option("base")))

    return _compare(measure, ranked, divergence)


def _compare(measure: Measure, ranked: RankedMaterial, distance: Callable[[Pair], float]) -> Scores:
    corpus = {language for language in ranked.material.documents.values() if language}
    figures = []
    for pairs in top_distributions(ranked, measure.depth).values():
        both = [
            (shares, oracle) for query, shares in pairs if (oracle := relevant_distribution(ranked, query)) is not None
        ]
        if both:
            shares, oracle = (mean(list(part)) for part in zip(*both, strict=True))
            figures.append((distance(_aligned(shares, oracle, corpus)), len(both)))
    return over_query_languages(measure, ranked, figures)


def _aligned(one: Distribution, other: Distribution, corpus: set[str]) -> Pair:
    """Both distributions as arrays over the same languages, shape (languages,), float64."""
    languages = sorted(corpus | one.keys() | other.keys())
    first, second = (np.array([part.get(language, 0.0) for language in languages]) for part in (one, other))
    return first, second


def _small(value: object) -> bool:
    return type(value) in (int, float) and 0 < value < 1  # type: ignore[operator]


_ROOT = MeasureOption(True, "True or False", lambda value: isinstance(value, bool))
_SMOOTHING = MeasureOption(1e-6, "a number between 0 and 1", _small)
_JS_OPTIONS, _KL_OPTIONS = {"base": BASE, "root": _ROOT}, {"base": BASE, "smoothing": _SMOOTHING}
JS = MeasureFamily("JS@k", "low", "LAURA, Table 4", jensen_shannon, _JS_OPTIONS, across=True)
KL = MeasureFamily("KL@k", "low", "LAURA, Table 4", kullback_leibler, _KL_OPTIONS, across=True)


_ENOUGH = 2
_UNDEFINED = (
    "undefined, since no query has two retrieved relevant documents in each of two languages, "
    "and with one a language the test gives the same p for every order."
)


def equal_expected_rank(measure: Measure, ranked: RankedMaterial) -> Scores:  # noqa: ARG001 - it has no cutoff or options
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
    return Scores(per_query, len(ranked.queries) - len(per_query), note=None if per_query else _UNDEFINED)


def _ranks(ranked: RankedMaterial, query: str) -> list[list[int]]:
    """The ranks, from 1, of the relevant documents found, a list for each language."""
    languages = ranked.languages_of_relevant(query)
    ranks: dict[str, list[int]] = {}
    for rank, document in enumerate(ranked.rankings.get(query, ()), 1):
        if document in languages:
            ranks.setdefault(languages[document], []).append(rank)
    return list(ranks.values())


PEER = MeasureFamily("PEER", "high", "LAURA, appendix A, Eq. 6", equal_expected_rank, across=True)


BINS = 20
_EDGES = [number / BINS for number in range(1, BINS)]
STEP = 512
BUCKETS = ("Q1", "Q2", "Q3", "Q4")
_NEEDS = "undefined without the evidence's positions and the documents' lengths (evidence.tsv)."

Place = tuple[str, int]
"""A length bucket and a position bin."""


def position_bin(position: float) -> int:
    """The bin, 0 to 19, of a relative position from 0 to 1: 20 bins of equal width, 1 itself in the last."""
    return bisect(_EDGES, position)


def bucket(length: int) -> str | None:
    """The bucket of a length in tokens: Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048; None above that."""
    number = max(length - 1, 0) // STEP
    return BUCKETS[number] if number < len(BUCKETS) else None


def position_sensitivity(measure: Measure, ranked: RankedMaterial) -> Scores:
    """PSI@k, position sensitivity index: ``1 - min(s) / max(s)`` over bins of the evidence's relative position.

    ``s`` are the mean nDCG@k of the queries in each of 20 bins of equal width, within a bucket of
    the relevant document's length in tokens (Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048). Empty
    bins are left out and counted in the note. A bucket has no PSI where fewer than two of its bins
    hold queries, or where every nDCG is 0. The figure is the mean over the buckets that have one; the
    table has each bucket's, and nDCG by bin. A query goes by its relevant document with evidence, the
    one of the highest grade where it has several; queries without evidence, or whose document has no
    length or more than 2048 tokens, are left out.

    Direction: low. Source: PosIR, sections 3.1, 4.1 and 4.2.
    """
    import ir_measures

    places = {query: place for query in ranked.queries if (place := _place(ranked, query))}
    if not places:
        return Scores({}, len(ranked.queries), note=_NEEDS)
    qrels = {query: ranked.material.qrels[query] for query in places}
    found = calculate(ir_measures.nDCG @ measure.depth, qrels, ranked.run)
    bins: dict[Place, list[float]] = {}
    for query, place in places.items():
        bins.setdefault(place, []).append(found[query])
    indices = {name: _index([fmean(bins[name, i]) for i in range(BINS) if (name, i) in bins]) for name in BUCKETS}
    defined = [index for index in indices.values() if index is not None]
    used = [name for name in BUCKETS if any(name == place[0] for place in bins)]
    empty = len(used) * BINS - len(bins)
    return Scores(
        {},
        len(ranked.queries) - len(places),
        note=f"{empty} of {len(used) * BINS} position bins hold no query and are left out." if empty else None,
        table=_table(bins, indices, used),
        pooled=MeasureCell(mean_of(defined), len(places)),
        again=lambda queries: position_sensitivity(measure, ranked.only(queries)),
    )


def _place(ranked: RankedMaterial, query: str) -> Place | None:
    evidence = ranked.material.evidence.get(query, {})
    grades = {document: grade for document, grade in ranked.relevant(query).items() if document in evidence}
    if not grades:
        return None
    document = min(grades, key=lambda name: (-grades[name], name))
    length = ranked.material.lengths.get(document)
    name = None if length is None else bucket(length)
    return None if name is None else (name, position_bin(evidence[document]))


def _index(means: list[float]) -> float | None:
    return 1 - min(means) / max(means) if len(means) >= _ENOUGH and max(means) > 0 else None


def _table(bins: Mapping[Place, list[float]], indices: Mapping[str, float | None], used: list[str]) -> MeasureTable:
    cells = {
        f"{number / BINS:.2f}-{(number + 1) / BINS:.2f}": {
            name: MeasureCell(fmean(bins[name, number]), len(bins[name, number]))
            for name in used
            if (name, number) in bins
        }
        for number in range(BINS)
    }
    counts = {name: sum(len(found) for place, found in bins.items() if place[0] == name) for name in used}
    # First, so that the columns stand in the order of the buckets even where the first bins are empty.
    head = {"PSI": {name: MeasureCell(indices[name], counts[name]) for name in used}}
    return MeasureTable("relative position of the evidence", "length of the document", head | cells)


PSI = MeasureFamily("PSI@k", "low", "PosIR, sections 4.1 and 4.2", position_sensitivity)


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
        pooled=MeasureCell(mean_of(own), len(per_query)),
        again=lambda queries: language_share(measure, ranked.only(queries)),
    )


SHARE = MeasureFamily("Share@k", "report", "LAURA, section 2.1", language_share)
