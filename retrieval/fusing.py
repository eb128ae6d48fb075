"""Two legs of a search put together: by neural-search's ``hybrid`` query, or here with the same result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.fields import USUAL, Fields
from langshift.retrieval.bodies import Source, body, filter_clauses, knn, matching
from langshift.retrieval.wanted import NO_FILTERS, Filters, Fusion, Setting

RANK_CONSTANT: Final = 60
# What neural-search gives the lowest score of a leg, so that it is more than what the leg did not retrieve.
LOWEST: Final = 0.001
# Scores of one document by the graph and by a script are this near, relative to 1.
_NEAR: Final = 5e-7

Range = tuple[float, float]
"""The lowest and the highest score that a leg retrieved."""


def hybrid(
    vector: NDArray[np.float32],
    words: str,
    language: str,
    others: Sequence[str] = (),
    *,
    size: int,
    depth: int,
    fusion: Fusion = "min-max",
    lexical_weight: float = 0.3,
    filters: Filters = NO_FILTERS,
    fields: Fields = USUAL,
    source: Source = True,
) -> dict[str, Any]:
    """A search by vector and by words, put together by the cluster's neural-search plugin.

    The score of a hit is that of ``min_max`` or ``rrf`` over its two legs. The pipeline that does it is in the
    request: nothing is installed in the cluster.

    Args:
        vector: query vector, shape (dimension,), float32.
        words: the query.
        language: primary language tag of the query, or ``und``.
        others: the other languages of the index, most frequent first.
        size: how many hits.
        depth: how many of each leg every shard brings; scores are normalised over these, so it does not
            go with ``size``.
        fusion: how the legs are put together.
        lexical_weight: the share of the words, 0 to 1.
        filters: field -> values, any of which a hit must have.
        fields: the index's names of fields.
        source: what hits bring.

    Raises:
        UsageError: the query has too many words for the server.
    """
    clauses = filter_clauses(filters)
    legs = [knn(vector, depth, clauses, fields), matching(words, language, others, clauses, fields)]
    query = {"hybrid": {"queries": legs, "pagination_depth": depth}}
    return body(query, size, fields, source) | {"search_pipeline": _pipeline(fusion, lexical_weight)}


def _pipeline(fusion: Fusion, lexical_weight: float) -> dict[str, Any]:
    weights = {"weights": [1 - lexical_weight, lexical_weight]}
    if fusion == "rrf":
        combination = {"technique": "rrf", "rank_constant": RANK_CONSTANT, "parameters": weights}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": weights},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def weights(setting: Setting) -> dict[str, float]:
    """Leg -> its share."""
    return {"dense": 1 - setting.lexical_weight, "lexical": setting.lexical_weight}


def range_of(scores: Iterable[float]) -> Range | None:
    """The lowest and the highest score; None where there is none."""
    found = sorted(scores)
    return (found[0], found[-1]) if found else None


def normalised(score: float, lowest: float, highest: float) -> float:
    """A leg's score as neural-search's ``min_max`` normalises it: ``(s - min) / (max - min)``.

    The lowest is given .001; where all are equal each is given 1; what is below the lowest, and was not retrieved
    for that, 0.
    """
    margin = _NEAR * max(1.0, abs(lowest))
    if score < lowest - margin:
        return 0.0
    if lowest == highest:
        return 1.0
    return LOWEST if score <= lowest + margin else (score - lowest) / (highest - lowest)


def min_max(legs: Mapping[str, float], ranges: Mapping[str, Range], shares: Mapping[str, float]) -> float:
    """``Σ w_leg · (s_leg - min_leg) / (max_leg - min_leg)``; a leg that has no score for the document adds 0.

    Args:
        legs: leg -> the document's score.
        ranges: leg -> lowest and highest score that it retrieved.
        shares: leg -> its weight; together 1.
    """
    return sum(shares[leg] * normalised(score, *ranges[leg]) for leg, score in legs.items() if leg in ranges)


def rrf(ranks: Mapping[str, int], shares: Mapping[str, float]) -> float:
    """Reciprocal rank fusion: ``Σ w_leg / (60 + rank_leg)``, over the legs that retrieved the document.

    Args:
        ranks: leg -> the document's rank, counted from 1.
        shares: leg -> its weight; together 1.
    """
    return sum(shares[leg] / (RANK_CONSTANT + rank) for leg, rank in ranks.items())
