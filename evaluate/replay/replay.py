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
from langshift.evaluate.replay.group_scores import GroupScores, fetch_group_scores
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.load_generator import LoadStats, send
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, ReplayTarget, detection_warnings
from langshift.evaluate.replay.requests import LoadProfile, QueryResult
from langshift.languages import UNDETERMINED
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.retrieval.anchor_model import AnchorModel
from langshift.retrieval.settings import SearchSettings


@dataclass(frozen=True)
class ReplayResult:
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
    setting: SearchSettings
    fingerprint: Fingerprint
    languages: Mapping[str, str | None]
    answers: Sequence[QueryResult]
    scores: Mapping[str, Scores]
    warnings: Sequence[str]
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    shift_queries: bool = False
    load: LoadProfile = field(default_factory=LoadProfile)
    sending: LoadStats = field(default_factory=LoadStats)
    group_scores: GroupScores = field(default_factory=dict, repr=False)
    dataset: Dataset | None = field(default=None, repr=False, compare=False)
    documents: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    fields: FieldNames = USUAL
    trust: AnchorModel | None = None

    @property
    def failed(self) -> Sequence[QueryResult]:
        """The queries that failed; each counts as an empty answer."""
        return [answer for answer in self.answers if answer.error is not None]

    @property
    def complete(self) -> bool:
        """Whether the cluster was there for every query, be it with an error."""
        return all(answer.reached for answer in self.answers)

    def by_language(self) -> dict[str, dict[str, Scores]]:
        """Query language -> measure -> figures, sorted by language."""
        queries: dict[str, list[str]] = {}
        for query, language in self.languages.items():
            queries.setdefault(language or UNDETERMINED, []).append(query)
        return {
            language: {name: scores.over(queries[language]) for name, scores in self.scores.items()}
            for language in sorted(queries)
        }


def failures(found: ReplayResult, *, resumable: bool = False) -> str:
    """Say how many queries failed, and why the first did.

    Args:
        found: a replay with failed queries.
        resumable: whether the answers are on disk, so that the rest can be sent later.
    """
    first = found.failed[0]
    message = (
        f"{len(found.failed):,} of {len(found.answers):,} queries failed and count as empty answers; "
        f"the first, {first.query}: {first.error}"
    )
    if found.complete or not resumable:
        return message
    missing = sum(not answer.reached for answer in found.answers)
    return (
        f"{message} The result is marked as not complete: the same command with --resume sends the {missing:,} queries "
        "that found no cluster."
    )


def replay_all(
    clients: Sequence[OpenSearch],
    replay_plan: ReplayPlan,
    options: ReplayOptions,
    *,
    journals: Sequence[ReplayJournal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> list[ReplayResult]:
    """Send every query to every index in every setting, in alternation, and score the answers.

    Args:
        clients: the cluster; queries that are under way at once are spread over them.
        replay_plan: the queries, made into requests.
        options: how.
        journals: one for each way, where answers are to be kept on disk; queries that they have are not sent.
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    opened = {target.searcher.index.index: target.searcher for target in replay_plan.targets}
    known = {name: document_languages(clients[0], one.index, replay_plan.dataset) for name, one in opened.items()}
    # Read before anything is sent: the cluster may be gone in the end.
    remarks = [_remarks(target) for target in replay_plan.targets]
    answers, sendings = send(clients, replay_plan.requests, len(replay_plan.targets), options.load, journals, on_answer)
    return [
        _build_result(
            clients[0], replay_plan, options, target, heard, sending, known[target.searcher.index.index], notes
        )
        for target, heard, sending, notes in zip(replay_plan.targets, answers, sendings, remarks, strict=True)
    ]


def _build_result(
    client: OpenSearch,
    replay_plan: ReplayPlan,
    options: ReplayOptions,
    target: ReplayTarget,
    answers: Mapping[str, QueryResult],
    sending: LoadStats,
    known: tuple[Mapping[str, str | None], Sequence[str]],
    remarks: Sequence[str],
) -> ReplayResult:
    """What was found in one way."""
    searcher, dataset = target.searcher, replay_plan.dataset
    heard = [answers[query.id] for query in replay_plan.queries]
    group_scores, warnings = _group_scores(client, replay_plan, target, answers)
    run = {answer.query: dict(answer.hits) for answer in heard}
    documents, language_warnings = known
    scores = _scores(options.measures, dataset, run, replay_plan.languages, documents, group_scores)
    notes = [f"{name}: {found.note}" for name, found in scores.items() if found.note]
    return ReplayResult(
        index=searcher.index.name,
        version=searcher.index.index,
        setting=target.setting,
        fingerprint=searcher.index.fingerprint,
        languages=replay_plan.languages,
        answers=heard,
        scores=scores,
        warnings=[
            *misfits(searcher, dataset, run),
            *detection_warnings(replay_plan),
            *language_warnings,
            *remarks,
            *warnings,
            *notes,
        ],
        vectors=target.vectors,
        shift_queries=target.shift_queries,
        load=options.load,
        sending=sending,
        group_scores=group_scores,
        dataset=dataset,
        documents=documents,
        fields=searcher.index.fields,
        trust=target.trust,
    )


def _remarks(target: ReplayTarget) -> list[str]:
    """Say what makes figures of this setting less than they seem, whatever is found."""
    remarks = [] if target.trust is None else target.searcher.remarks
    if not target.setting.one_per_group:
        return remarks
    # A ranking that shows one document of a translation group lacks the others.
    return [*remarks, "Of each translation group one document counts as found: recall of the others cannot but be low."]


def _group_scores(
    client: OpenSearch, replay_plan: ReplayPlan, target: ReplayTarget, heard: Mapping[str, QueryResult]
) -> tuple[GroupScores, list[str]]:
    """The scores of target groups, and sentences on those that could not be had."""
    if not replay_plan.scored or not all(answer.reached for answer in heard.values()):
        return {}, []
    questions = {query.id: question for query, question in zip(replay_plan.queries, target.questions, strict=True)}
    scores, errors = fetch_group_scores(client, target.searcher, target.setting, questions, replay_plan.scored, heard)
    if not errors:
        return scores, []
    first = next(iter(errors))
    return scores, [
        f"The group scores of {len(errors):,} of {len(replay_plan.scored):,} queries could not be had, and LPR leaves "
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
