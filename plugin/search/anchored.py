"""The mode ``anchored``: what words and vectors together trust moves the query, which then finds it in every language.

Step 1 gathers the documents that may answer. Step 2 is one search by the moved query::

    score = (1 + cos(q', z̃) + bonus · [own language] + w · BM25 / best BM25 · [other language]) / 2

with ``q'`` and the probabilities ``p`` of ``trust.py``, ``bonus = .7 · spread · Σ own p + beta`` and
``w = .7 · spread``: names and numbers are written alike in many languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.fields import value_at
from langshift.plugin.search import bodies, preferring
from langshift.plugin.search.bodies import Source
from langshift.plugin.search.by_vector import vector_of
from langshift.plugin.search.exchange import Exchange
from langshift.plugin.search.found import Anchor, Candidate, Found, How, Leg
from langshift.plugin.search.gathering import Gathered, gather, has_own, others_matching, unit
from langshift.plugin.search.reading import candidates
from langshift.plugin.search.target import Target
from langshift.plugin.search.trust import OWN_BONUS, WORDS_BONUS, Trust, trusted, weights
from langshift.plugin.search.wanted import Filters, Question, Setting

# A candidate with less weight moves the query by less than a rounding of what is told of it.
_LEAST_WEIGHT: Final = 0.001


def anchored(
    question: Question, setting: Setting, target: Target, *, size: int, depth: int, filters: Filters, source: Source
) -> Exchange[Found]:
    """Search with anchors."""
    clauses = bodies.filter_clauses(filters)
    gathered = yield from gather(question, target, clauses)
    if not gathered.ids:
        return Found((), How())
    how = _how(gathered, question, setting, target)
    moved = _moved(gathered.query, how.anchors, dict(zip(gathered.ids, gathered.vectors, strict=True)))
    query = _query(moved, question, setting, target, how, k=depth, clauses=clauses)
    (response,) = yield (bodies.body(query, size, target.index.fields, source),)
    hits = tuple(hit._replace(legs={}) for hit in candidates(response, "", target.index.fields))
    if target.legs and hits:
        hits = yield from _with_legs(hits, moved, question, target)
    return Found(hits, how)


def scores(
    question: Question, setting: Setting, target: Target, how: How, ids: Sequence[str], *, filters: Filters
) -> Exchange[dict[str, float | None]]:
    """Score documents as ``anchored`` would have: exactly, by a script, with the vectors of the run's anchors."""
    del setting, filters  # both had their part in `how`, and have none in what a document is given
    fields = target.index.fields
    query = unit(np.asarray(vector_of(question), dtype=np.float64))
    known = {}
    if how.anchors:
        (response,) = yield (bodies.named([anchor.id for anchor in how.anchors], fields, [fields.vector]),)
        for hit in response["hits"]["hits"]:
            vector = np.asarray(value_at(hit["_source"], fields.vector), dtype=np.float64)
            known[hit["_id"]] = unit(vector)
    moved = _moved(query, how.anchors, known)
    exact = bodies.exact(moved, {"bool": {"filter": bodies.filter_clauses({"_id": ids})}}, len(ids), fields)
    exact["query"] = {"bool": {"must": [exact["query"]], "should": _more(question, target, how)}}
    (response,) = yield (exact,)
    found = {hit["_id"]: float(hit["_score"]) for hit in response["hits"]["hits"]}
    return {name: found.get(name) for name in ids}


def _how(gathered: Gathered, question: Question, setting: Setting, target: Target) -> How:
    """What the query is moved towards, and what is added to the cosine."""
    trust, language = _trust(target), question.language
    documents = target.index.documents if target.index.fields.texts else target.index.counts.get(language, 0)
    probable = trusted(
        gathered.candidates, trust, language, documents=documents // target.index.shards, words=gathered.words
    )
    own = sum(float(p) for p, one in zip(probable, gathered.candidates, strict=True) if one.own)
    anchors = [
        Anchor(name, float(p), float(weight), {"words": one.words, "cosine": one.cosine, "own": float(one.own)})
        for name, p, weight, one in zip(gathered.ids, probable, weights(probable), gathered.candidates, strict=True)
        if weight >= _LEAST_WEIGHT
    ]
    anchors.sort(key=lambda anchor: -anchor.weight)
    bonus = OWN_BONUS * trust.spread * own + preferring.preference_of(question, setting)
    share = WORDS_BONUS * trust.spread / gathered.best_words if gathered.best_words else 0.0
    return How(bonus=bonus / 2, anchors=tuple(anchors), words=share / 2)


def _trust(target: Target) -> Trust:
    if target.trust is None:
        raise ValueError("an anchored search needs the index's Target.trust")
    return target.trust


def _moved(
    query: NDArray[np.float64], anchors: Sequence[Anchor], vectors: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.float32]:
    """``q̂ + Σ p^1.5 · ẑ`` at length 1, shape (dimension,), float32; an anchor that is gone meanwhile has no part."""
    moved = query.copy()
    for anchor in anchors:
        if anchor.id in vectors:
            moved += anchor.weight * vectors[anchor.id]
    return unit(moved).astype(np.float32)


def _query(
    moved: NDArray[np.float32],
    question: Question,
    setting: Setting,
    target: Target,
    how: How,
    *,
    k: int,
    clauses: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The second step. Its own bonus is too small to bring anything from below the best ``k``; a preference is not."""
    fields = target.index.fields
    nearest = bodies.knn(moved, k, clauses, fields)
    if preferring.preference_of(question, setting):
        given_more = preferring.favoured(question.language, how.bonus, fields)
        also = bodies.knn(moved, k, [*clauses, given_more], fields)
        nearest = {"dis_max": {"queries": [nearest, also]}}
    return {"bool": {"must": [nearest], "should": _more(question, target, how)}}


def _more(question: Question, target: Target, how: How) -> list[dict[str, Any]]:
    """What is added to the cosine: for the language, and for words in the others."""
    fields, clauses = target.index.fields, []
    if how.bonus and has_own(question, target):
        given_more = preferring.favoured(question.language, how.bonus, fields)
        clauses.append({"constant_score": {"filter": given_more, "boost": abs(how.bonus)}})
    others = others_matching(question, target)
    if how.words and others is not None:
        clauses.append({"bool": {**others["bool"], "boost": how.words}})
    return clauses


def _with_legs(
    hits: Sequence[Candidate], moved: NDArray[np.float32], question: Question, target: Target
) -> Exchange[tuple[Candidate, ...]]:
    """The hits with what each part of the score says of them, ranked among the hits; one step."""
    fields, ids = target.index.fields, [hit.id for hit in hits]
    among = {"bool": {"filter": bodies.filter_clauses({"_id": ids})}}
    words = bodies.matching(
        question.words, question.language, target.index.languages, bodies.filter_clauses({"_id": ids}), fields
    )
    asked = {
        "dense": bodies.exact(vector_of(question), among, len(ids), fields),
        "moved": bodies.exact(moved, among, len(ids), fields),
        "lexical": bodies.body(words, len(ids), fields, source=False),
    }
    responses = yield tuple(asked.values())
    legs: dict[str, dict[str, Leg]] = {name: {} for name in ids}
    for leg, response in zip(asked, responses, strict=True):
        for hit in candidates(response, leg, fields):
            legs[hit.id][leg] = hit.legs[leg]
    return tuple(hit._replace(legs=legs[hit.id]) for hit in hits)
