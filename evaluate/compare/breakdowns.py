"""Where a difference comes from: recall by pair of languages, and the queries that gain and lose most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from langshift.evaluate.compare.comparison import Column, Comparison, Pair, changed
from langshift.evaluate.compare.significance import TestResult, paired_tests
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery
from langshift.evaluate.datasets.texts import DatasetLanguages, DocumentText, read_texts
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Run, Scores, ranking
from langshift.evaluate.runs import queries_by_language, scored

DEPTH = 20


class RecallCell(NamedTuple):
    """Target recall for the queries of one language and the relevant documents of one language.

    Attributes:
        before: the earlier run's recall.
        after: the later run's.
        tested: the difference.
    """

    before: float
    after: float
    tested: TestResult


@dataclass(frozen=True)
class RecallMatrix:
    """What a later run changes in target recall.

    Attributes:
        pair: the earlier and the later run.
        measure: ``R@20``.
        cells: query language -> document language -> cell; one that is missing has no relevant document.
    """

    pair: Pair
    measure: str
    cells: Mapping[str, Mapping[str, RecallCell]]

    @property
    def heads(self) -> list[str]:
        """The document languages, sorted."""
        return sorted({language for row in self.cells.values() for language in row})


def matrices(compared: Comparison) -> list[RecallMatrix]:
    """The matrix of every later run against the first; empty where documents were judged per language.

    All cells of all matrices are corrected together.
    """
    cutoff = parse_measure(compared.columns[0].measure).cutoff
    depth = cutoff if isinstance(cutoff, int) else DEPTH
    name = f"R@{depth}"
    recalls = {
        candidate.letter: _recalls(name, compared.dataset, compared.languages, _top(candidate.run, depth))
        for candidate in compared.candidates
    }
    first, *later = recalls
    by_language = queries_by_language(compared.languages.queries)
    differences = {
        (letter, language, target): _of(changed(recalls[first][target], recalls[letter][target]), queries)
        for letter in later
        for target in recalls[first]
        for language, queries in by_language.items()
    }
    found = paired_tests(differences, compared.clusters.of)
    made = []
    for letter in later:
        cells: dict[str, dict[str, RecallCell]] = {}
        for (of, language, target), tested in found.items():
            if of == letter:
                old, new = (_mean(recalls[run][target], by_language[language]) for run in (first, letter))
                cells.setdefault(language, {})[target] = RecallCell(old, new, tested)
        made.append(RecallMatrix((first, letter), name, cells))
    return made


def _top(run: Run, depth: int) -> Run:
    """The first documents of every answer: all that counts, and faster to go through again and again."""
    return {query: {name: hits[name] for name in ranking(hits)[:depth]} for query, hits in run.items()}


def _of(changes: Mapping[str, float], queries: Sequence[str]) -> dict[str, float]:
    return {query: changes[query] for query in queries if query in changes}


def _mean(scores: Scores, queries: Sequence[str]) -> float:
    return fmean(scores.over(queries).per_query.values())


def _recalls(name: str, dataset: Dataset, languages: DatasetLanguages, run: Run) -> dict[str, Scores]:
    """Document language -> recall over the relevant documents in it, sorted by language."""
    targets = sorted({language for language in languages.documents.values() if language})
    found = {}
    for target in targets:
        part = {
            query: {document: grade for document, grade in judged.items() if languages.documents[document] == target}
            for query, judged in dataset.qrels.items()
        }
        found[target] = scored([name], dataset, languages, run, qrels=part)[name]
    return found


MANY = 5
HITS = 3


class ExampleHit(NamedTuple):
    """A document that a run finds among the first.

    Attributes:
        id: the document's.
        language: its language, None where unknown.
        relevant: whether it answers the query.
        text: title and text.
    """

    id: str
    language: str | None
    relevant: bool
    text: str


class ExampleQuery(NamedTuple):
    """A query and what two runs find for it.

    Attributes:
        query: the query.
        language: its language, named or detected.
        before: the earlier run's figure.
        after: the later run's.
        hits_before: what the earlier run finds first.
        hits_after: what the later run finds first.
    """

    query: DatasetQuery
    language: str | None
    before: float
    after: float
    hits_before: Sequence[ExampleHit]
    hits_after: Sequence[ExampleHit]


@dataclass(frozen=True)
class ExampleQueries:
    """Those who gain and lose most between two runs.

    Attributes:
        pair: the earlier and the later run.
        column: by which measure.
        better: how many queries the later run serves better.
        worse: how many it serves worse.
        same: how many it serves alike.
        winners: the largest gains, largest first.
        losers: the largest losses, largest first.
    """

    pair: Pair
    column: Column
    better: int
    worse: int
    same: int
    winners: Sequence[ExampleQuery]
    losers: Sequence[ExampleQuery]


def example_queries(
    compared: Comparison, sign: int, column: Column, many: int = MANY, *, hits: int = HITS
) -> list[ExampleQueries]:
    """Winners and losers of every later run against the first.

    Args:
        compared: the runs.
        sign: 1 where a higher figure is better, -1 where a lower one is.
        column: by which measure.
        many: how many of each at most; those with equal changes by query id.
        hits: how many documents of each run an example shows.
    """
    first, *later = (candidate.letter for candidate in compared.candidates)
    chosen: dict[str, tuple[list[str], list[str], dict[str, float]]] = {}
    for letter in later:
        changes = changed(compared.scores[first][column], compared.scores[letter][column])
        gains = {query: sign * change for query, change in changes.items()}
        order = sorted(gains, key=lambda query: (-gains[query], query))
        losing = sorted(gains, key=lambda query: (gains[query], query))
        winners = [query for query in order[:many] if gains[query] > 0]
        losers = [query for query in losing[:many] if gains[query] < 0]
        chosen[letter] = winners, losers, gains
    shown = {
        letter: {run: _first(compared, run, [*winners, *losers], hits) for run in (first, letter)}
        for letter, (winners, losers, _) in chosen.items()
    }
    wanted = {name for runs in shown.values() for hits in runs.values() for names in hits.values() for name in names}
    texts = read_texts(compared.dataset, wanted)
    queries = {query.id: query for query in compared.dataset.queries}
    made = []
    for letter, (winners, losers, gains) in chosen.items():
        pair = (first, letter)
        better, worse = sum(gain > 0 for gain in gains.values()), sum(gain < 0 for gain in gains.values())
        examples = [
            [_example(compared, column, pair, queries[name], shown[letter], texts) for name in names]
            for names in (winners, losers)
        ]
        made.append(ExampleQueries(pair, column, better, worse, len(gains) - better - worse, *examples))
    return made


def _first(compared: Comparison, letter: str, queries: Sequence[str], hits: int) -> dict[str, list[str]]:
    """Query id -> the documents that a run finds first."""
    run = compared.candidate(letter).run
    return {query: ranking(run.get(query, {}))[:hits] for query in queries}


def _example(
    compared: Comparison,
    column: Column,
    pair: Pair,
    query: DatasetQuery,
    hits: Mapping[str, Mapping[str, Sequence[str]]],
    texts: Mapping[str, DocumentText],
) -> ExampleQuery:
    judged = compared.dataset.qrels.get(query.id, {})
    documents = compared.languages.documents
    before, after = (compared.scores[letter][column].per_query[query.id] for letter in pair)
    found = [
        [
            ExampleHit(name, documents.get(name), judged.get(name, 0) > 0, _words(texts.get(name)))
            for name in hits[letter][query.id]
        ]
        for letter in pair
    ]
    return ExampleQuery(query, compared.languages.queries[query.id], before, after, *found)


def _words(text: DocumentText | None) -> str:
    """Title and text in one line; a document that is not in the dataset has none."""
    parts = () if text is None else (" ".join(part.split()) for part in (text.title, text.text))
    return " · ".join(part for part in parts if part)
