"""The mode ``anchored``: what words and vectors together trust moves the query, which then finds it in every language.

Step 1 gathers the documents that may answer. Step 2 is one search by the moved query::

    score = (1 + cos(q', z̃) + bonus · [own language] + w · BM25 / best BM25 · [gathered, other language]) / 2

with ``q'`` and the probabilities ``p`` of ``trust.py``, ``bonus = .7 · spread · Σ own p + beta`` and
``w = .7 · spread``: names and numbers are written alike in many languages. Only documents that step 1 gathered are
given something for their words: that measures as well as all of them, and spares step 2 the words. Where ``beta``
makes the bonus negative, its amount is added to all other documents instead, which is the same order: a score cannot
be below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.plugin.fields import Fields
from langshift.retrieval import bodies, preferring
from langshift.retrieval.bodies import Source
from langshift.retrieval.by_vector import vector_of
from langshift.retrieval.exchange import Body, Exchange
from langshift.retrieval.found import Anchor, Candidate, Found, How, Leg
from langshift.retrieval.reading import candidates, without_legs
from langshift.retrieval.search_gathering import Gathered, bringing_vectors, brought, gather, has_own, unit
from langshift.retrieval.target import Target
from langshift.retrieval.trust import OWN_BONUS, WORDS_BONUS, Trust, trusted, weights
from langshift.retrieval.trust import Candidate as Known
from langshift.retrieval.wanted import NO_FILTERS, Filters, Question, Setting

# A candidate with less weight moves the query by less than a rounding of what is told of it.
_LEAST_WEIGHT: Final = 0.001
_LEAST_LENGTH: Final = 1e-6


def anchored(
    question: Question, setting: Setting, target: Target, *, size: int, depth: int, filters: Filters, source: Source
) -> Exchange[Found]:
    """Search with anchors.

    Args:
        question: what is asked, with its vector.
        setting: with which preference.
        target: what is searched, with its ``trust``.
        size: how many hits.
        depth: how many documents nearest to the moved query each shard chooses the hits from.
        filters: field -> values, any of which a hit and an anchor must have.
        source: what hits bring.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    gathered = yield from gather(question, target, bodies.filter_clauses(filters))
    if not gathered.ids:
        return Found((), How())
    how = _how(gathered, question, setting, target)
    moved = moved_vector(gathered.query, how.anchors, dict(zip(gathered.ids, gathered.vectors, strict=True)))
    body = moved_body(moved, question, setting, target, how, size=size, depth=depth, filters=filters, source=source)
    (response,) = yield (body,)
    hits = tuple(without_legs(response, target.index.fields))
    if target.legs and hits:
        hits = yield from _with_legs(hits, moved, question, target)
    return Found(hits, how)


def scores(question: Question, target: Target, how: How, ids: Sequence[str]) -> Exchange[dict[str, float | None]]:
    """What ``anchored`` would have given documents, exactly, by a script; None for one without a vector.

    Preference and filters had their part in ``how``. The vectors of the run's anchors are read again; where one is gone
    meanwhile, the query is moved without it.
    """
    fields = target.index.fields
    vectors: dict[str, NDArray[np.float64]] = {}
    if how.anchors:
        named = [anchor.id for anchor in how.anchors]
        (response,) = yield (bringing_vectors(bodies.among(named), len(named), fields),)
        vectors = brought(response)
    moved = moved_vector(unit(np.asarray(vector_of(question), dtype=np.float64)), how.anchors, vectors)
    exact = bodies.exact(moved, bodies.among(ids), len(ids), fields)
    exact["query"] = {"bool": {"must": [exact["query"]], "should": _more(question, how, fields)}}
    (response,) = yield (exact,)
    found = {hit.id: hit.score for hit in without_legs(response, fields)}
    return {name: found.get(name) for name in ids}


def _how(gathered: Gathered, question: Question, setting: Setting, target: Target) -> How:
    """What the query is moved towards, and what is added to the cosine."""
    trust = _trust(target)
    probable = trusted(
        gathered.candidates, trust, question.language, documents=gathered.documents, words=gathered.words
    )
    anchors = [
        Anchor(name, float(p), float(weight), _evidence(one))
        for name, p, weight, one in zip(gathered.ids, probable, weights(probable), gathered.candidates, strict=True)
        if weight >= _LEAST_WEIGHT
    ]
    anchors.sort(key=lambda anchor: -anchor.weight)
    bonus = 0.0
    if has_own(question, target):
        own = sum(float(p) for p, one in zip(probable, gathered.candidates, strict=True) if one.own)
        bonus = OWN_BONUS * trust.spread * own + preferring.preference_of(question, setting)
    given = {
        name: WORDS_BONUS * trust.spread * one.words / gathered.best_words / 2
        for name, one in zip(gathered.ids, gathered.candidates, strict=True)
        if one.words and not one.own
    }
    return How(bonus=bonus / 2, anchors=tuple(anchors), given=given)


def _evidence(candidate: Known) -> dict[str, float]:
    return {"words": candidate.words, "cosine": candidate.cosine, "own_language": float(candidate.own)}


def _trust(target: Target) -> Trust:
    if target.trust is None:
        raise ValueError("an anchored search needs the index's Target.trust")
    return target.trust


def moved_vector(
    query: NDArray[np.float64], anchors: Sequence[Anchor], vectors: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.float32]:
    """What the second step searches with: ``q' = q̂ + Σ p(d)^1.5 · ẑ_d``, at length 1, shape (dimension,), float32.

    Args:
        query: the query's vector, of unit length, shape (dimension,).
        anchors: with their weights ``p^1.5``.
        vectors: document -> its vector, of unit length; an anchor that is gone meanwhile has no part.
    """
    moved = query.copy()
    for anchor in anchors:
        if anchor.id in vectors:
            moved += anchor.weight * vectors[anchor.id]
    # The one candidate may lie opposite the query; what is left of that has no direction.
    moved = unit(moved) if np.linalg.norm(moved) > _LEAST_LENGTH else query
    return moved.astype(np.float32)


def moved_body(
    moved: NDArray[np.float32],
    question: Question,
    setting: Setting,
    target: Target,
    how: How,
    *,
    size: int,
    depth: int = bodies.LEAST_CANDIDATES,
    filters: Filters = NO_FILTERS,
    source: Source = True,
) -> Body:
    """The body of the second step.

    The mode's own bonus and the words only reorder the ``depth`` nearest of each shard: they are worth less than a
    spread each, and a union costs as much time as a second search. With a preference, which may be worth any amount,
    the nearest of the favoured documents are looked at, too.

    Args:
        moved: as ``moved_vector`` gives it, shape (dimension,), float32.
        question: what is asked.
        setting: with which preference.
        target: what is searched.
        how: what is given for language and words; as the search's ``Found`` tells it.
        size: how many hits.
        depth: how many documents nearest to the moved query each shard chooses the hits from.
        filters: field -> values, any of which a hit must have.
        source: what hits bring.
    """
    fields, clauses = target.index.fields, bodies.filter_clauses(filters)
    if how.bonus and preferring.preference_of(question, setting):
        given_more = preferring.favoured(question.language, how.bonus, fields)
        nearest = preferring.nearest_of_both(moved, depth, clauses, given_more, fields)
    else:
        nearest = bodies.knn(moved, depth, clauses, fields)
    query = {"bool": {"must": [nearest], "should": _more(question, how, fields)}}
    return bodies.body(query, size, fields, source)


def _more(question: Question, how: How, fields: Fields) -> list[dict[str, Any]]:
    """What is added to the cosine: for the language, and for words in the others."""
    worth = [({"term": {"_id": name}}, given) for name, given in how.given.items()]
    if how.bonus:
        worth.append((preferring.favoured(question.language, how.bonus, fields), abs(how.bonus)))
    return [preferring.added(which, boost) for which, boost in worth]


def _with_legs(
    hits: Sequence[Candidate], moved: NDArray[np.float32], question: Question, target: Target
) -> Exchange[tuple[Candidate, ...]]:
    """The hits with what each part of the score says of them, ranked among the hits; one step."""
    fields, ids = target.index.fields, [hit.id for hit in hits]
    words = bodies.matching(question.words, question.language, target.index.languages, [bodies.among(ids)], fields)
    asked = {
        "dense": bodies.exact(vector_of(question), bodies.among(ids), len(ids), fields),
        "moved": bodies.exact(moved, bodies.among(ids), len(ids), fields),
        "lexical": bodies.body(words, len(ids), fields, source=False),
    }
    responses = yield tuple(asked.values())
    legs: dict[str, dict[str, Leg]] = {name: {} for name in ids}
    for leg, response in zip(asked, responses, strict=True):
        for hit in candidates(response, leg, fields):
            legs[hit.id][leg] = hit.legs[leg]
    return tuple(hit._replace(legs=legs[hit.id]) for hit in hits)
