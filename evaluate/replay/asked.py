"""What a replay asks: the plan, and the requests made from it before the first is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.datasets.dataset import Dataset, Query
from langshift.evaluate.replay.answer import Request
from langshift.evaluate.replay.groups import targets
from langshift.evaluate.replay.query_log import Logged
from langshift.evaluate.replay.requests import alternating, encode, languages, prepare
from langshift.evaluate.replay.schedule import Load
from langshift.languages import UNDETERMINED, text_language
from langshift.retrieval.search import Searcher
from langshift.retrieval.trust import Trust
from langshift.retrieval.wanted import USUAL, Question, Setting

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Plan:
    """How to replay.

    Attributes:
        settings: how to search; every index is searched in each.
        load: how queries are sent.
        measures: what to measure; the default measures if None.
        log: what is asked, and when it came; the dataset's own queries if None.
        group_scores: whether to ask for the scores of whole translation groups, where the dataset has such.
    """

    settings: Sequence[Setting] = (USUAL,)
    load: Load = field(default_factory=Load)
    measures: Sequence[str] | None = None
    log: Sequence[Logged] | None = None
    group_scores: bool = False


class Way(NamedTuple):
    """One index searched in one setting: what a replay tells apart.

    Attributes:
        searcher: over the index.
        setting: how it is searched.
        questions: each query as it is asked.
        vectors: what the index is searched with, shape (queries, dimension), float32; None where the setting
            needs none.
    """

    searcher: Searcher
    setting: Setting
    questions: Sequence[Question]
    vectors: Vectors | None

    @property
    def shift_queries(self) -> bool:
        """Whether queries in other languages than the pivot are shifted."""
        return self.setting.needs_vector and self.searcher.query_debias.shift_queries

    @property
    def trust(self) -> Trust | None:
        """What ``anchored`` reckons with in the index; None in other modes."""
        return self.searcher.trust if self.setting.mode == "anchored" else None


@dataclass(frozen=True)
class Asked:
    """The requests of a replay, and what they are made of.

    Attributes:
        ways: every index in every setting, the settings of the first index first.
        dataset: the judgements, and the documents.
        queries: what is asked.
        languages: query id -> language, None where unknown; the same for all indices.
        scored: query id -> the documents whose scores are asked for beside the ranking; empty where none are.
        requests: each query in each way, in the order of sending.
    """

    ways: Sequence[Way]
    dataset: Dataset
    queries: Sequence[Query]
    languages: Mapping[str, str | None]
    scored: Mapping[str, Sequence[str]]
    requests: Sequence[Request]

    @classmethod
    def of(
        cls,
        searchers: Sequence[Searcher],
        dataset: Dataset,
        plan: Plan,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> Asked:
        """Encode the queries, once for each encoder, shift them where they are to be, and make the requests.

        Args:
            searchers: over the indices.
            dataset: the judgements, and the queries where the plan has none.
            plan: how to replay.
            on_batch: called with the number of queries encoded after each batch.

        Raises:
            UsageError: a query that cannot be asked, queries to be shifted by nothing, or too much for the memory.
        """
        queries = dataset.queries if plan.log is None else merged(plan.log, dataset)
        tags = languages(queries)
        encoded: dict[tuple[object, ...], Vectors] = {}
        ways = []
        for searcher in searchers:
            moved = None
            if any(setting.needs_vector for setting in plan.settings):
                made = _same_vectors(searcher)
                if made not in encoded:
                    encoded[made] = encode(searcher, queries, on_batch)
                moved = searcher.move(encoded[made], [tags[query.id] for query in queries])
            ways += [_way(searcher, setting, queries, tags, moved) for setting in plan.settings]
        known: dict[bytes, bytes] = {}
        content = [prepare(way.searcher, way.setting, way.questions, known) for way in ways]
        names = [way.searcher.index.index for way in ways]
        due = plan.load.due(len(queries), None if plan.log is None else [logged.time for logged in plan.log])
        scored = targets(dataset, queries) if plan.group_scores else {}
        return cls(ways, dataset, queries, tags, scored, list(alternating(names, queries, content, due, scored)))


def _way(
    searcher: Searcher,
    setting: Setting,
    queries: Sequence[Query],
    tags: Mapping[str, str | None],
    moved: Vectors | None,
) -> Way:
    vectors = moved if setting.needs_vector else None
    questions = [
        # As the index writes languages: nn as no, arz as ar.
        Question(query.text, text_language(tags[query.id] or UNDETERMINED), None if vectors is None else vectors[row])
        for row, query in enumerate(queries)
    ]
    return Way(searcher, setting, questions, vectors)


def _same_vectors(searcher: Searcher) -> tuple[object, ...]:
    """Equal for two indices whose encoders give queries the same vectors."""
    encoder = searcher.encoder
    return encoder.id, encoder.revision, encoder.query_prefix, encoder.dimension


def merged(log: Sequence[Logged], dataset: Dataset) -> list[Query]:
    """The queries of a log, with what the dataset knows of those of the same id."""
    known = {query.id: query for query in dataset.queries}
    return [_merged(query, known[query.id]) if query.id in known else query for _, query in log]


def _merged(logged: Query, known: Query) -> Query:
    # A vector that the dataset brings is that of its own words.
    embedding = known.embedding if logged.text == known.text else None
    return known._replace(text=logged.text, language=logged.language or known.language, embedding=embedding)


def detected(asked: Asked) -> list[str]:
    """Say how many queries named no language, so that theirs were detected."""
    unnamed = [query.id for query in asked.queries if query.language is None]
    if not unnamed:
        return []
    unclear = sum(asked.languages[query] is None for query in unnamed)
    left = f"; {unclear:,} without a clear one are left out of the measures by language" if unclear else ""
    return [f"{len(unnamed):,} of {len(asked.queries):,} queries name no language, so theirs were detected{left}."]
