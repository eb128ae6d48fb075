"""The mode ``anchored``: what words and vectors together trust moves the query, which then finds it in every language.

Step 1 gathers the documents that may answer, ``anchoring`` says how far each leads the query, and step 2 is one search
by the moved query.
"""

from collections.abc import Sequence
from typing import Any, Final

from langshift.languages import UNDETERMINED
from langshift.retrieval import dsl, hits
from langshift.retrieval.hits import Leg, RankedHits, ScoredDoc, ScoringContext
from langshift.retrieval.modes.anchoring import Candidates, candidates_of, hit_vectors, scoring
from langshift.retrieval.modes.mode import SearchMode
from langshift.retrieval.plans import Body, SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, SearchRequest

# Of what each leg retrieves, so many may answer; more change nothing that could be measured, and cost time.
NEAREST: Final = 5
OWN_WORDS: Final = 3
OTHER_WORDS: Final = 5


def plan(request: SearchRequest) -> SearchPlan[RankedHits]:
    """Search with anchors, which match the filters as hits do; each shard chooses from the ``depth`` nearest.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    gathered = yield from collect_candidates(request)
    if not gathered.ids:
        return RankedHits((), ScoringContext())
    how = scoring(gathered, request)
    responses = yield dsl.nearest_bodies(request, how, request.depth)
    best, lacks = hits.merged(responses, request)
    if request.target.legs and best:
        best = yield from _with_legs(best, request, how)
    return RankedHits(tuple(best), how, missing=lacks, nearest=gathered.nearest)


def score(request: SearchRequest, found: RankedHits, clauses: dsl.Clauses, size: int) -> SearchPlan[list[ScoredDoc]]:
    """What matches all clauses and the filters, scored exactly, by a script; not what has no vector.

    The preference had its part in how the search scored.
    """
    (response,) = yield (dsl.exact_body(request, found.how, [*clauses, *request.filters.clauses], size),)
    return hits.without_legs(response, request.fields)


def collect_candidates(request: SearchRequest) -> SearchPlan[Candidates]:
    """Ask for the nearest by vector, the best by words in the searcher's language, and those in all others.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    fields = request.fields
    bodies = candidate_bodies(request)
    answered = dict(zip(bodies, (yield tuple(bodies.values())), strict=True))
    found = {leg: hits.candidates(response, leg, fields) for leg, response in answered.items()}
    languages = {one.id: one.language for members in found.values() for one in members}
    scores = {one.id: one.legs[leg].score for leg, members in found.items() if leg != "dense" for one in members}
    stored, words = hits.stored_vectors(*answered.values()), hits.count_words(answered.get("own", {}))
    known = hit_vectors(stored, languages, request.target.shift)
    gathered = candidates_of(request, known, languages, scores, words)
    near = found["dense"]
    return gathered._replace(nearest=2 * near[0].legs["dense"].score - 1 if near else None)


def candidate_bodies(request: SearchRequest) -> dict[str, Body]:
    """The bodies of the step, whose hits match the filters and bring their vectors.

    Returns:
        Leg -> body: ``dense``, ``own`` where there are documents in the searcher's language, ``others`` where there
        are others.
    """
    index, fields, own = request.target.index, request.fields, request.question.language
    words, clauses = request.question.words, request.filters.clauses
    counted, vector = counting(request) if request.has_own else None, dsl.vector_of(request.question)
    nearest = dsl.knn(vector, LEAST_CANDIDATES, clauses, fields)
    bodies = {"dense": dsl.body_with_vectors(nearest, NEAREST, fields)}
    in_own: list[dict[str, Any]] = [] if own == UNDETERMINED else [{"term": {fields.language: own}}]
    if counted is not None:
        query = dsl.matching(words, own, (), [*clauses, *in_own], fields)
        bodies["own"] = dsl.body_with_vectors(query, OWN_WORDS, fields) | {"suggest": counted}
    if index.documents > (index.counts.get(own, 0) if in_own else 0):
        others = [language for language in index.languages if language != own]
        elsewhere = [{"bool": {"must_not": in_own}}] if in_own else []
        query = dsl.matching(words, UNDETERMINED, others, [*clauses, *elsewhere], fields)
        bodies["others"] = dsl.body_with_vectors(query, OTHER_WORDS, fields)
    return bodies


def counting(request: SearchRequest) -> dict[str, Any]:
    """What makes a search tell how an analyzer parts the words: a suggester that never suggests anything."""
    fields, own = request.fields, request.question.language
    if not fields.split:
        suggester = {"field": fields.texts[0] + (f".{own}" if own in fields.analyzed else "")}
    elif own in request.target.index.texts:
        suggester = {"field": f"{fields.main_text}.{own}"}
    else:
        # No document has a text in this language, only titles; the field of languages is there always.
        suggester = {"field": fields.language, "analyzer": "standard"}
    never = {"suggest_mode": "missing", "min_word_length": 1000, "prefix_length": 1000, "size": 1}
    return {hits.COUNTED: {"text": request.question.words, "term": {**suggester, **never}}}


def _with_legs(found: Sequence[ScoredDoc], request: SearchRequest, how: ScoringContext) -> SearchPlan[list[ScoredDoc]]:
    """The hits with what each part of the score says of them, ranked among the hits; one step."""
    fields, ids = request.fields, [hit.id for hit in found]
    question, languages, shown = request.question, request.target.index.languages, dsl.filter_clauses({"_id": ids})
    vector, moved = dsl.vector_of(question), dsl.searched_vector(request, how)
    words = dsl.matching(question.words, question.language, languages, [dsl.among(ids)], fields)
    bodies = {
        "dense": dsl.exact(vector, shown, len(ids), fields),
        "moved": dsl.exact(moved, shown, len(ids), fields),
        "lexical": dsl.body(words, len(ids), fields, source=False),
    }
    responses = yield tuple(bodies.values())
    legs: dict[str, dict[str, Leg]] = {name: {} for name in ids}
    for leg, response in zip(bodies, responses, strict=True):
        for hit in hits.candidates(response, leg, fields):
            legs[hit.id][leg] = hit.legs[leg]
    return [hit._replace(legs=legs[hit.id]) for hit in found]


MODE = SearchMode(plan, score, by_cosine=True, by_counts=True, wide=True)
