"""Reranking as a part of a search: candidates are gathered, scored by the reranker, and put in its order.

::

    search in the mode → the best rerank_depth ──────┐
    the nearest of each language (LAURA, stage 1) ───┴→ score → + beta · (max score - min score) · [own language]

The language preference comes after the reranker, so that what a passage is worth is judged without it; ``beta`` is in
units of the range of the reranker's scores over the candidates of the query. What the mode found below its first
``rerank_depth`` stands behind all candidates, in the order of the mode.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from langshift.debias.encoders.base import Matrix
from langshift.errors import LangshiftError
from langshift.plugin.representations import TokenVectors
from langshift.retrieval import dsl, entries, hits
from langshift.retrieval.modes import MODES
from langshift.retrieval.plans import SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, SearchRequest
from langshift.retrieval.rerank.features import CandidateNumbers, FeatureReranker, gather
from langshift.retrieval.rerank.late_interaction import LateInteractionReranker
from langshift.retrieval.rerank.rerankers import Reranker
from langshift.retrieval.result import title_and_text
from langshift.retrieval.search import search as find
from langshift.retrieval.search import with_passages

#: Legs of a reranked hit: what the mode said of it, and what the reranker.
RETRIEVAL: Final = "retrieval"
RERANK: Final = "rerank"


def search(request: SearchRequest, reranker: Reranker) -> SearchPlan[hits.RankedHits]:
    """Search, and put the best hits in the reranker's order.

    With ``one_per_group`` the document that is shown of each group is scored, and stands for the group.

    Args:
        request: with a reranker in its setting.
        reranker: that one, opened.

    Returns:
        Of the plan: the hits. Where the reranker fails and its fallback is ``keep``, those of the mode, with a note.

    Raises:
        UsageError: as in a search without a reranker.
        LangshiftError: the reranker failed.
    """
    found = yield from _reranked(request, reranker)
    return (yield from with_passages(request, found)) if request.passages else found


def _reranked(request: SearchRequest, reranker: Reranker) -> SearchPlan[hits.RankedHits]:
    setting, plain = request.setting, retrieval_request(request)
    if isinstance(reranker, FeatureReranker) and not reranker.strength(setting.mode) and not request.preference:
        return (yield from find(replace(request, setting=setting.retrieval, passages=0)))
    found, pool = yield from search_candidates(request)
    if not pool:
        return found
    try:
        given, notes = yield from _scores(plain, reranker, found, pool)
    except LangshiftError as error:
        if setting.rerank_fallback == "fail":
            raise
        note = f"The hits are not reranked: {error}"
        kept = yield from entries.with_sources(request, found.hits[: request.size])
        return found._replace(hits=kept, notes=(*found.notes, note))
    lowest = min(given)
    bonus = request.preference * (max(given) - lowest)
    scored = (
        hit._replace(score=score, legs={**hit.legs, RERANK: hits.Leg(score, None)})
        for hit, score in zip(pool, given, strict=True)
    )
    ordered = hits.best_first(hits.with_bonus(scored, abs(bonus), request))
    known = {hit.document: hit.score or 0.0 for hit in ordered}
    rest = (hit for hit in found.hits[setting.rerank_depth : request.size] if hit.document not in known)
    behind = [hit._replace(score=score_behind(lowest, hit.score)) for hit in rest]
    best = yield from entries.with_sources(request, (*ordered, *behind)[: request.size])
    how = replace(found.how, bonus=bonus, reranked=known, lowest=lowest, mode_bonus=found.how.bonus)
    return found._replace(hits=best, how=how, notes=(*found.notes, *notes))


def scores(request: SearchRequest, how: hits.ScoringContext, ids: Sequence[str]) -> SearchPlan[dict[str, float | None]]:
    """What ``search`` would have given documents, see ``entries.scores``: what was no candidate stands behind."""
    rest = [name for name in ids if name not in how.reranked]
    found = yield from entries.scores(retrieval_request(request), replace(how, bonus=how.mode_bonus), rest)
    if how.lowest is not None:
        found = {name: score_behind(how.lowest, score) for name, score in found.items()}
    return {name: how.reranked.get(name, found.get(name)) for name in ids}


def search_candidates(request: SearchRequest) -> SearchPlan[tuple[hits.RankedHits, list[hits.ScoredDoc]]]:
    """Search, and gather what is to be reranked.

    Args:
        request: with a reranker in its setting.

    Returns:
        Of the plan: what the mode found; and the candidates with the scores of the mode, those that were only found by
        their language at the end.
    """
    setting, plain = request.setting, retrieval_request(request)
    found = yield from find(plain)
    pool = [
        hit._replace(legs={**hit.legs, RETRIEVAL: hits.Leg(hit.score or 0.0, rank)})
        for rank, hit in enumerate(found.hits[: setting.rerank_depth], 1)
    ]
    if not setting.one_per_group:
        pool += yield from _of_each_language(plain, found, setting.rerank_depth, setting.rerank_per_language)
    return found, pool


def search_numbers(request: SearchRequest, spread: float) -> SearchPlan[tuple[list[str], CandidateNumbers | None]]:
    """Search, and gather what is known of what is to be reranked.

    Args:
        request: with a reranker in its setting.
        spread: of the index.

    Returns:
        Of the plan: the ids of the candidates' documents, and the numbers; None where there are no candidates.
    """
    found, pool = yield from search_candidates(request)
    numbers = (yield from gather(retrieval_request(request), found, pool, spread)) if pool else None
    return [one.document for one in pool], numbers


def retrieval_request(request: SearchRequest) -> SearchRequest:
    """The request for candidates, without fields and passages.

    Nearness alone may bring as many as it looks at: the nearest of most languages are then among them.
    """
    least = LEAST_CANDIDATES if request.setting.rerank_per_language and _by_nearness(request) else 0
    size = max(request.size, request.setting.rerank_depth, least)
    return replace(request, setting=request.setting.retrieval, size=size, source=False, passages=0)


def _by_nearness(request: SearchRequest) -> bool:
    """Whether what a search finds of a language are the nearest of that language."""
    mode = MODES[request.setting.mode]
    return mode.by_nearness and not request.setting.one_per_group and request.fields.parent is None


def score_behind(lowest: float, score: float | None) -> float | None:
    """The score of what was no candidate: below those of all that were, in the order of the mode.

    Args:
        lowest: of the reranker's scores.
        score: that of the mode, 0 or above; None where it matches nothing.
    """
    return None if score is None else lowest - 1 / (1 + score)


def _of_each_language(
    request: SearchRequest, found: hits.RankedHits, depth: int, wanted: int
) -> SearchPlan[list[hits.ScoredDoc]]:
    """The nearest documents of each language that are not among the best ``depth``, with the scores of the mode.

    None where the query has no vector: by words, the languages cannot be compared. A language of which enough are
    found already is not searched for.
    """
    index, fields, vector = request.target.index, request.fields, request.question.vector
    among = request.filters.languages
    tags = [tag for tag in index.languages if among is None or tag in among]
    if not (wanted and tags) or vector is None:
        return []
    clauses, nearest, bodies = request.filters.clauses, dict[str, list[hits.ScoredDoc]](), {}
    known = found.hits if _by_nearness(request) else ()
    for tag in tags:
        nearest[tag] = [hit for hit in known if hit.language == tag][:wanted]
        if len(nearest[tag]) < wanted:
            query = dsl.knn(vector, LEAST_CANDIDATES, [*clauses, {"term": {fields.language: tag}}], fields)
            bodies[tag] = dsl.once_each(dsl.body(query, wanted, fields, source=False), fields)
    if bodies:
        responses = yield tuple(bodies.values())
        nearest |= {tag: hits.without_legs(one, fields) for tag, one in zip(bodies, responses, strict=True)}
    seen = {hit.document for hit in found.hits[:depth]}
    more = [one._replace(legs={}) for tag in tags for one in nearest[tag] if one.document not in seen]
    # A document may be near by its chunks in several languages.
    more = hits.one_per_document(more)
    if MODES[request.setting.mode].by_vector or not more:
        return more
    given = yield from entries.scores(request, found.how, [one.document for one in more])
    return [one._replace(score=given.get(one.document)) for one in more]


def _scores(
    request: SearchRequest, reranker: Reranker, found: hits.RankedHits, pool: Sequence[hits.ScoredDoc]
) -> SearchPlan[tuple[list[float], tuple[str, ...]]]:
    """What the reranker says of each candidate, and what a person should know of that."""
    if isinstance(reranker, FeatureReranker):
        numbers = yield from gather(request, found, pool, reranker.spread)
        return [float(score) for score in reranker.scores(numbers, request.setting.mode)], ()
    ids, words, tokens = [one.id for one in pool], request.question.words, request.target.index.tokens
    notes: tuple[str, ...] = ()
    if isinstance(reranker, LateInteractionReranker) and tokens is not None:
        if reranker.made(tokens):
            vectors = yield from _token_vectors(request, reranker, tokens, ids)
            return [float(score) for score in reranker.scores_of_vectors(words, vectors)], ()
        index = request.target.index.name
        notes = (f"{index} has vectors of tokens by {tokens.encoder}, so {reranker.name} has read the texts instead.",)
    passages = yield from _passages(request, ids)
    return [float(score) for score in reranker.scores(words, passages)], notes


def _passages(request: SearchRequest, ids: Sequence[str]) -> SearchPlan[list[str]]:
    """The texts of entries, each with its title before it where it has one; one step."""
    fields = request.fields
    texts = yield from entries.sources_of(replace(request, source=fields.text_fields), ids)
    return [". ".join(filter(None, title_and_text(texts.get(one, {}), fields))) for one in ids]


def _token_vectors(
    request: SearchRequest, reranker: LateInteractionReranker, tokens: TokenVectors, ids: Sequence[str]
) -> SearchPlan[list[Matrix]]:
    """The vectors of entries' tokens, as they are kept; of those that have none, from their texts, in another step."""
    sources = yield from entries.sources_of(replace(request, source=(tokens.field,)), ids)
    vectors = {one: reranker.unpacked(sources.get(one, {}).get(tokens.field)) for one in ids}
    if lacking := [one for one in ids if vectors[one] is None]:
        passages = yield from _passages(request, lacking)
        vectors |= zip(lacking, reranker.encoder.encode_documents(passages), strict=True)
    return [vector for one in ids if (vector := vectors[one]) is not None]
