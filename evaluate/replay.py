"""Replay: every query of a dataset or a log against live indices, scored by the dataset's judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.evaluate import groups
from langshift.evaluate.asked import Asked, Plan, detected
from langshift.evaluate.dataset import Dataset
from langshift.evaluate.indexed import document_languages, misfits
from langshift.evaluate.load.answer import Answer
from langshift.evaluate.load.journal import Journal
from langshift.evaluate.load.requests import TOP_K as TOP_K
from langshift.evaluate.load.requests import Mode, encode
from langshift.evaluate.load.schedule import Load
from langshift.evaluate.load.sending import Sending, send
from langshift.evaluate.measures import Material, Scores, default_measures, score
from langshift.ingest.search import Searcher
from langshift.languages import UNDETERMINED
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.fingerprint import Fingerprint


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes:
        index: what was searched, an alias or a version.
        version: the version.
        mode: how it was searched.
        fingerprint: what made the index.
        languages: query id -> language, None where unknown.
        answers: one for each query, in the order of the dataset or log.
        scores: measure -> figures.
        warnings: sentences on what makes the figures less than they seem.
        vectors: what was searched with, shape (queries, dimension), float32; None in lexical mode.
        shift_queries: whether queries in other languages than the pivot were shifted.
        load: how the queries were sent.
        sending: how that went.
        group_scores: query id -> every document of its target -> score, None where it has none; empty if not
            asked for.
        dataset: what was replayed.
        fields: the index's names of fields.
    """

    index: str
    version: str
    mode: Mode
    fingerprint: Fingerprint
    languages: Mapping[str, str | None]
    answers: Sequence[Answer]
    scores: Mapping[str, Scores]
    warnings: Sequence[str]
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    shift_queries: bool = False
    load: Load = field(default_factory=Load)
    sending: Sending = field(default_factory=Sending)
    group_scores: groups.GroupScores = field(default_factory=dict, repr=False)
    dataset: Dataset | None = field(default=None, repr=False, compare=False)
    fields: Fields = USUAL

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


def encode_queries(
    searcher: Searcher, dataset: Dataset, on_batch: Callable[[int], None] = lambda _: None
) -> NDArray[np.float32]:
    """The vectors of a dataset's queries, shape (queries, dimension), float32.

    Args:
        searcher: the index's own way to encode queries.
        dataset: the queries.
        on_batch: called with the number of texts after each batch.
    """
    return encode(searcher, dataset.queries, on_batch)


def replay(
    client: OpenSearch,
    searcher: Searcher,
    dataset: Dataset,
    *,
    mode: Mode = "dense",
    vectors: NDArray[np.float32] | None = None,
    on_answer: Callable[[], None] = lambda: None,
) -> Replay:
    """Send every query to one index, one at a time, and score the answers.

    Args:
        client: the cluster.
        searcher: over the index.
        dataset: queries and judgements.
        mode: how to search.
        vectors: the queries' vectors as the encoder makes them, where they are there, shape (queries, dimension).
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    plan = Plan(mode)
    asked = Asked.of([searcher], dataset, plan, vectors)
    (found,) = replay_all([client], asked, plan, on_answer=on_answer)
    return found


def replay_all(
    clients: Sequence[OpenSearch],
    asked: Asked,
    plan: Plan,
    *,
    journals: Sequence[Journal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> list[Replay]:
    """Send every query to every index, in alternation, and score the answers.

    Args:
        clients: the cluster; queries that are under way at once are spread over them.
        asked: the queries, made into requests.
        plan: how.
        journals: one for each index, where answers are to be kept on disk; queries that they have are not sent.
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    known = [document_languages(clients[0], searcher.index, asked.dataset) for searcher in asked.searchers]
    places = len(asked.searchers)
    answers, sendings = send(clients, asked.requests, places, plan.load, journals, on_answer)
    return [
        _found(clients[0], asked, plan, place, answers[place], sendings[place], known[place]) for place in range(places)
    ]


def _found(
    client: OpenSearch,
    asked: Asked,
    plan: Plan,
    place: int,
    answers: Mapping[str, Answer],
    sending: Sending,
    known: tuple[Mapping[str, str | None], Sequence[str]],
) -> Replay:
    """What was found in one index."""
    searcher, dataset = asked.searchers[place], asked.dataset
    heard = [answers[query.id] for query in asked.queries]
    group_scores, warnings = _group_scores(client, asked, plan, place, heard)
    run = {answer.query: dict(answer.hits) for answer in heard}
    documents, told = known
    scores = _scores(plan.measures, dataset, run, asked.languages, documents, group_scores)
    notes = [f"{name}: {found.note}" for name, found in scores.items() if found.note]
    return Replay(
        index=searcher.index.name,
        version=searcher.index.index,
        mode=plan.mode,
        fingerprint=searcher.index.fingerprint,
        languages=asked.languages,
        answers=heard,
        scores=scores,
        warnings=[*misfits(searcher, dataset, run), *detected(asked), *told, *warnings, *notes],
        vectors=asked.vectors[place],
        shift_queries=plan.mode == "dense" and searcher.query_debias.shift_queries,
        load=plan.load,
        sending=sending,
        group_scores=group_scores,
        dataset=dataset,
        fields=searcher.index.fields,
    )


def _group_scores(
    client: OpenSearch, asked: Asked, plan: Plan, place: int, heard: Sequence[Answer]
) -> tuple[groups.GroupScores, list[str]]:
    """The scores of target groups, and sentences on those that could not be had."""
    wanted = groups.targets(asked.dataset, asked.queries) if plan.group_scores else {}
    if not wanted or not all(answer.reached for answer in heard):
        return {}, []
    searcher = asked.searchers[place]
    bodies = groups.bodies(searcher, asked.queries, wanted, asked.languages, asked.vectors[place])
    scores, errors = groups.ask_groups(client, searcher.index.index, bodies, wanted)
    if not errors:
        return scores, []
    first = next(iter(errors))
    return scores, [
        f"The group scores of {len(errors):,} of {len(wanted):,} queries could not be had, and LPR counts these "
        f"as 0; the first, {first}: {errors[first]}"
    ]


def _scores(
    names: Sequence[str] | None,
    dataset: Dataset,
    run: Mapping[str, Mapping[str, float]],
    queries: Mapping[str, str | None],
    documents: Mapping[str, str | None],
    group_scores: groups.GroupScores,
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
