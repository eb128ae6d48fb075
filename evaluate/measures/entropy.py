"""Entropy: how evenly the languages share what is found first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from langshift.evaluate.measures.distribution import found_by_language, mean
from langshift.evaluate.measures.family import Family, Measure, Option
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Pooled, Scores


def is_base(value: object) -> bool:
    """Whether a value can be the base of a logarithm here: a number above 1."""
    return type(value) in (int, float) and math.isfinite(value) and value > 1  # type: ignore[arg-type,operator]


BASE = Option(math.e, "a number above 1, such as 2 for bits", is_base)
"""The base of the logarithm. LAURA names none; its entropies (2.03 to 2.27 for 13 languages, Table 4) are in nats."""


def language_entropy(measure: Measure, ranked: Ranked) -> Scores:
    """Entropy@k: ``-Σ p log p`` of the languages' shares of the first k documents, mean over query languages.

    The shares are those of ``Share``: averaged over the queries of a query language first. The option
    ``base`` is the logarithm's, e (nats) by default.

    Direction: report. Source: LAURA, Table 4.
    """
    from scipy.stats import entropy

    rows = found_by_language(ranked, measure.depth)
    figures = []
    for pairs in rows.values():
        shares = list(mean([shares for _, shares in pairs]).values())
        figures.append((float(entropy(shares, base=measure.option("base"))), len(pairs)))
    return over_query_languages(measure, ranked, figures)


def over_query_languages(measure: Measure, ranked: Ranked, figures: Sequence[tuple[float, int]]) -> Scores:
    """A measure whose figures belong to query languages, not to queries: their mean.

    Args:
        measure: what was computed.
        ranked: the run.
        figures: for each query language, its figure and the number of queries behind it.
    """
    counted = sum(queries for _, queries in figures)
    return Pooled(
        {},
        len(ranked.queries) - counted,
        figure=fmean(figure for figure, _ in figures) if figures else None,
        counted=counted,
        again=lambda queries: measure.family.compute(measure, ranked.only(queries)),
    )


ENTROPY = Family(
    "Entropy",
    "entropy of the languages' shares of the first k documents, in nats unless base says otherwise",
    "report",
    "LAURA, Table 4",
    language_entropy,
    "Entropy@k",
    options={"base": BASE},
)
