"""The first step of ``anchored``: the documents that may answer a query, and what words and vectors say of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import Fields
from langshift.retrieval import bodies
from langshift.retrieval.by_vector import vector_of
from langshift.retrieval.exchange import Body, Exchange, Response
from langshift.retrieval.reading import candidates
from langshift.retrieval.target import Target
from langshift.retrieval.trust import Candidate
from langshift.retrieval.wanted import Question

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
    candidates: Sequence[Candidate]
    vectors: NDArray[np.float64]
    query: NDArray[np.float64]
    words: int
    best_words: float
    documents: float


def gather(question: Question, target: Target, clauses: Sequence[Mapping[str, Any]] = ()) -> Exchange[Gathered]:
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
    asked = gathering_bodies(question, target, clauses)
    answered = dict(zip(asked, (yield tuple(asked.values())), strict=True))
    scores: dict[str, float] = {}
    languages: dict[str, str] = {}
    known: dict[str, NDArray[np.float64]] = {}
    for leg, response in answered.items():
        for one in candidates(response, leg, fields):
            languages[one.id] = one.language
            if leg != "dense":
                scores[one.id] = one.legs[leg].score
        known |= brought(response)
    vectors = np.array(list(known.values())).reshape(len(known), len(query))
    found = [
        Candidate(languages[name] == own != UNDETERMINED, scores.get(name, 0.0), float(cosine))
        for name, cosine in zip(known, vectors @ query, strict=True)
    ]
    return Gathered(
        ids=list(known),
        candidates=found,
        vectors=vectors,
        query=query,
        words=_count(answered.get("own", {})),
        best_words=max(scores.values(), default=0.0),
        documents=_documents(own, target) / target.index.shards,
    )


def has_own(question: Question, target: Target) -> bool:
    """Whether the index has documents in the searcher's language."""
    return question.language != UNDETERMINED and target.index.counts.get(question.language, 0) > 0


def others_matching(
    question: Question, target: Target, clauses: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any] | None:
    """The query for the words of a question in documents that are not in its language; None where there are none."""
    index, own = target.index, question.language
    if index.documents <= (index.counts.get(own, 0) if own != UNDETERMINED else 0):
        return None
    others = [language for language in index.languages if language != own]
    other = [] if own == UNDETERMINED else [{"bool": {"must_not": [{"term": {index.fields.language: own}}]}}]
    return bodies.matching(question.words, UNDETERMINED, others, [*clauses, *other], index.fields)


def bringing_vectors(query: Mapping[str, Any], size: int, fields: Fields) -> Body:
    """The body of a search whose hits bring their vectors, which ``brought`` reads."""
    script = {"source": _COPY, "params": {"field": fields.vector}}
    return bodies.body(query, size, fields, source=False) | {"script_fields": {_VECTOR: {"script": script}}}


def brought(response: Response) -> dict[str, NDArray[np.float64]]:
    """Document -> its vector at length 1, shape (dimension,), float64; documents without a vector are left out."""
    found = {hit["_id"]: hit.get("fields", {}).get(_VECTOR, [None])[0] for hit in response["hits"]["hits"]}
    return {name: unit(np.asarray(vector, np.float64)) for name, vector in found.items() if vector is not None}


def unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector at length 1; zeros stay zeros."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def gathering_bodies(question: Question, target: Target, clauses: Sequence[Mapping[str, Any]] = ()) -> dict[str, Body]:
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
    nearest = bodies.knn(vector_of(question), bodies.LEAST_CANDIDATES, clauses, fields)
    asked = {"dense": bringing_vectors(nearest, NEAREST, fields)}
    if has_own(question, target):
        among = [*clauses, {"term": {fields.language: own}}]
        words = bodies.matching(question.words, own, (), among, fields)
        asked["own"] = bringing_vectors(words, OWN_WORDS, fields) | {"suggest": _counting(question, target)}
    others = others_matching(question, target, clauses)
    if others is not None:
        asked["others"] = bringing_vectors(others, OTHER_WORDS, fields)
    return asked


def _counting(question: Question, target: Target) -> dict[str, Any]:
    """What makes a search tell how an analyzer parts the words: a suggester that never suggests anything."""
    fields, own = target.index.fields, question.language
    if fields.texts:
        asked = {"field": fields.texts[0]}
    elif own in target.index.texts:
        asked = {"field": f"text.{own}"}
    else:
        # No document has a text in this language, only titles; the field of languages is there always.
        asked = {"field": fields.language, "analyzer": "standard"}
    never = {"suggest_mode": "missing", "min_word_length": 1000, "prefix_length": 1000, "size": 1}
    return {_COUNTED: {"text": question.words, "term": {**asked, **never}}}


def _count(response: Response | Mapping[str, Any]) -> int:
    told = response.get("suggest", {}).get(_COUNTED, [])
    return max(1, len({part["text"] for part in told}))


def _documents(language: str, target: Target) -> int:
    index = target.index
    return index.documents if index.fields.texts else index.counts.get(language, 0)
