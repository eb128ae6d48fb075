"""Questions cut out of an index's own passages, asked of it as it is and with their passage hidden."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl, modes
from langshift.retrieval.anchor_model import AnchorModel
from langshift.retrieval.anchored import body_with_vectors, collect_candidates, hit_vectors
from langshift.retrieval.calibration.fit import CalibrationEvidence, drawn
from langshift.retrieval.dsl import MOST_CLAUSES
from langshift.retrieval.hits import GROUP, ScoredDoc, group_of, to_hit, without_legs
from langshift.retrieval.searcher import QueryEncoder
from langshift.retrieval.settings import (
    LEAST_CANDIDATES,
    Mode,
    SearchContext,
    SearchQuery,
    SearchRequest,
    SearchSettings,
)
from langshift.retrieval.steps import SearchPlan, execute, execute_many

_SENTENCE: Final = re.compile(r"(?<=[.!?؟۔])\s+|(?<=[。！？।॥])\s*|\n+")
_WORDS: Final = 10
_LEAST_WORDS: Final = 4
# Of scripts without spaces about as many characters as ten words have.
_CHARACTERS: Final = {"zh": 18, "yue": 18, "ja": 18, "th": 40, "lo": 40, "km": 40, "my": 40, "bo": 40}
_LONGEST: Final = 300
assert _LONGEST < MOST_CLAUSES // 2  # noqa: S101 - whatever an analyzer makes of it, the server takes it


def extract_question(text: str, language: str, name: str) -> str | None:
    """A question of about ten words out of one sentence.

    Args:
        text: of a document.
        language: its language; in scripts without spaces characters are counted instead.
        name: the document's id, by which the place is chosen, so that it is the same each time.

    Returns:
        The piece; None where no sentence is long enough.
    """
    chance = np.random.default_rng(zlib.crc32(name.encode(errors="replace")))
    # A text that was cut in the middle of a character has half of it left, which no request can hold.
    whole = text.encode(errors="ignore").decode()
    pieces = [found for sentence in _SENTENCE.split(whole) if (found := _parts(sentence, language))]
    if not pieces:
        return None
    parts, joint = pieces[int(chance.integers(len(pieces)))]
    wanted = _WORDS if joint else _CHARACTERS[language]
    start = int(chance.integers(max(1, len(parts) - wanted + 1)))
    return joint.join(parts[start : start + wanted]).strip()[:_LONGEST]


def _parts(sentence: str, language: str) -> tuple[list[str], str] | None:
    """What a question can be cut of, and what joins it; None where that is too little."""
    if language in _CHARACTERS:
        characters = list(sentence.strip())
        return (characters, "") if len(characters) >= _CHARACTERS[language] // 2 else None
    words = sentence.split()
    return (words, " ") if len(words) >= _LEAST_WORDS else None


T = TypeVar("T")


def masked(plan: SearchPlan[T], gone: Sequence[Mapping[str, Any]]) -> SearchPlan[T]:
    """A plan, in every step of which the documents that match one of the clauses are left out.

    Scores stay as they are. Nearest neighbours are left out after they were found: the few that are hidden are less
    than what is looked at beside those that are wanted.
    """
    try:
        bodies = next(plan)
        while True:
            without = tuple(
                body | {"query": {"bool": {"must": [body["query"]], "must_not": list(gone)}}} for body in bodies
            )
            bodies = plan.send((yield without))
    except StopIteration as end:
        result: T = end.value
        return result


# A language with fewer documents is not asked about.
_FEW: Final = 5
_FIELDS: Final = ("title", "text")


class CalibrationPassage(NamedTuple):
    """A document that a question is cut out of.

    Attributes:
        id: its ``_id``.
        language: primary tag.
        words: the question.
        group: its translation group; None where it names none.
        vector: of unit length, shape (dimension,), float32.
    """

    id: str
    language: str
    words: str
    group: str | None
    vector: NDArray[np.float32]


def draw_passages(client: OpenSearch, index: IndexInfo, sample: int, window: int) -> list[CalibrationPassage]:
    """Documents with a vector and a sentence to ask by, the same each time.

    Args:
        client: the cluster.
        index: the index.
        sample: how many at most; every language gets as even a share as it has documents for.
        window: how many documents one request to the index may ask for.
    """
    found: list[CalibrationPassage] = []
    for language, share in shares(index.counts, sample).items():
        found += execute(client, index.index, _draw(index, language, share, window))
    return found


def shares(counts: Mapping[str, int], sample: int) -> dict[str, int]:
    """Language -> how many of the sample: as evenly as each language's documents allow; a few of them are too few."""
    left, wanted = sample, {}
    rarest_first = sorted((count, language) for language, count in counts.items() if count >= _FEW)
    for position, (count, language) in enumerate(rarest_first):
        share = min(count, left // (len(rarest_first) - position))
        if share:
            wanted[language] = share
        left -= share
    return dict(sorted(wanted.items()))


def _draw(index: IndexInfo, language: str, share: int, window: int) -> SearchPlan[list[CalibrationPassage]]:
    fields = index.fields
    clauses = [{"term": {fields.language: language}}, {"exists": {"field": fields.vector}}]
    brings = [*(fields.texts or _FIELDS), GROUP]
    # Some have no sentence to ask by.
    size = min(window, share + share // 2 + _FEW)
    (response,) = yield (body_with_vectors(drawn({"bool": {"filter": clauses}}), size, fields) | {"_source": brings},)
    vectors, made = hit_vectors(response), list[CalibrationPassage]()
    for found in without_legs(response, fields):
        words = extract_question(text_of(found, fields), language, found.id)
        if found.id in vectors and words is not None:
            vector = vectors[found.id].astype(np.float32)
            made.append(CalibrationPassage(found.id, language, words, group_of(found.source), vector))
    return made[:share]


def text_of(found: ScoredDoc, fields: FieldNames) -> str:
    """The words of a document that a question is cut out of."""
    if not fields.texts:
        hit = to_hit(found, fields)
        return hit.text or hit.title
    texts = (to_hit(found, msgspec.structs.replace(fields, texts=(name,))).text for name in fields.texts)
    return next(filter(None, texts), "")


# Documents whose vectors are as near as that say the same in the same words.
_COPY: Final = 0.999


class CalibrationQuestion(NamedTuple):
    """A question of which the answer is known.

    Attributes:
        question: with its vector.
        passage: what it was cut out of.
        answers: ids of the passage and its copies in its language.
        hides: clauses for these, and for all in the language that the passage's translation group has.
    """

    question: SearchQuery
    passage: CalibrationPassage
    answers: frozenset[str]
    hides: Sequence[Mapping[str, Any]]


def make_questions(
    client: OpenSearch, query_encoder: QueryEncoder, passages: Sequence[CalibrationPassage]
) -> list[CalibrationQuestion]:
    """The questions of passages, encoded and moved as those of a searcher would be.

    Raises:
        UsageError: the encoder makes no vectors of queries.
    """
    index, tags = query_encoder.index, [passage.language for passage in passages]
    vectors = query_encoder.move(query_encoder.encode([passage.words for passage in passages]), tags)
    copies = execute_all(client, index, (_copies(passage, index) for passage in passages))
    questions = []
    for passage, vector, found in zip(passages, vectors, copies, strict=True):
        answers = frozenset((passage.id, *found))
        hides = dsl.filter_clauses({"_id": sorted(answers)})
        if passage.group is not None:
            own = {index.fields.language: [passage.language], GROUP: [passage.group]}
            hides.append({"bool": {"filter": dsl.filter_clauses(own)}})
        query = SearchQuery(passage.words, passage.language, vector)
        questions.append(CalibrationQuestion(query, passage, answers, hides))
    return questions


def evidence(
    client: OpenSearch, index: IndexInfo, questions: Sequence[CalibrationQuestion]
) -> list[CalibrationEvidence]:
    """What an anchored search gathers for each question, in both situations."""
    requests = [SearchRequest(one.question, SearchSettings("anchored"), SearchContext(index)) for one in questions]
    there = execute_all(client, index, map(collect_candidates, requests))
    asked = zip(requests, questions, strict=True)
    hidden = execute_all(client, index, (masked(collect_candidates(one), of.hides) for one, of in asked))
    return [
        CalibrationEvidence(one.passage.language, one.answers, *gathered)
        for one, *gathered in zip(questions, there, hidden, strict=True)
    ]


def first_hits(
    client: OpenSearch,
    index: IndexInfo,
    questions: Sequence[CalibrationQuestion],
    mode: Mode,
    trust: AnchorModel | None = None,
    *,
    hidden: bool = False,
) -> list[bool]:
    """Whether the first hit of each question is what it was cut out of; or, with that hidden, a translation of it.

    Args:
        client: the cluster.
        index: the index.
        questions: what is asked.
        mode: of the searches.
        trust: what of the rule of ``anchored`` is the index's own; None in other modes.
        hidden: whether the answers are hidden, and those of their group in the question's language.
    """
    setting, target = SearchSettings(mode), SearchContext(index, trust=trust)
    plans = [modes.search(SearchRequest(one.question, setting, target, size=1, source=[GROUP])) for one in questions]
    if hidden:
        plans = [masked(plan, one.hides) for plan, one in zip(plans, questions, strict=True)]
    return [
        any(group_of(hit.source) == one.passage.group if hidden else hit.id in one.answers for hit in found.hits)
        for found, one in zip(execute_all(client, index, plans), questions, strict=True)
    ]


def execute_all(client: OpenSearch, index: IndexInfo, plans: Iterable[SearchPlan[T]]) -> list[T]:
    """What all the plans return.

    Raises:
        LangshiftError: one of them failed.
    """
    returned: list[T] = []
    for outcome in execute_many(client, index.index, plans):
        if isinstance(outcome, LangshiftError):
            raise outcome
        returned.append(outcome)
    return returned


def _copies(passage: CalibrationPassage, index: IndexInfo) -> SearchPlan[list[str]]:
    fields = index.fields
    query = dsl.knn(passage.vector, LEAST_CANDIDATES, [{"term": {fields.language: passage.language}}], fields)
    body = dsl.body(query, LEAST_CANDIDATES, fields, source=False) | {"min_score": (1 + _COPY) / 2}
    (response,) = yield (body,)
    return [found.id for found in without_legs(response, fields)]
