"""A comparison of runs: every figure, over all queries and by query language, and every paired test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from langshift.evaluate.compare.runs import Candidate
from langshift.evaluate.compare.sections import ALL, Column, score_columns
from langshift.evaluate.compare.significance import Tested, paired_tests
from langshift.evaluate.compare.slices import slices
from langshift.evaluate.datasets.clusters import Clusters
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.datasets.texts import Languages
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.scoring import asked_by_language

Pair = tuple[str, str]
"""Letters of the earlier and the later run; a difference is the later one's figure less the earlier one's."""


@dataclass(frozen=True)
class Comparison:
    """Runs of one dataset, scored and tested against each other.

    Attributes:
        dataset: what they are runs of.
        languages: of queries and documents.
        clusters: which queries belong together.
        candidates: the runs, in the order given.
        columns: what was measured.
        scores: letter -> column -> figures.
        pairs: column and pair of runs -> test over all queries.
        by_language: query language, column and pair of runs -> test over its queries.
        slices: slice -> its queries; empty where every query has an answer in its language.
        by_slice: slice, column and pair of runs -> test over its queries.
    """

    dataset: Dataset
    languages: Languages
    clusters: Clusters
    candidates: Sequence[Candidate]
    columns: Sequence[Column]
    scores: Mapping[str, Mapping[Column, Scores]]
    pairs: Mapping[tuple[Column, Pair], Tested]
    by_language: Mapping[tuple[str, Column, Pair], Tested]
    slices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_slice: Mapping[tuple[str, Column, Pair], Tested] = field(default_factory=dict)

    @property
    def asked(self) -> Mapping[str, Sequence[str]]:
        """Query language -> queries."""
        return asked_by_language(self.languages)

    @property
    def primary(self) -> Column | None:
        """The first measure of which more, or less, is better: what runs are judged by."""
        return next((column for column in self.columns if sign(column)), None)

    def mean(self, letter: str, column: Column, language: str | None = None) -> float | None:
        """A run's figure, over the queries of one language where one is given."""
        found = self.scores[letter][column]
        return found.mean if language is None else found.over(self.asked[language]).mean

    def candidate(self, letter: str) -> Candidate:
        """The run of that letter."""
        return next(candidate for candidate in self.candidates if candidate.letter == letter)

    def tested(self, column: Column, pair: Pair, language: str | None = None) -> Tested | None:
        """The test of a pair; None where the measure has no figures by query."""
        return self.pairs.get((column, pair)) if language is None else self.by_language.get((language, column, pair))


def sign(column: Column) -> int:
    """1 where a higher figure is better, -1 where a lower one is, 0 where that depends on the searcher."""
    return {"high": 1, "low": -1, "report": 0}[parse_measure(column.measure).family.direction]


def compare(
    dataset: Dataset,
    languages: Languages,
    clusters: Clusters,
    candidates: Sequence[Candidate],
    columns: Sequence[Column],
) -> Comparison:
    """Score every run and test every pair.

    Three families of tests are corrected, each for itself: measures times pairs over all queries, measures
    times pairs times query languages, and those over all relevant documents times pairs times slices.

    Raises:
        UsageError: an unknown measure.
    """
    scores = {
        candidate.letter: score_columns(columns, dataset, languages, candidate.run, candidate.group_scores)
        for candidate in candidates
    }
    letters = list(scores)
    pairs = [(one, other) for place, one in enumerate(letters) for other in letters[place + 1 :]]
    changes = {
        (column, (one, other)): changed(scores[one][column], scores[other][column])
        for column in columns
        for one, other in pairs
    }
    by_language = _parts(changes, asked_by_language(languages))
    parts = slices(dataset.qrels, languages.queries, languages.documents)
    by_slice = _parts({key: change for key, change in changes.items() if key[0].section == ALL}, parts)
    tested, apart, sliced = (paired_tests(family, clusters.of) for family in (changes, by_language, by_slice))
    return Comparison(dataset, languages, clusters, candidates, columns, scores, tested, apart, parts, sliced)


def _parts(
    changes: Mapping[tuple[Column, Pair], Mapping[str, float]], parts: Mapping[str, Sequence[str]]
) -> dict[tuple[str, Column, Pair], dict[str, float]]:
    """The differences of some of the queries at a time."""
    return {
        (part, column, pair): {query: change[query] for query in queries if query in change}
        for part, queries in parts.items()
        for (column, pair), change in changes.items()
    }


def changed(before: Scores, after: Scores) -> dict[str, float]:
    """Query id -> difference, for the queries that both runs have a figure for.

    Empty where the figure of the whole is not the mean of the queries': then nothing can be paired.
    """
    if not (paired(before) and paired(after)):
        return {}
    return {query: after.per_query[query] - old for query, old in before.per_query.items() if query in after.per_query}


def paired(scores: Scores) -> bool:
    """Whether the figure is the mean of figures by query."""
    mean = scores.mean
    return bool(scores.per_query) and mean is not None and abs(fmean(scores.per_query.values()) - mean) < 1e-9
