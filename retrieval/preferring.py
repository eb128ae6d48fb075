"""The language preference: what a document in the searcher's language is given more than others, or less.

It is told in units of cosine. A bonus only reorders what was retrieved, so the best of the favoured documents are
retrieved, too: those in the searcher's language, or with a preference below 0 (``--spread``) those in any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import USUAL, Fields
from langshift.retrieval.bodies import LEAST_CANDIDATES, Source, body, filter_clauses, knn
from langshift.retrieval.wanted import NO_FILTERS, Filters, Question, Setting

# How many of the best a mode's scores are compared with cosines over.
SCALED_OVER: Final = 100


def preference_of(question: Question, setting: Setting) -> float:
    """The preference that a question is asked with: none where its language is not known."""
    return 0.0 if question.language == UNDETERMINED else setting.preference


def is_favoured(language: str, question: Question, setting: Setting) -> bool:
    """Whether a document in a language is given the bonus."""
    preference = preference_of(question, setting)
    return preference != 0 and (language == question.language) == (preference > 0)


def favoured(language: str, preference: float, fields: Fields = USUAL) -> dict[str, Any]:
    """The clause that the favoured documents match."""
    same = {"term": {fields.language: language}}
    return same if preference > 0 else {"bool": {"must_not": [same]}}


def dense_preferring(
    vector: NDArray[np.float32],
    language: str,
    preference: float,
    *,
    size: int,
    filters: Filters = NO_FILTERS,
    fields: Fields = USUAL,
    source: Source = True,
) -> dict[str, Any]:
    """A k-nearest-neighbour search with a language preference, in one request.

    The score of a hit is ``(1 + cos(q, z̃) + |beta| · [favoured]) / 2``; those in the searcher's language ``l`` are
    favoured, or with ``beta`` below 0 those in every other. The best ``n`` by this score are among the ``n`` nearest
    of all and the ``n`` nearest of the favoured, whose union is asked for.

    Args:
        vector: query vector, shape (dimension,), float32.
        language: primary tag of the searcher's language.
        preference: beta, in units of cosine.
        size: how many hits.
        filters: field -> values, any of which a hit must have.
        fields: the index's names of fields.
        source: what hits bring.
    """
    k, clauses = max(size, LEAST_CANDIDATES), filter_clauses(filters)
    given_more = favoured(language, preference, fields)
    nearest = nearest_of_both(vector, k, clauses, given_more, fields)
    query = {"bool": {"must": [nearest], "should": [added(given_more, abs(preference) / 2)]}}
    return body(query, size, fields, source)


def nearest_of_both(
    vector: NDArray[np.float32],
    k: int,
    clauses: Sequence[Mapping[str, Any]],
    given_more: Mapping[str, Any],
    fields: Fields = USUAL,
) -> dict[str, Any]:
    """The query for the ``k`` nearest of each shard among all, and the ``k`` nearest among the favoured.

    Args:
        vector: what they are near to, shape (dimension,), float32.
        k: how many.
        clauses: what all must match.
        given_more: what the favoured match.
        fields: the index's names of fields.
    """
    both = [knn(vector, k, clauses, fields), knn(vector, k, [*clauses, given_more], fields)]
    return {"dis_max": {"queries": both}}


def added(which: Mapping[str, Any], score: float) -> dict[str, Any]:
    """The clause that adds a score to that of the documents that match ``which``."""
    return {"constant_score": {"filter": which, "boost": score}}


def bonus(preference: float, own: Sequence[float], dense: Sequence[float]) -> float:
    """What favoured documents are given in a mode whose scores are no cosines.

    ``|beta| · (max s - min s) / (max cos - min cos)``, with ``s`` the mode's own scores, over the best 100 of each:
    as much of the scores' range as ``beta`` is of the cosines'. 0 where all of one are equal.

    Args:
        preference: beta, in units of cosine.
        own: the mode's own scores, best first.
        dense: scores ``(1 + cos) / 2`` of the vectors' search, best first.
    """
    own, dense = own[:SCALED_OVER], dense[:SCALED_OVER]
    if not own or not dense or dense[0] == dense[-1]:
        return 0.0
    return abs(preference) * (own[0] - own[-1]) / (2 * (dense[0] - dense[-1]))
