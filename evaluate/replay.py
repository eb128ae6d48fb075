"""Replay: every query of a dataset against the live cluster, scored by the dataset's judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import failure
from langshift.evaluate.asking import Answer, ask_all
from langshift.evaluate.dataset import Dataset
from langshift.evaluate.measures import DEFAULT_MEASURES, Scores, score
from langshift.ingest.detect import open_detector
from langshift.ingest.making import LEAST_CONFIDENCE
from langshift.ingest.search import Searcher
from langshift.languages import UNDETERMINED
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.template import text_language

Mode = Literal["dense", "lexical"]
TOP_K = 100
_ENCODE_AT_ONCE = 256
_GET_AT_ONCE = 1000


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes:
        index: the alias that was searched.
        version: the versioned index behind it.
        mode: how it was searched.
        fingerprint: what made the index.
        languages: query id -> language, None where unknown.
        answers: one for each query, in the dataset's order.
        scores: measure -> figures.
        warnings: sentences on what makes the figures less than they seem.
        vectors: the queries' vectors, shape (queries, dimension), float32; None in lexical mode.
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

    @property
    def failed(self) -> Sequence[Answer]:
        """The queries that failed; each counts as an empty answer."""
        return [answer for answer in self.answers if answer.error is not None]

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
        on_batch: called with the number of queries after each batch.
    """
    texts = [query.text for query in dataset.queries]
    batches = []
    for start in range(0, len(texts), _ENCODE_AT_ONCE):
        batch = texts[start : start + _ENCODE_AT_ONCE]
        batches.append(searcher.encode(batch))
        on_batch(len(batch))
    return np.concatenate(batches)


def query_languages(dataset: Dataset) -> tuple[dict[str, str | None], list[str]]:
    """Query id -> the language that the dataset names, else the detected one; None where it is not clear.

    Detection is not restricted to the index's languages, as searching does: a question in a language that
    the index lacks has no documents in its own language, and must not count as having some.
    """
    languages = {query.id: query.language for query in dataset.queries}
    unnamed = [query for query in dataset.queries if query.language is None]
    if not unnamed:
        return languages, []
    detector = open_detector()
    for query in unnamed:
        found = detector.detect(query.text)
        if found.confidence >= LEAST_CONFIDENCE:
            languages[query.id] = text_language(found.language)
    unclear = sum(languages[query.id] is None for query in unnamed)
    left = f"; {unclear:,} without a clear one are left out of TLR and SLR" if unclear else ""
    return languages, [
        f"The dataset names no language for {len(unnamed):,} of its {len(dataset.queries):,} queries, "
        f"so theirs were detected{left}."
    ]


def replay(
    client: OpenSearch,
    searcher: Searcher,
    dataset: Dataset,
    *,
    mode: Mode = "dense",
    vectors: NDArray[np.float32] | None = None,
    on_answer: Callable[[], None] = lambda: None,
) -> Replay:
    """Send every query to the cluster and score the answers.

    The best ``TOP_K`` hits are asked for, by id alone, one query at a time; encoding is not part of
    the time.

    Args:
        client: the cluster.
        searcher: over the index.
        dataset: queries and judgements.
        mode: how to search.
        vectors: the queries' vectors where they are there already, shape (queries, dimension).
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    if mode == "dense" and vectors is None:
        vectors = encode_queries(searcher, dataset)
    languages, detected = query_languages(dataset)
    requests = []
    for row, query in enumerate(dataset.queries):
        vector = vectors[row] if vectors is not None and mode == "dense" else None
        body = searcher.body(query.text, mode=mode, language=languages[query.id], size=TOP_K, vector=vector)
        requests.append((query.id, body | {"_source": False}))
    documents, warnings = _document_languages(client, searcher.index.index, dataset)
    answers = list(ask_all(client, searcher.index.index, requests, on_answer))
    run = {answer.query: dict(answer.hits) for answer in answers}
    return Replay(
        index=searcher.index.name,
        version=searcher.index.index,
        mode=mode,
        fingerprint=searcher.index.fingerprint,
        languages=languages,
        answers=answers,
        scores=score(DEFAULT_MEASURES, dataset.qrels, run, queries=languages, documents=documents),
        warnings=[*_misfits(searcher, dataset, run), *detected, *warnings],
        vectors=vectors if mode == "dense" else None,
    )


def _document_languages(client: OpenSearch, index: str, dataset: Dataset) -> tuple[dict[str, str | None], list[str]]:
    """The languages of the documents, the index's own where the dataset names none for a relevant one."""
    languages = {name: document.language for name, document in dataset.documents.items()}
    relevant = {name for judged in dataset.qrels.values() for name, grade in judged.items() if grade > 0}
    unnamed = sorted(name for name in relevant if languages[name] is None)
    if not unnamed:
        return languages, []
    languages.update(_indexed_languages(client, index, unnamed))
    warning = (
        f"The dataset names no language for {len(unnamed):,} of its {len(relevant):,} relevant documents, "
        "so TLR and SLR go by the languages that the index has for them"
    )
    unknown = sum(languages[name] is None for name in unnamed)
    left = f"; {unknown:,} that have none there are left out" if unknown else ""
    return languages, [f"{warning}{left}."]


def _indexed_languages(client: OpenSearch, index: str, names: Iterable[str]) -> dict[str, str]:
    rest, found = iter(names), {}
    while ids := list(islice(rest, _GET_AT_ONCE)):
        try:
            answer: dict[str, Any] = client.mget(index=index, body={"ids": ids}, params={"_source": "language"})
        except OpenSearchException as error:
            raise failure(error) from error
        for document in answer["docs"]:
            language = document.get("_source", {}).get("language", UNDETERMINED)
            if language != UNDETERMINED:
                found[document["_id"]] = language
    return found


def _misfits(searcher: Searcher, dataset: Dataset, run: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say where index and dataset do not hold the same documents."""
    warnings = []
    held, expected = searcher.index.documents, len(dataset.documents)
    if held != expected:
        warnings.append(
            f"{searcher.index.name} holds {held:,} documents and the dataset has {expected:,}, "
            "so the figures are not those of the dataset alone."
        )
    strange = {name for hits in run.values() for name in hits} - dataset.documents.keys()
    if strange:
        warnings.append(
            f"{len(strange):,} of the documents found are not in the dataset ({min(strange)}, say) "
            "and count as not relevant."
        )
    return warnings
