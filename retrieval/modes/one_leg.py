"""The modes ``lexical``, words by BM25, and ``sparse``, tokens of a learned sparse encoder by their weights.

With a language preference they are put together with vectors, which give it its scale, see ``legs``.
"""

from collections.abc import Collection
from functools import partial

from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import RankedHits, Retrieved
from langshift.retrieval.modes import legs
from langshift.retrieval.modes.legs import Legs
from langshift.retrieval.modes.mode import SearchMode
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import SearchRequest


def plan(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search by words, or by tokens.

    Raises:
        UsageError: the question has no weights, or too many words for the server.
    """
    if request.preference:
        return (yield from legs.plan(request, _legs(request)))
    leg = request.setting.mode
    body = dsl.documents_body(request, dsl.leg_query(leg, request), request.size)
    if request.sort:
        # Of chunks of one document, which are alike in the field, the best by words comes first.
        body |= {"sort": [*request.sort, "_score"], "track_scores": True}
    (response,) = yield (body,)
    found = hits.candidates(response, leg, request.fields)
    lacks = hits.missing([(found, len(found) >= body["size"])], request)
    return RankedHits(tuple(hits.best_hits(found, request)), missing=lacks)


def _legs(request: SearchRequest) -> Legs:
    leg = request.setting.mode
    return Legs((leg,), lambda one, _: one.legs[leg].score)


#: See ``legs.score``.
score = partial(legs.score, _legs)


def rank(retrieved: Retrieved, request: SearchRequest) -> RankedHits:
    """What words retrieved, of all shards together, with the language preference."""
    if request.preference:
        return legs.rank(_legs, retrieved, request)
    pool = hits.leg_pool(retrieved, request.setting.mode, None, request.depth)
    return RankedHits(tuple(hits.one_per_document(pool.candidates)[: request.size]))


def _needed(request: SearchRequest) -> Collection[str]:
    """The legs that it is ranked by: vectors give a preference its scale."""
    return ("dense", request.setting.mode) if request.preference else (request.setting.mode,)


SPARSE = SearchMode(plan, score, partial(legs.known, _legs), rank, _needed)
LEXICAL = SPARSE._replace(sorts=True)
