"""The first step of ``anchored``: the documents that may answer a query, and what words and vectors say of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import Fields
from langshift.plugin.search import bodies
from langshift.plugin.search.by_vector import vector_of
from langshift.plugin.search.exchange import Body, Exchange, Response
from langshift.plugin.search.reading import candidates
from langshift.plugin.search.target import Target
from langshift.plugin.search.trust import Candidate
from langshift.plugin.search.wanted import Question

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


class Gathered(NamedTuple):
    """What may answer a query.

    Attributes:
        ids: of the candidates.
        candidates: what is known of each.
        vectors: of unit length, shape (candidates, dimension), float64.
        query: the query's vector, of unit length, shape (dimension,), float64.
        words: how many words the query has, as the analyzer of its language parts it; at least 1.
        best_words: the highest BM25 score in any language; 0 where nothing matches.
    """

    ids: Sequence[str]
    candidates: Sequence[Candidate]
    vectors: NDArray[np.float64]
    query: NDArray[np.float64]
    words: int
    best_words: float


def gather(question: Question, target: Target, clauses: Sequence[Mapping[str, Any]] = ()) -> Exchange[Gathered]:
    """Ask for the nearest by vector, the best by words in the searcher's language, and those in all others.

    Args:
        question: what is asked, with its vector.
        target: what is searched.
        clauses: what a candidate must match.

    Raises:
        UsageError: the question has no vector, or too many words for the server.
    """
    fields = target.index.fields
    asked = _bodies(question, target, clauses)
    answered = dict(zip(asked, (yield tuple(asked.values())), strict=True))
    by_words = {leg: _words(answered[leg], fields) for leg in ("own", "others") if leg in answered}
    scores = {name: score for found in by_words.values() for name, score in found.items()}
    query = unit(np.asarray(vector_of(question), dtype=np.float64))
    known: dict[str, tuple[str, NDArray[np.float64]]] = {}
    for response in answered.values():
        for hit, one in zip(response["hits"]["hits"], candidates(response, "", fields), strict=True):
            # A document may have no vector.
            if stored := hit.get("fields", {}).get(_VECTOR, [None])[0]:
                known[one.id] = one.language, unit(np.asarray(stored, dtype=np.float64))
    vectors = np.array([vector for _, vector in known.values()]).reshape(len(known), len(query))
    found = [
        Candidate(language == question.language != UNDETERMINED, scores.get(name, 0.0), float(cosine))
        for (name, (language, _)), cosine in zip(known.items(), vectors @ query, strict=True)
    ]
    best = max(scores.values(), default=0.0)
    return Gathered(list(known), found, vectors, query, _count(answered.get("own", {})), best)


def has_own(question: Question, target: Target) -> bool:
    """Whether the index has documents in the searcher's language."""
    return question.language != UNDETERMINED and target.index.counts.get(question.language, 0) > 0


def others_matching(
    question: Question, target: Target, clauses: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any] | None:
    """The query for the words of a question in documents of other languages; None where the index has no others."""
    fields, own = target.index.fields, question.language
    others = [language for language in target.index.languages if language != own]
    if not others:
        return None
    other = [] if own == UNDETERMINED else [{"bool": {"must_not": [{"term": {fields.language: own}}]}}]
    return bodies.matching(question.words, UNDETERMINED, others, [*clauses, *other], fields)


def unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector at length 1; zeros stay zeros."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _bodies(question: Question, target: Target, clauses: Sequence[Mapping[str, Any]]) -> dict[str, Body]:
    fields, own = target.index.fields, question.language
    nearest = bodies.knn(vector_of(question), bodies.LEAST_CANDIDATES, clauses, fields)
    asked = {"dense": _bringing(nearest, NEAREST, fields)}
    if has_own(question, target):
        among = [*clauses, {"term": {fields.language: own}}]
        words = bodies.matching(question.words, own, (), among, fields)
        asked["own"] = _bringing(words, OWN_WORDS, fields) | {"suggest": counting(question.words, own, fields)}
    others = others_matching(question, target, clauses)
    if others is not None:
        asked["others"] = _bringing(others, OTHER_WORDS, fields)
    return asked


def _bringing(query: Mapping[str, Any], size: int, fields: Fields) -> Body:
    """The body of a search whose hits bring their vectors."""
    script = {"source": _COPY, "params": {"field": fields.vector}}
    return bodies.body(query, size, fields, source=False) | {"script_fields": {_VECTOR: {"script": script}}}


def counting(words: str, language: str, fields: Fields) -> dict[str, Any]:
    """What makes a search tell how an analyzer parts the words: a suggester that never suggests anything."""
    field = fields.texts[0] if fields.texts else f"text.{language}"
    never = {"suggest_mode": "missing", "min_word_length": 1000, "prefix_length": 1000, "size": 1}
    return {_COUNTED: {"text": words, "term": {"field": field, **never}}}


def _count(response: Response | Mapping[str, Any]) -> int:
    told = response.get("suggest", {}).get(_COUNTED, [])
    return max(1, len({part["text"] for part in told}))


def _words(response: Response, fields: Fields) -> dict[str, float]:
    return {hit.id: hit.legs["lexical"].score for hit in candidates(response, "lexical", fields)}
