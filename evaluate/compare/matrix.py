"""Target recall by query language and document language, and what a later run changes in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from langshift.evaluate.compare.comparing import Comparison, Pair, changed
from langshift.evaluate.compare.significance import Tested, paired_tests
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.datasets.texts import Languages
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.material import Run
from langshift.evaluate.measures.ranked import ranking
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.scoring import asked_by_language, scored

DEPTH = 20


class Cell(NamedTuple):
    """Target recall for the queries of one language and the relevant documents of one language.

    Attributes:
        before: the earlier run's recall.
        after: the later run's.
        tested: the difference.
    """

    before: float
    after: float
    tested: Tested


@dataclass(frozen=True)
class Matrix:
    """What a later run changes in target recall.

    Attributes:
        pair: the earlier and the later run.
        measure: ``R@20``.
        cells: query language -> document language -> cell; one that is missing has no relevant document.
    """

    pair: Pair
    measure: str
    cells: Mapping[str, Mapping[str, Cell]]

    @property
    def heads(self) -> list[str]:
        """The document languages, sorted."""
        return sorted({language for row in self.cells.values() for language in row})


def matrices(compared: Comparison) -> list[Matrix]:
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
    asked = asked_by_language(compared.languages)
    differences = {
        (letter, language, target): _of(changed(recalls[first][target], recalls[letter][target]), queries)
        for letter in later
        for target in recalls[first]
        for language, queries in asked.items()
    }
    found = paired_tests(differences, compared.clusters.of)
    made = []
    for letter in later:
        cells: dict[str, dict[str, Cell]] = {}
        for (of, language, target), tested in found.items():
            if of == letter:
                old, new = (_mean(recalls[run][target], asked[language]) for run in (first, letter))
                cells.setdefault(language, {})[target] = Cell(old, new, tested)
        made.append(Matrix((first, letter), name, cells))
    return made


def _top(run: Run, depth: int) -> Run:
    """The first documents of every answer: all that counts, and faster to go through again and again."""
    return {query: {name: hits[name] for name in ranking(hits)[:depth]} for query, hits in run.items()}


def _of(changes: Mapping[str, float], queries: Sequence[str]) -> dict[str, float]:
    return {query: changes[query] for query in queries if query in changes}


def _mean(scores: Scores, queries: Sequence[str]) -> float:
    return fmean(scores.over(queries).per_query.values())


def _recalls(name: str, dataset: Dataset, languages: Languages, run: Run) -> dict[str, Scores]:
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
