"""Where a difference comes from: languages, the place of the evidence, and the queries that gain and lose most."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from langshift.evaluate.compare import comparison
from langshift.evaluate.compare.comparison import Column, ComparedRun, Comparison, Pair
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.datasets.dataset import DatasetQuery
from langshift.evaluate.datasets.texts import read_texts
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Run, Scores, ranking
from langshift.evaluate.runs import scored
from langshift.ingest.documents import Document

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


class RecallMatrix(NamedTuple):
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
    recalls = {run.letter: _recalls(name, compared, run, depth) for run in compared.candidates}
    first, *later = recalls
    columns = list(recalls[first])
    changes = comparison.changes_between(recalls, columns, [(first, letter) for letter in later])
    queries = {language: part.queries for language, part in compared.by_language.items()}
    parts = comparison.compare_parts(recalls, changes, queries, compared.clusters)
    made = []
    for letter in later:
        cells: dict[str, dict[str, RecallCell]] = {}
        for column in columns:
            for language, part in parts.items():
                before, after = part.mean(first, column), part.mean(letter, column)
                tested = part.tested(column, (first, letter))
                if before is not None and after is not None and tested is not None:
                    cells.setdefault(language, {})[column.section] = RecallCell(before, after, tested)
        made.append(RecallMatrix((first, letter), name, cells))
    return made


def _top(run: Run, depth: int) -> Run:
    """The first documents of every answer: all that counts, and faster to go through again and again."""
    return {query: {name: hits[name] for name in ranking(hits)[:depth]} for query, hits in run.items()}


def _recalls(name: str, compared: Comparison, of: ComparedRun, depth: int) -> dict[Column, Scores]:
    """Recall over the relevant documents in each language, sorted by language."""
    dataset, languages, run = of.dataset, compared.languages, _top(of.run, depth)
    found = {}
    for target in sorted({language for language in languages.documents.values() if language}):
        part = {
            query: {document: grade for document, grade in judged.items() if languages.documents[document] == target}
            for query, judged in dataset.qrels.items()
        }
        found[Column(target, name)] = scored([name], dataset, languages, run, qrels=part)[name]
    return found


POSITIONS = ("PSI@10", "EvidenceHit@10")


def positions(compared: Comparison) -> dict[str, Mapping[str, Scores]]:
    """How much the place of the evidence in a document matters: letter -> measures of it; empty without evidence."""
    return {
        run.letter: scored(POSITIONS, run.dataset, compared.languages, run.run, passages=run.passages)
        for run in compared.candidates
        if compared.dataset.evidence.lengths
    }


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
        hits: what the earlier and what the later run finds first.
    """

    query: DatasetQuery
    language: str | None
    before: float
    after: float
    hits: Sequence[Sequence[ExampleHit]]


class ExampleQueries(NamedTuple):
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
    compared: Comparison, column: Column, many: int = MANY, *, hits: int = HITS
) -> list[ExampleQueries]:
    """Winners and losers of every later run against the first.

    Args:
        compared: the runs.
        column: by which measure; one of which more, or less, is better.
        many: how many of each at most; those with equal changes by query id.
        hits: how many documents of each run an example shows.
    """
    first, *later = compared.letters
    scores, better = compared.whole.scores, comparison.sign(column)
    changes = {letter: comparison.changed(scores[first][column], scores[letter][column]) for letter in later}
    gains = {letter: {query: better * change for query, change in of.items()} for letter, of in changes.items()}
    shown = {letter: _largest(gains[letter], many) for letter in later}
    tops = {
        (letter, query): ranking(compared.candidate(letter).run.get(query, {}))[:hits]
        for later_one, sides in shown.items()
        for query in chain(*sides)
        for letter in (first, later_one)
    }
    names = set(chain(*tops.values()))
    texts = read_texts(compared.dataset, names)
    words = {name: _words(texts.get(name)) for name in names}
    queries = {query.id: query for query in compared.dataset.queries}

    def example(query: str, pair: Pair) -> ExampleQuery:
        judged = compared.dataset.qrels.get(query, {})
        documents = compared.languages.documents
        before, after = (scores[letter][column].per_query[query] for letter in pair)
        found = [
            [
                ExampleHit(name, documents.get(name), judged.get(name, 0) > 0, words[name])
                for name in tops[letter, query]
            ]
            for letter in pair
        ]
        return ExampleQuery(queries[query], compared.languages.queries[query], before, after, found)

    made = []
    for letter in later:
        pair, signed = (first, letter), gains[letter].values()
        up, down = sum(gain > 0 for gain in signed), sum(gain < 0 for gain in signed)
        winners, losers = ([example(query, pair) for query in side] for side in shown[letter])
        made.append(ExampleQueries(pair, column, up, down, len(signed) - up - down, winners, losers))
    return made


def _largest(gains: Mapping[str, float], many: int) -> tuple[list[str], list[str]]:
    """The queries with the largest gains, and those with the largest losses."""
    winning = sorted((query for query in gains if gains[query] > 0), key=lambda query: (-gains[query], query))
    losing = sorted((query for query in gains if gains[query] < 0), key=lambda query: (gains[query], query))
    return winning[:many], losing[:many]


def _words(text: Document | None) -> str:
    """Title and text in one line; a document that is not in the dataset has none."""
    parts = () if text is None else (" ".join(part.split()) for part in (text.title, text.text))
    return " · ".join(part for part in parts if part)
