"""Questions with known answers, made of an index's own documents: in their words, and in other words.

A question cut out of a document repeats its words; what people ask mostly does not. So each document is asked for by
several vectors, made of all of the cut-out or of less of it, and for each vector in words of which all, half or none
are the cut-out's; the others come out of other documents of the language. Each question is asked twice, the second time
so that the answer is there in other languages only. Where translations of the document are known, it is hidden from the
question's language. Where none are, each vector is asked with in another language, too: in words of that language, of
which half, a quarter or none are those of its document that is nearest: that one does not answer, and is what words
lead to.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.languages import UNSPACED_WORD_LENGTHS
from langshift.plugin import metadata
from langshift.plugin.index_sample import random_order
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl
from langshift.retrieval.hits import ScoredDoc, stored_vectors, without_legs
from langshift.retrieval.modes.anchoring import hit_vectors
from langshift.retrieval.plans import Body, SearchPlan, altered, execute, execute_many
from langshift.retrieval.question import LEAST_CANDIDATES, SearchQuery
from langshift.retrieval.result import group_of, to_hit
from langshift.retrieval.searcher import Searcher

#: How much of the words that a question's vector is made of it asks with; the rest are words of other documents.
Overlap = Literal["all", "half", "none"]
OVERLAPS: Final[tuple[Overlap, ...]] = get_args(Overlap)
_SHARES: Final[Mapping[Overlap, float]] = {"all": 1.0, "half": 0.5, "none": 0.0}
# Of a cut-out, so much is what a vector is made of: the less, the vaguer the question. With e5-small dense search finds
# answers in the question's language with nDCG@20 from .95 to .45: people's questions lie between, or are easier.
VAGUENESS: Final = (1.0, 0.5, 0.25)

_SENTENCE: Final = re.compile(r"(?<=[.!?؟۔])\s+|(?<=[。！？।॥])\s*|\n+")
_WORDS: Final = 16
_LEAST_WORDS: Final = 4
_LONGEST: Final = 300
assert _LONGEST < dsl.MOST_CLAUSES // 2  # noqa: S101 - whatever an analyzer makes of it, the server takes it

# A language with fewer documents is not asked about.
_FEW: Final = 5
# Documents whose vectors are as near as that say the same in the same words.
_COPY: Final = 0.999
# Of the words of a question whose answer is in another language, so many of what ``_SHARES`` says mislead.
_MISLEADING: Final = 0.5

T = TypeVar("T")


class CutOut(NamedTuple):
    """Some words of one sentence, sixteen at most.

    Attributes:
        parts: the words; of scripts without spaces, a few characters each.
        joint: what stands between them.
    """

    parts: Sequence[str]
    joint: str

    def __str__(self) -> str:
        """The words as a question."""
        return self.joint.join(self.parts).strip()[:_LONGEST]


def cut_out(text: str, language: str, chance: np.random.Generator) -> CutOut | None:
    """Up to sixteen words in a row out of one sentence; None where no sentence is long enough.

    Args:
        text: of a document.
        language: its language; in scripts without spaces characters are counted instead.
        chance: chooses the place.
    """
    # A text that was cut in the middle of a character has half of it left, which no request can hold.
    whole = text.encode(errors="ignore").decode()
    sentences = [_cut_up(sentence, language) for sentence in _SENTENCE.split(whole)]
    pieces = [sentence for sentence in sentences if len(sentence.parts) >= _LEAST_WORDS]
    if not pieces:
        return None
    parts, joint = pieces[int(chance.integers(len(pieces)))]
    start = int(chance.integers(max(1, len(parts) - _WORDS + 1)))
    return CutOut(parts[start : start + _WORDS], joint)


def _cut_up(text: str, language: str) -> CutOut:
    if size := UNSPACED_WORD_LENGTHS.get(language):
        whole = "".join(text.split())
        return CutOut([whole[at : at + size] for at in range(0, len(whole), size)], "")
    return CutOut(text.split(), " ")


def _chance(name: str, seed: int = 0) -> np.random.Generator:
    """What chooses for a document, the same each time, whatever else is drawn."""
    return np.random.default_rng([seed, zlib.crc32(name.encode(errors="replace"))])


class CalibrationPassage(NamedTuple):
    """A document, or one chunk of it, that questions are cut out of.

    Attributes:
        id: its ``_id``.
        document: the document's id, which is what a search finds.
        language: primary tag.
        text: its words.
        cut_out: what is asked with.
        group: its translation group; None where it names none.
        vector: of unit length, shape (dimension,), float32.
    """

    id: str
    document: str
    language: str
    text: str
    cut_out: CutOut
    group: str | None
    vector: NDArray[np.float32]


def draw_passages(searcher: Searcher, sample: int, window: int, seed: int) -> list[CalibrationPassage]:
    """Documents with a vector and a sentence to ask by, in the order of language and id; one chunk of each document.

    Of one index they are the same each time; of another with the same documents, too, where all of them are drawn.

    Args:
        searcher: over the index.
        sample: how many at most; every language gets as even a share as it has documents for.
        window: how many documents one request to the index may ask for.
        seed: chooses the documents.
    """
    index, found = searcher.index, dict[str, CalibrationPassage]()
    grouped = has_groups(searcher.client, index)
    for language, share in shares(_documents_by_language(searcher), sample).items():
        for one in execute(searcher.client, index.index, _draw(searcher, language, share, window, seed)):
            # Another chunk of the document may be in another language.
            found.setdefault(one.document, one if grouped else one._replace(group=None))
    # What is drawn for one passage goes by those before it.
    return sorted(found.values(), key=lambda one: (one.language, one.id))


def _documents_by_language(searcher: Searcher) -> Mapping[str, int]:
    """Language -> documents with a text in it; of an index of chunks about as many."""
    index, fields = searcher.index, searcher.index.fields
    if fields.parent is None:
        return index.counts
    documents = {"documents": {"cardinality": {"field": fields.document_key}}}
    languages = {"terms": {"field": fields.language, "include": list(index.counts), "size": len(index.counts)}}
    body = {"size": 0, "aggs": {"languages": {**languages, "aggs": documents}}}
    buckets = searcher.client.search(index=index.index, body=body)["aggregations"]["languages"]["buckets"]
    return {one["key"]: int(one["documents"]["value"]) for one in buckets}


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


def has_groups(client: OpenSearch, index: IndexInfo) -> bool:
    """Whether documents of an index can name a translation group: in an adopted one the field may be another thing."""
    group = index.fields.group_filter
    kinds = client.field_caps(index=index.index, fields=group)["fields"].get(group, {})
    return bool(kinds) and all(kind["type"] == "keyword" and kind["aggregatable"] for kind in kinds.values())


def _draw(
    searcher: Searcher, language: str, share: int, window: int, seed: int
) -> SearchPlan[list[CalibrationPassage]]:
    fields = searcher.index.fields
    clauses = [{"term": {fields.language: language}}, {"exists": {"field": fields.vector}}]
    brings = [*fields.text_fields, fields.group]
    # Some have no sentence to ask by.
    size = min(window, share + share // 2 + _FEW)
    drawn = dsl.body_with_vectors(random_order({"bool": {"filter": clauses}}, seed), size, fields) | {"_source": brings}
    (response,) = yield (dsl.once_each(drawn, fields),)
    drawn_ones, made = without_legs(response, fields), list[CalibrationPassage]()
    languages = {one.id: one.language for one in drawn_ones}
    vectors = hit_vectors(stored_vectors(response), languages, searcher.shift)
    for found in drawn_ones:
        text = text_of(found, fields)
        cut = cut_out(text, language, _chance(found.id, seed))
        if found.id in vectors and cut is not None:
            vector = vectors[found.id].astype(np.float32)
            group = group_of(found.source, fields)
            made.append(CalibrationPassage(found.id, found.document, language, text, cut, group, vector))
    return made[:share]


def text_of(found: ScoredDoc, fields: metadata.FieldNames) -> str:
    """The words of a document that a question is cut out of."""
    if fields.split:
        hit = to_hit(found, fields)
        return hit.text or hit.title
    texts = (to_hit(found, msgspec.structs.replace(fields, texts=(name,))).text for name in fields.texts)
    return next(filter(None, texts), "")


class CalibrationQuestion(NamedTuple):
    """A question of which the answers are known.

    Attributes:
        document: the number of the passage that it was made of.
        query: with its vector.
        overlap: how much of what its vector is made of it asks with.
        answers: id -> whether it is in another language than the question.
        hides: the documents that are hidden; empty where none are.
        vagueness: how much of the cut-out its vector is made of, one of ``VAGUENESS``.
        cluster: the number of the first passage of its translation group: all of these share their luck.
        translated: in how many of the languages that are asked in its answer is there, 0 to 1, a language counting as
            often as it is asked in; 0 where the document names no translations.
    """

    document: int
    query: SearchQuery
    overlap: Overlap
    answers: Mapping[str, bool]
    hides: Set[str]
    vagueness: float = VAGUENESS[0]
    cluster: int = 0
    translated: float = 0.0

    @property
    def elsewhere(self) -> bool:
        """Whether the answers are in other languages only."""
        return all(self.answers.values())


#: Questions of a calibration, in an order that figures of them have, too.
Questions = Sequence[CalibrationQuestion]


def make_questions(searcher: Searcher, passages: Sequence[CalibrationPassage], seed: int) -> list[CalibrationQuestion]:
    """The questions for passages, encoded as those of a searcher would be.

    Args:
        searcher: over the index.
        passages: what is asked for, in two languages or more.
        seed: chooses the words that are replaced, those that take their places, and the languages.

    Raises:
        UsageError: the encoder makes no vectors of queries.
    """
    chances = [_chance(passage.id, seed) for passage in passages]
    other_words: dict[str, list[str]] = {}
    for passage in passages:
        other_words.setdefault(passage.language, []).extend(_cut_up(passage.text, passage.language).parts)
    orders = [chance.permutation(len(passage.cut_out.parts)) for chance, passage in zip(chances, passages, strict=True)]
    vectors = []
    for share in VAGUENESS:
        heard = [str(_reworded(one.cut_out, order, share)) for one, order in zip(passages, orders, strict=True)]
        vectors.append(searcher.encode(heard))
    foreign = [
        str(chance.choice([tag for tag in other_words if tag != passage.language] or [passage.language]))
        for chance, passage in zip(chances, passages, strict=True)
    ]
    pairs = zip(passages, foreign, strict=True)
    known = execute_all(searcher, (_answers(passage, tag, searcher.index) for passage, tag in pairs))
    questions, first = list[CalibrationQuestion](), dict[str | int, int]()
    asked_in = Counter(passage.language for passage in passages)
    for number, (passage, (there, hidden, hides, near, languages)) in enumerate(zip(passages, known, strict=True)):
        translated = sum(asked_in[language] for language in languages) / len(passages)
        language, chance, tag = passage.language, chances[number], foreign[number]
        cluster = first.setdefault(passage.group or number, number)
        misleading = None if hidden or tag == language else cut_out(near, tag, chance)
        around = None if misleading is None else chance.permutation(len(misleading.parts))
        for level, share in enumerate(VAGUENESS):
            vector = vectors[level][number]
            # Words mislead at any overlap: one for each vector is as telling as all three, and takes a third.
            misled = OVERLAPS[(number + level) % len(OVERLAPS)]
            for overlap in OVERLAPS:
                kept = share * _SHARES[overlap]
                strange = chance.choice(other_words[language], len(orders[number])).tolist()
                words = str(_reworded(passage.cut_out, orders[number], kept, strange))
                query = SearchQuery(words, language, vector)
                one = CalibrationQuestion(number, query, overlap, there, frozenset(), share, cluster, translated)
                questions.append(one)
                if hidden:
                    questions.append(one._replace(answers=hidden, hides=hides))
                elif misleading is not None and around is not None and overlap == misled:
                    strange = chance.choice(other_words[tag], len(around)).tolist()
                    words = str(_reworded(misleading, around, kept * _MISLEADING, strange))
                    query = SearchQuery(words, tag, vector)
                    questions.append(one._replace(query=query, answers=dict.fromkeys(there, True)))
    return questions


def _reworded(cut: CutOut, order: NDArray[np.int64], share: float, others: Sequence[str] | None = None) -> CutOut:
    """So many of the words, in their order; others in place of the rest, if there are any."""
    kept = set(order[: max(round(share * len(order)), others is None)].tolist())
    if others is None:
        return cut._replace(parts=[part for place, part in enumerate(cut.parts) if place in kept])
    return cut._replace(parts=[part if at in kept else others[at] for at, part in enumerate(cut.parts)])


_Answers = tuple[Mapping[str, bool], Mapping[str, bool], Set[str], str, Set[str]]


def _answers(passage: CalibrationPassage, foreign: str, index: IndexInfo) -> SearchPlan[_Answers]:
    """The answers where all is there, those where the passage is hidden, and the documents that are hidden then.

    The latter two are of known translations, without which they are empty. Then the text of what is nearest in the
    foreign language, and the languages of the known translations, the passage's own among them.
    """
    fields = index.fields
    own = {"term": {fields.language: passage.language}}
    near = LEAST_CANDIDATES
    copies = dsl.body(dsl.knn(passage.vector, near, [own], fields), near, fields, source=False)
    bodies = [copies | {"min_score": (1 + _COPY) / 2}]
    if passage.group is not None:
        grouped = {"bool": {"filter": dsl.filter_clauses({fields.group_filter: [passage.group]})}}
        bodies.append(dsl.once_each(dsl.body(grouped, near, fields, source=False), fields))
    same, *members_found = [without_legs(response, fields) for response in (yield tuple(bodies))]
    answers = dict.fromkeys([passage.document, *(one.document for one in same)], False)
    members = members_found[0] if members_found else ()
    for one in members:
        answers.setdefault(one.document, one.language != passage.language)
    languages = {one.language for one in members}
    if hidden := {name: other for name, other in answers.items() if other}:
        # A chunk beside the one that was asked for is no other answer: the document is hidden with all its chunks.
        return answers, hidden, answers.keys() - hidden.keys(), "", languages
    around = dsl.knn(passage.vector, near, [{"term": {fields.language: foreign}}], fields)
    (response,) = yield (dsl.body(around, 1, fields, source=fields.text_fields),)
    nearest = without_legs(response, fields)
    return answers, {}, frozenset(), text_of(nearest[0], fields) if nearest else "", languages


def masked(plan: SearchPlan[T], gone: Sequence[Mapping[str, Any]]) -> SearchPlan[T]:
    """A plan, in every step of which the documents that match one of the clauses are left out.

    Scores stay as they are. Nearest neighbours are left out after they were found: the few that are hidden are less
    than what is looked at beside those that are wanted. Where there are no clauses, it is the plan itself.
    """

    def change(bodies: tuple[Body, ...]) -> tuple[Body, ...]:
        return tuple(body | {"query": {"bool": {"must": [body["query"]], "must_not": list(gone)}}} for body in bodies)

    return altered(plan, change) if gone else plan


def execute_all(
    searcher: Searcher, plans: Iterable[SearchPlan[T]], on_result: Callable[[], None] = lambda: None
) -> list[T]:
    """What all the plans return.

    Args:
        searcher: over the index.
        plans: the plans.
        on_result: called after each.

    Raises:
        LangshiftError: one of them failed.
    """
    returned: list[T] = []
    for outcome in execute_many(searcher.client, searcher.index.index, plans):
        if isinstance(outcome, LangshiftError):
            raise outcome
        returned.append(outcome)
        on_result()
    return returned
