"""Questions made of an index, asked of it: as it is, and with what they were made of hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.retrieval import bodies, modes
from langshift.retrieval.calibration.fitting import Evidence
from langshift.retrieval.calibration.hiding import hiding
from langshift.retrieval.calibration.passages import Passage
from langshift.retrieval.exchange import Exchange
from langshift.retrieval.found import Found
from langshift.retrieval.hit import GROUP, group_of
from langshift.retrieval.lockstep import carry_out_all
from langshift.retrieval.questions import Asker
from langshift.retrieval.reading import without_legs
from langshift.retrieval.search_gathering import gather
from langshift.retrieval.target import Target
from langshift.retrieval.wanted import Mode, Question, Setting

T = TypeVar("T")

# Documents whose vectors are as near as that say the same in the same words.
_COPY: Final = 0.999


class Asked(NamedTuple):
    """A question of which the answer is known.

    Attributes:
        question: with its vector.
        passage: what it was cut out of.
        answers: ids of the passage and its copies in its language.
        hides: clauses for these, and for all in the language that the passage's translation group has.
    """

    question: Question
    passage: Passage
    answers: frozenset[str]
    hides: Sequence[Mapping[str, Any]]


def ask(client: OpenSearch, asker: Asker, passages: Sequence[Passage]) -> list[Asked]:
    """The questions of passages, encoded and moved as those of a searcher would be.

    Raises:
        UsageError: the encoder makes no vectors of queries.
    """
    tags = [passage.language for passage in passages]
    vectors = asker.move(asker.encode([passage.words for passage in passages]), tags)
    copies = all_of(client, asker, (_copies(passage, asker) for passage in passages))
    asked = []
    for passage, vector, found in zip(passages, vectors, copies, strict=True):
        answers = frozenset((passage.id, *found))
        hides = bodies.filter_clauses({"_id": sorted(answers)})
        if passage.group is not None:
            own = {asker.index.fields.language: [passage.language], GROUP: [passage.group]}
            hides.append({"bool": {"filter": bodies.filter_clauses(own)}})
        asked.append(Asked(Question(passage.words, passage.language, vector), passage, answers, hides))
    return asked


def evidence(client: OpenSearch, asker: Asker, asked: Sequence[Asked]) -> list[Evidence]:
    """What an anchored search gathers for each question, in both situations."""
    target = Target(asker.index)
    there = all_of(client, asker, (gather(one.question, target) for one in asked))
    hidden = all_of(client, asker, (hiding(gather(one.question, target), one.hides) for one in asked))
    return [
        Evidence(one.passage.language, one.answers, *gathered)
        for one, *gathered in zip(asked, there, hidden, strict=True)
    ]


def finds(client: OpenSearch, asker: Asker, asked: Sequence[Asked], mode: Mode, target: Target) -> list[bool]:
    """Whether the first hit of each question is what it was cut out of."""
    found = all_of(client, asker, (_first(one, mode, target) for one in asked))
    return [bool({hit.id for hit in one.hits} & of.answers) for one, of in zip(found, asked, strict=True)]


def finds_translations(
    client: OpenSearch, asker: Asker, asked: Sequence[Asked], mode: Mode, target: Target
) -> list[bool]:
    """Whether the first hit of each question, with what it was cut out of hidden, is a translation of that."""
    found = all_of(client, asker, (hiding(_first(one, mode, target), one.hides) for one in asked))
    return [
        any(group_of(hit.source) == of.passage.group for hit in one.hits) for one, of in zip(found, asked, strict=True)
    ]


def all_of(client: OpenSearch, asker: Asker, exchanges: Iterable[Exchange[T]]) -> list[T]:
    """What all the exchanges return.

    Raises:
        LangshiftError: one of them failed.
    """
    returned: list[T] = []
    for outcome in carry_out_all(client, asker.index.index, exchanges):
        if isinstance(outcome, LangshiftError):
            raise outcome
        returned.append(outcome)
    return returned


def _first(asked: Asked, mode: Mode, target: Target) -> Exchange[Found]:
    return modes.search(asked.question, Setting(mode), target, size=1, source=[GROUP])


def _copies(passage: Passage, asker: Asker) -> Exchange[list[str]]:
    fields = asker.index.fields
    query = bodies.knn(passage.vector, bodies.LEAST_CANDIDATES, [{"term": {fields.language: passage.language}}], fields)
    body = bodies.body(query, bodies.LEAST_CANDIDATES, fields, source=False) | {"min_score": (1 + _COPY) / 2}
    (response,) = yield (body,)
    return [found.id for found in without_legs(response, fields)]
