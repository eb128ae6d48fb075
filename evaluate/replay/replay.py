"""Replay: every query of a dataset or a log against live indices, scored by the dataset's judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.fingerprint import Fingerprint
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.datasets.texts import document_languages, misfits
from langshift.evaluate.measures import default_measures, score
from langshift.evaluate.measures.base import Material, Scores
from langshift.evaluate.replay.group_scores import GroupScores, ask_groups
from langshift.evaluate.replay.journal import Journal
from langshift.evaluate.replay.load_generator import Sending, send
from langshift.evaluate.replay.plan import Asked, Plan, Way, detected
from langshift.evaluate.replay.requests import Answer, Load
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import USUAL, Fields
from langshift.retrieval.anchor_model import Trust
from langshift.retrieval.settings import Setting


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes:
        index: what was searched, an alias or a version.
        version: the version.
        setting: how it was searched.
        fingerprint: what made the index.
        languages: query id -> language, None where unknown.
        answers: one for each query, in the order of the dataset or log.
        scores: measure -> figures.
        warnings: sentences on what makes the figures less than they seem.
        vectors: what was searched with, shape (queries, dimension), float32; None where
            the setting needs no vector.
        shift_queries: whether queries in other languages than the pivot were shifted.
        load: how the queries were sent.
        sending: how that went.
        group_scores: query id -> every document of its target -> score, None where it has none; empty if not
            asked for.
        dataset: what was replayed.
        documents: document id -> language, None where unknown.
        fields: the index's names of fields.
        trust: what ``anchored`` reckoned with; None in other modes.
    """

    index: str
    version: str
    setting: Setting
    fingerprint: Fingerprint
    languages: Mapping[str, str | None]
    answers: Sequence[Answer]
    scores: Mapping[str, Scores]
    warnings: Sequence[str]
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    shift_queries: bool = False
    load: Load = field(default_factory=Load)
    sending: Sending = field(default_factory=Sending)
    group_scores: GroupScores = field(default_factory=dict, repr=False)
    dataset: Dataset | None = field(default=None, repr=False, compare=False)
    documents: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    fields: Fields = USUAL
    trust: Trust | None = None

    @property
    def failed(self) -> Sequence[Answer]:
        """The queries that failed; each counts as an empty answer."""
        return [answer for answer in self.answers if answer.error is not None]

    @property
    def complete(self) -> bool:
        """Whether the cluster was there for every query, be it with an error."""
        return all(answer.reached for answer in self.answers)

    def by_language(self) -> dict[str, dict[str, Scores]]:
        """Query language -> measure -> figures, sorted by language."""
        asked: dict[str, list[str]] = {}
        for query, language in self.languages.items():
            asked.setdefault(language or UNDETERMINED, []).append(query)
        return {
            language: {name: scores.over(asked[language]) for name, scores in self.scores.items()}
            for language in sorted(asked)
        }


def failures(found: Replay, *, resumable: bool = False) -> str:
    """Say how many queries failed, and why the first did.

    Args:
        found: a replay with failed queries.
        resumable: whether the answers are on disk, so that the rest can be sent later.
    """
    first = found.failed[0]
    told = (
        f"{len(found.failed):,} of {len(found.answers):,} queries failed and count as empty answers; "
        f"the first, {first.query}: {first.error}"
    )
    if found.complete or not resumable:
        return told
    missing = sum(not answer.reached for answer in found.answers)
    return (
        f"{told} The result is marked as not complete: the same command with --resume sends the {missing:,} queries "
        "that found no cluster."
    )


def replay_all(
    clients: Sequence[OpenSearch],
    asked: Asked,
    plan: Plan,
    *,
    journals: Sequence[Journal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> list[Replay]:
    """Send every query to every index in every setting, in alternation, and score the answers.

    Args:
        clients: the cluster; queries that are under way at once are spread over them.
        asked: the queries, made into requests.
        plan: how.
        journals: one for each way, where answers are to be kept on disk; queries that they have are not sent.
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    opened = {way.searcher.index.index: way.searcher for way in asked.ways}
    known = {name: document_languages(clients[0], one.index, asked.dataset) for name, one in opened.items()}
    # Read before anything is sent: the cluster may be gone in the end.
    remarks = [_remarks(way) for way in asked.ways]
    answers, sendings = send(clients, asked.requests, len(asked.ways), plan.load, journals, on_answer)
    return [
        _found(clients[0], asked, plan, way, heard, sending, known[way.searcher.index.index], told)
        for way, heard, sending, told in zip(asked.ways, answers, sendings, remarks, strict=True)
    ]


def _found(
    client: OpenSearch,
    asked: Asked,
    plan: Plan,
    way: Way,
    answers: Mapping[str, Answer],
    sending: Sending,
    known: tuple[Mapping[str, str | None], Sequence[str]],
    remarks: Sequence[str],
) -> Replay:
    """What was found in one way."""
    searcher, dataset = way.searcher, asked.dataset
    heard = [answers[query.id] for query in asked.queries]
    group_scores, warnings = _group_scores(client, asked, way, answers)
    run = {answer.query: dict(answer.hits) for answer in heard}
    documents, told = known
    scores = _scores(plan.measures, dataset, run, asked.languages, documents, group_scores)
    notes = [f"{name}: {found.note}" for name, found in scores.items() if found.note]
    return Replay(
        index=searcher.index.name,
        version=searcher.index.index,
        setting=way.setting,
        fingerprint=searcher.index.fingerprint,
        languages=asked.languages,
        answers=heard,
        scores=scores,
        warnings=[*misfits(searcher, dataset, run), *detected(asked), *told, *remarks, *warnings, *notes],
        vectors=way.vectors,
        shift_queries=way.shift_queries,
        load=plan.load,
        sending=sending,
        group_scores=group_scores,
        dataset=dataset,
        documents=documents,
        fields=searcher.index.fields,
        trust=way.trust,
    )


def _remarks(way: Way) -> list[str]:
    """Say what makes figures of this setting less than they seem, whatever is found."""
    told = [] if way.trust is None else way.searcher.remarks
    if not way.setting.one_per_group:
        return told
    # A ranking that shows one document of a translation group lacks the others.
    return [*told, "Of each translation group one document counts as found: recall of the others cannot but be low."]


def _group_scores(
    client: OpenSearch, asked: Asked, way: Way, heard: Mapping[str, Answer]
) -> tuple[GroupScores, list[str]]:
    """The scores of target groups, and sentences on those that could not be had."""
    if not asked.scored or not all(answer.reached for answer in heard.values()):
        return {}, []
    questions = {query.id: question for query, question in zip(asked.queries, way.questions, strict=True)}
    scores, errors = ask_groups(client, way.searcher, way.setting, questions, asked.scored, heard)
    if not errors:
        return scores, []
    first = next(iter(errors))
    return scores, [
        f"The group scores of {len(errors):,} of {len(asked.scored):,} queries could not be had, and LPR leaves "
        f"these out; the first, {first}: {errors[first]}"
    ]


def _scores(
    names: Sequence[str] | None,
    dataset: Dataset,
    run: Mapping[str, Mapping[str, float]],
    queries: Mapping[str, str | None],
    documents: Mapping[str, str | None],
    group_scores: GroupScores,
) -> dict[str, Scores]:
    if not dataset.qrels:
        return {}
    material = Material(
        dataset.qrels,
        run,
        queries,
        documents,
        groups={name: document.group for name, document in dataset.documents.items()},
        group_scores={
            query: {name: score for name, score in given.items() if score is not None}
            for query, given in group_scores.items()
        },
        evidence=dataset.evidence,
        lengths=dataset.lengths,
        judged=dataset.judged,
    )
    return score(default_measures(dataset.judged) if names is None else names, material)
