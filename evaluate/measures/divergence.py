"""JS and KL: how far the languages found first are from the languages that hold the answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.measures.distribution import Distribution, found_by_language, mean, stand_in
from langshift.evaluate.measures.entropy import BASE, over_query_languages
from langshift.evaluate.measures.family import Family, Measure, Option
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Scores

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def jensen_shannon(measure: Measure, ranked: Ranked) -> Scores:
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


def kullback_leibler(measure: Measure, ranked: Ranked) -> Scores:
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


def _compare(measure: Measure, ranked: Ranked, distance: Callable[[Pair], float]) -> Scores:
    corpus = {language for language in ranked.material.documents.values() if language}
    figures = []
    for pairs in found_by_language(ranked, measure.depth).values():
        both = [(shares, oracle) for query, shares in pairs if (oracle := stand_in(ranked, query)) is not None]
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


JS = Family(
    "JS",
    "Jensen-Shannon distance of the languages found to those of the relevant documents (stand-in for LAURA's oracle)",
    "low",
    "LAURA, Table 4",
    jensen_shannon,
    "JS@k",
    options={"base": BASE, "root": Option(True, "True or False", lambda value: isinstance(value, bool))},
    across=True,
)
KL = Family(
    "KL",
    "Kullback-Leibler divergence of the languages found from those of the relevant documents (stand-in for the oracle)",
    "low",
    "LAURA, Table 4",
    kullback_leibler,
    "KL@k",
    options={"base": BASE, "smoothing": Option(1e-6, "a number between 0 and 1", _small)},
    across=True,
)
