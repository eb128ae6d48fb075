"""What a replay asks: the plan, and the requests made from it before the first is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.dataset import Dataset, Query
from langshift.evaluate.load.answer import Request
from langshift.evaluate.load.query_log import Logged
from langshift.evaluate.load.requests import Mode, alternating, bodies, encode, languages
from langshift.evaluate.load.schedule import Load
from langshift.ingest.search import Searcher


@dataclass(frozen=True)
class Plan:
    """How to replay.

    Attributes:
        mode: how to search.
        load: how queries are sent.
        measures: what to measure; the default measures if None.
        log: what is asked, and when it came; the dataset's own queries if None.
        group_scores: whether to ask for the scores of whole translation groups, where the dataset has such.
    """

    mode: Mode = "dense"
    load: Load = field(default_factory=Load)
    measures: Sequence[str] | None = None
    log: Sequence[Logged] | None = None
    group_scores: bool = False


@dataclass(frozen=True)
class Asked:
    """The requests of a replay, and what they are made of.

    Attributes:
        searchers: over the indices.
        dataset: the judgements, and the documents.
        queries: what is asked.
        languages: query id -> language, None where unknown; the same for all indices.
        vectors: for each index, the vectors that it is searched with, shape (queries, dimension), float32; None in
            lexical mode.
        requests: each query to each index, in the order of sending.
    """

    searchers: Sequence[Searcher]
    dataset: Dataset
    queries: Sequence[Query]
    languages: Mapping[str, str | None]
    vectors: Sequence[NDArray[np.float32] | None]
    requests: Sequence[Request]

    @classmethod
    def of(
        cls,
        searchers: Sequence[Searcher],
        dataset: Dataset,
        plan: Plan,
        vectors: NDArray[np.float32] | None = None,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> Asked:
        """Encode the queries, once for each encoder, shift them where they are to be, and make the requests.

        Args:
            searchers: over the indices.
            dataset: the judgements, and the queries where the plan has none.
            plan: how to replay.
            vectors: the queries' vectors for the first index, as its encoder makes them, where they are there.
            on_batch: called with the number of queries encoded after each batch.

        Raises:
            UsageError: a query that cannot be asked, queries to be shifted by nothing, or too much for the memory.
        """
        queries = dataset.queries if plan.log is None else merged(plan.log, dataset)
        tags = languages(queries)
        keys = [_same_bodies(searcher, plan.mode) for searcher in searchers]
        encoded: dict[tuple[object, ...], NDArray[np.float32]] = {}
        if vectors is not None:
            encoded[_same_vectors(searchers[0])] = vectors
        moved: dict[tuple[object, ...], NDArray[np.float32] | None] = {}
        content: dict[tuple[object, ...], list[bytes]] = {}
        for searcher, key in zip(searchers, keys, strict=True):
            if key in content:
                continue
            moved[key] = None
            if plan.mode == "dense":
                made = _same_vectors(searcher)
                if made not in encoded:
                    encoded[made] = encode(searcher, queries, on_batch)
                moved[key] = searcher.move(encoded[made], [tags[query.id] for query in queries])
            content[key] = bodies(searcher, queries, plan.mode, tags, moved[key])
        names = [searcher.index.index for searcher in searchers]
        due = plan.load.due(len(queries), None if plan.log is None else [logged.time for logged in plan.log])
        requests = list(alternating(names, queries, [content[key] for key in keys], due))
        return cls(searchers, dataset, queries, tags, [moved[key] for key in keys], requests)


def _same_vectors(searcher: Searcher) -> tuple[object, ...]:
    """Equal for two indices whose encoders give queries the same vectors."""
    encoder = searcher.encoder
    return encoder.id, encoder.revision, encoder.query_prefix, encoder.dimension


def _same_bodies(searcher: Searcher, mode: Mode) -> tuple[object, ...]:
    """Equal for two indices that are asked with the same bodies."""
    if mode == "lexical":
        return searcher.index.languages, searcher.index.fields
    debias = searcher.query_debias
    shift = (debias.vectors.hash, debias.alpha, *sorted(debias.alphas.items())) if debias.vectors else ()
    return *_same_vectors(searcher), *shift, searcher.index.fields


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
