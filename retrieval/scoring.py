"""What a search would have given documents, also those below its cut: on the scale of its scores."""

from __future__ import annotations

from collections.abc import Sequence

from langshift.retrieval import bodies
from langshift.retrieval.by_vector import bonus_on_cosine, vector_of
from langshift.retrieval.by_words import fused, of_the_run, own_score
from langshift.retrieval.exchange import Body, Exchange
from langshift.retrieval.found import Candidate, How
from langshift.retrieval.preferring import is_favoured, preference_of
from langshift.retrieval.reading import candidates, union
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import Filters, Question, Setting


def by_vector(question: Question, setting: Setting, target: Target, ids: Sequence[str]) -> Exchange[dict[str, float]]:
    """Exact scores of ``dense`` and ``balanced``; documents without a vector are left out."""
    (response,) = yield (_exact(question, target, ids),)
    bonus = bonus_on_cosine(question, setting)
    return {
        hit.id: hit.legs["dense"].score + bonus * is_favoured(hit.language, question, setting)
        for hit in candidates(response, "dense", target.index.fields)
    }


def by_words(
    question: Question, setting: Setting, target: Target, how: How, ids: Sequence[str], *, filters: Filters
) -> Exchange[dict[str, float]]:
    """Scores of ``lexical`` and ``hybrid``; documents that match nothing are left out.

    Where the search itself could not say how its scores were put together, as the cluster's plugin does not, its
    legs are asked for that first.
    """
    if _unknown(question, setting, how):
        depth = how.depth or bodies.LEAST_CANDIDATES
        found = yield from fused(question, setting, target, size=0, depth=depth, filters=filters, source=False)
        how = found.how
    kept = {name: how.kept[name] for name in ids if name in how.kept}
    rest = [name for name in ids if name not in kept]
    if not rest:
        return kept
    asked: dict[str, Body] = {"lexical": _words(question, target, rest)}
    if setting.mode == "hybrid":
        asked["dense"] = _exact(question, target, rest)
    responses = yield tuple(asked.values())
    legs = zip(asked, responses, strict=True)
    scored = union(candidates(response, leg, target.index.fields) for leg, response in legs)
    unretrieved = of_the_run(setting, target)
    return kept | {
        name: (0.0 if unretrieved else own_score(one, setting, how.ranges)) + _bonus(one, question, setting, how)
        for name, one in scored.items()
    }


def _unknown(question: Question, setting: Setting, how: How) -> bool:
    needed = setting.mode == "hybrid" or preference_of(question, setting) != 0
    return needed and not how.ranges and not how.kept


def _bonus(candidate: Candidate, question: Question, setting: Setting, how: How) -> float:
    return abs(how.bonus) * is_favoured(candidate.language, question, setting)


def _exact(question: Question, target: Target, ids: Sequence[str]) -> Body:
    return bodies.exact(vector_of(question), bodies.among(ids), len(ids), target.index.fields)


def _words(question: Question, target: Target, ids: Sequence[str]) -> Body:
    return bodies.lexical(
        question.words,
        question.language,
        target.index.languages,
        size=len(ids),
        filters={"_id": ids},
        fields=target.index.fields,
        source=False,
    )
