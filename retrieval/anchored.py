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
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.anchor_model import (
    OWN_BONUS,
    WORDS_BONUS,
    AnchorEvidence,
    AnchorModel,
    anchor_probabilities,
    weights,
)
from langshift.retrieval.anchor_model import AnchorEvidence as Known
from langshift.retrieval.dense import vector_of
from langshift.retrieval.dsl import Source
from langshift.retrieval.hits import Anchor, Leg, RankedHits, ScoredDoc, ScoringContext, candidates, without_legs
from langshift.retrieval.settings import NO_FILTERS, Filters, SearchContext, SearchQuery, SearchSettings
from langshift.retrieval.steps import Body, Response, SearchPlan

# Of what each leg retrieves, so many may answer; more change nothing that could be measured, and cost time.
NEAREST: Final = 5
OWN_WORDS: Final = 3
OTHER_WORDS: Final = 5
_COUNTED: Final = "words"
_VECTOR: Final = "vector"
# From doc values, which takes a fifth of the time that reading it out of the document does. Every document's values
# come in one and the same array, so each needs a copy.
_COPY: Final = (
    "if (doc[params.field].size() == 0) { return null; } float[] stored = doc[params.field].value; "
    "float[] copy = new float[stored.length]; "
    "for (int i = 0; i < stored.length; ++i) { copy[i] = stored[i]; } return copy;"
)


class Candidates(NamedTuple):
    """What may answer a query.

    Attributes:
        ids: of the candidates; a document without a vector is none.
        candidates: what is known of each.
        vectors: of unit length, shape (candidates, dimension), float64.
        query: the query's vector, of unit length, shape (dimension,), float64.
        words: how many different words the query has, as the analyzer of its language parts it; at least 1.
        best_words: the highest BM25 score in any language; 0 where nothing matches.
        documents: how many documents of the searcher's language a shard holds on average, each of which counts its
            words for itself; of any language where the index has text fields of its own, which all languages share.
    """

    ids: Sequence[str]
    candidates: Sequence[AnchorEvidence]
    vectors: NDArray[np.float64]
    query: NDArray[np.float64]
    words: int
    best_words: float
    documents: float


def collect_candidates(
    question: SearchQuery, target: SearchContext, clauses: Sequence[Mapping[str, Any]] = ()
) -> SearchPlan[Candidates]:
    """Ask for the nearest by vector, the best by words in the searcher's language, and those in all others.

    Args:
        question: what is asked, with its vector.
        target: what is searched.
        clauses: what a candidate must match.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    fields, own = target.index.fields, question.language
    query = unit(np.asarray(vector_of(question), dtype=np.float64))
    bodies = candidate_bodies(question, target, clauses)
    answered = dict(zip(bodies, (yield tuple(bodies.values())), strict=True))
    scores: dict[str, float] = {}
    languages: dict[str, str] = {}
    known: dict[str, NDArray[np.float64]] = {}
    for leg, response in answered.items():
        for one in candidates(response, leg, fields):
            languages[one.id] = one.language
            if leg != "dense":
                scores[one.id] = one.legs[leg].score
        known |= hit_vectors(response)
    vectors = np.array(list(known.values())).reshape(len(known), len(query))
    found = [
        AnchorEvidence(languages[name] == own != UNDETERMINED, scores.get(name, 0.0), float(cosine))
        for name, cosine in zip(known, vectors @ query, strict=True)
    ]
    return Candidates(
        ids=list(known),
        candidates=found,
        vectors=vectors,
        query=query,
        words=_count(answered.get("own", {})),
        best_words=max(scores.values(), default=0.0),
        documents=_documents(own, target) / target.index.shards,
    )


def has_own(question: SearchQuery, target: SearchContext) -> bool:
    """Whether the index has documents in the searcher's language."""
    return question.language != UNDETERMINED and target.index.counts.get(question.language, 0) > 0


def others_matching(
    question: SearchQuery, target: SearchContext, clauses: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any] | None:
    """The query for the words of a question in documents that are not in its language; None where there are none."""
    index, own = target.index, question.language
    if index.documents <= (index.counts.get(own, 0) if own != UNDETERMINED else 0):
        return None
    others = [language for language in index.languages if language != own]
    other = [] if own == UNDETERMINED else [{"bool": {"must_not": [{"term": {index.fields.language: own}}]}}]
    return dsl.matching(question.words, UNDETERMINED, others, [*clauses, *other], index.fields)


def body_with_vectors(query: Mapping[str, Any], size: int, fields: FieldNames) -> Body:
    """The body of a search whose hits bring their vectors, which ``brought`` reads."""
    script = {"source": _COPY, "params": {"field": fields.vector}}
    return dsl.body(query, size, fields, source=False) | {"script_fields": {_VECTOR: {"script": script}}}


def hit_vectors(response: Response) -> dict[str, NDArray[np.float64]]:
    """Document -> its vector at length 1, shape (dimension,), float64; documents without a vector are left out."""
    found = {hit["_id"]: hit.get("fields", {}).get(_VECTOR, [None])[0] for hit in response["hits"]["hits"]}
    return {name: unit(np.asarray(vector, np.float64)) for name, vector in found.items() if vector is not None}


def unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector at length 1; zeros stay zeros."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def candidate_bodies(
    question: SearchQuery, target: SearchContext, clauses: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Body]:
    """The bodies of the step, whose hits bring their vectors.

    Args:
        question: what is asked, with its vector.
        target: what is searched.
        clauses: what a candidate must match: ``bodies.filter_clauses(filters)``.

    Returns:
        Leg -> body: ``dense``, ``own`` where there are documents in the searcher's language, ``others`` where there
        are others.
    """
    fields, own = target.index.fields, question.language
    nearest = dsl.knn(vector_of(question), dsl.LEAST_CANDIDATES, clauses, fields)
    bodies = {"dense": body_with_vectors(nearest, NEAREST, fields)}
    if has_own(question, target):
        among = [*clauses, {"term": {fields.language: own}}]
        words = dsl.matching(question.words, own, (), among, fields)
        bodies["own"] = body_with_vectors(words, OWN_WORDS, fields) | {"suggest": _counting(question, target)}
    others = others_matching(question, target, clauses)
    if others is not None:
        bodies["others"] = body_with_vectors(others, OTHER_WORDS, fields)
    return bodies


def _counting(question: SearchQuery, target: SearchContext) -> dict[str, Any]:
    """What makes a search tell how an analyzer parts the words: a suggester that never suggests anything."""
    fields, own = target.index.fields, question.language
    if fields.texts:
        suggester = {"field": fields.texts[0]}
    elif own in target.index.texts:
        suggester = {"field": f"text.{own}"}
    else:
        # No document has a text in this language, only titles; the field of languages is there always.
        suggester = {"field": fields.language, "analyzer": "standard"}
    never = {"suggest_mode": "missing", "min_word_length": 1000, "prefix_length": 1000, "size": 1}
    return {_COUNTED: {"text": question.words, "term": {**suggester, **never}}}


def _count(response: Response | Mapping[str, Any]) -> int:
    suggestions = response.get("suggest", {}).get(_COUNTED, [])
    return max(1, len({part["text"] for part in suggestions}))


def _documents(language: str, target: SearchContext) -> int:
    index = target.index
    return index.documents if index.fields.texts else index.counts.get(language, 0)


# A candidate with less weight moves the query by less than a rounding of what is told of it.
_LEAST_WEIGHT: Final = 0.001
_LEAST_LENGTH: Final = 1e-6


def anchored(
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    *,
    size: int,
    depth: int,
    filters: Filters,
    source: Source,
) -> SearchPlan[RankedHits]:
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
    gathered = yield from collect_candidates(question, target, dsl.filter_clauses(filters))
    if not gathered.ids:
        return RankedHits((), ScoringContext())
    how = _how(gathered, question, setting, target)
    moved = moved_vector(gathered.query, how.anchors, dict(zip(gathered.ids, gathered.vectors, strict=True)))
    body = moved_body(moved, question, setting, target, how, size=size, depth=depth, filters=filters, source=source)
    (response,) = yield (body,)
    hits = tuple(without_legs(response, target.index.fields))
    if target.legs and hits:
        hits = yield from _with_legs(hits, moved, question, target)
    return RankedHits(hits, how)


def scores(
    question: SearchQuery, target: SearchContext, how: ScoringContext, ids: Sequence[str]
) -> SearchPlan[dict[str, float | None]]:
    """What ``anchored`` would have given documents, exactly, by a script; None for one without a vector.

    Preference and filters had their part in ``how``. The vectors of the run's anchors are read again; where one is gone
    meanwhile, the query is moved without it.
    """
    fields = target.index.fields
    vectors: dict[str, NDArray[np.float64]] = {}
    if how.anchors:
        named = [anchor.id for anchor in how.anchors]
        (response,) = yield (body_with_vectors(dsl.among(named), len(named), fields),)
        vectors = hit_vectors(response)
    moved = moved_vector(unit(np.asarray(vector_of(question), dtype=np.float64)), how.anchors, vectors)
    exact = dsl.exact(moved, dsl.among(ids), len(ids), fields)
    exact["query"] = {"bool": {"must": [exact["query"]], "should": _more(question, how, fields)}}
    (response,) = yield (exact,)
    found = {hit.id: hit.score for hit in without_legs(response, fields)}
    return {name: found.get(name) for name in ids}


def _how(gathered: Candidates, question: SearchQuery, setting: SearchSettings, target: SearchContext) -> ScoringContext:
    """What the query is moved towards, and what is added to the cosine."""
    trust = _trust(target)
    probable = anchor_probabilities(
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
        bonus = OWN_BONUS * trust.spread * own + dsl.preference_of(question, setting)
    given = {
        name: WORDS_BONUS * trust.spread * one.words / gathered.best_words / 2
        for name, one in zip(gathered.ids, gathered.candidates, strict=True)
        if one.words and not one.own
    }
    return ScoringContext(bonus=bonus / 2, anchors=tuple(anchors), given=given)


def _evidence(candidate: Known) -> dict[str, float]:
    return {"words": candidate.words, "cosine": candidate.cosine, "own_language": float(candidate.own)}


def _trust(target: SearchContext) -> AnchorModel:
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
    question: SearchQuery,
    setting: SearchSettings,
    target: SearchContext,
    how: ScoringContext,
    *,
    size: int,
    depth: int = dsl.LEAST_CANDIDATES,
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
    fields, clauses = target.index.fields, dsl.filter_clauses(filters)
    if how.bonus and dsl.preference_of(question, setting):
        given_more = dsl.preferred_clause(question.language, how.bonus, fields)
        nearest = dsl.nearest_of_both(moved, depth, clauses, given_more, fields)
    else:
        nearest = dsl.knn(moved, depth, clauses, fields)
    query = {"bool": {"must": [nearest], "should": _more(question, how, fields)}}
    return dsl.body(query, size, fields, source)


def _more(question: SearchQuery, how: ScoringContext, fields: FieldNames) -> list[dict[str, Any]]:
    """What is added to the cosine: for the language, and for words in the others."""
    worth = [({"term": {"_id": name}}, given) for name, given in how.given.items()]
    if how.bonus:
        worth.append((dsl.preferred_clause(question.language, how.bonus, fields), abs(how.bonus)))
    return [dsl.added(which, boost) for which, boost in worth]


def _with_legs(
    hits: Sequence[ScoredDoc], moved: NDArray[np.float32], question: SearchQuery, target: SearchContext
) -> SearchPlan[tuple[ScoredDoc, ...]]:
    """The hits with what each part of the score says of them, ranked among the hits; one step."""
    fields, ids = target.index.fields, [hit.id for hit in hits]
    words = dsl.matching(question.words, question.language, target.index.languages, [dsl.among(ids)], fields)
    bodies = {
        "dense": dsl.exact(vector_of(question), dsl.among(ids), len(ids), fields),
        "moved": dsl.exact(moved, dsl.among(ids), len(ids), fields),
        "lexical": dsl.body(words, len(ids), fields, source=False),
    }
    responses = yield tuple(bodies.values())
    legs: dict[str, dict[str, Leg]] = {name: {} for name in ids}
    for leg, response in zip(bodies, responses, strict=True):
        for hit in candidates(response, leg, fields):
            legs[hit.id][leg] = hit.legs[leg]
    return tuple(hit._replace(legs=legs[hit.id]) for hit in hits)
