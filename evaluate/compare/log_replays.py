"""Replays of a log without judgements, compared: how alike their answers are, and what changes most."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.compare.breakdowns import HITS, MANY, ExampleHit
from langshift.evaluate.compare.comparison import ComparedRun, Comparison, Pair
from langshift.evaluate.compare.next_commands import next_commands
from langshift.evaluate.compare.verdict import Verdict, unjudged_runs
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery, primary_language, unique_id
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures.base import ranking
from langshift.evaluate.replay.journal import FOUND_DOCUMENTS, LOGGED_QUERIES
from langshift.evaluate.replay.overlap import Overlap, measure_overlap, rank_biased_overlap
from langshift.evaluate.replay.requests import QueryResult
from langshift.evaluate.runs import PER_QUERY
from langshift.files import records, string


class ChangedQuery(NamedTuple):
    """A query and what two runs find for it.

    Attributes:
        query: the query; without words where the log's were not to be written.
        language: its language, named or detected.
        rbo: the rank-biased overlap of the two answers, 1 where they are the same.
        hits: what the earlier and what the later run finds first.
    """

    query: DatasetQuery
    language: str | None
    rbo: float
    hits: Sequence[Sequence[ExampleHit]]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the document of a comparison."""
        sides = zip(("before", "after"), self.hits, strict=True)
        return {
            "query": self.query.id,
            "text": self.query.text,
            "language": self.language,
            "RBO": self.rbo,
            "hits": {
                side: [{"id": hit.id, "language": hit.language, "text": hit.text} for hit in hits]
                for side, hits in sides
            },
        }


class Change(NamedTuple):
    """What a later run changes against the first.

    Attributes:
        pair: the earlier and the later run.
        overlap: how alike their answers are, and the languages of these.
        most: the queries whose answers are least alike, these first.
    """

    pair: Pair
    overlap: Overlap
    most: Sequence[ChangedQuery]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the document of a comparison."""
        return {**self.overlap.to_dict(), "most_changed": [one.to_dict() for one in self.most]}


def is_logged(place: Path) -> bool:
    """Whether a run is a replay of a log without judgements."""
    return (place / LOGGED_QUERIES).is_file()


def load_logged(places: Sequence[Path]) -> Dataset:
    """Return what replays of one log have in common: its queries, and the documents that any of them found.

    Raises:
        UsageError: they are of different logs, or one of them is not a replay of a log.
    """
    first, *others = places
    queries = _queries(first)
    for other in others:
        if not is_logged(other) or _queries(other) != queries:
            raise UsageError(
                f"{first} and {other} are not runs of the same log, with the same queries: replay one log on both, or "
                "give the judgements with --dataset."
            )
    documents: dict[str, DatasetDocument] = {}
    for place in places:
        documents |= {name: DatasetDocument(language, None) for name, (language, _) in _documents(place).items()}
    return Dataset(first, documents, queries, {})


def _queries(place: Path) -> tuple[DatasetQuery, ...]:
    path, found = place / LOGGED_QUERIES, dict[str, DatasetQuery]()
    for line, record in records(path):
        name = unique_id(record.get("_id"), path, line, found)
        words = string(record, "text", f"{path}, line {line}", "replay the log again") if "text" in record else ""
        found[name] = DatasetQuery(name, words, primary_language(record.get("language"), f"{path}, line {line}"), None)
    return tuple(found.values())


def _documents(place: Path) -> dict[str, tuple[str | None, str]]:
    """Document id -> its language and how it begins."""
    path, found = place / FOUND_DOCUMENTS, dict[str, tuple[str | None, str]]()
    for line, record in records(path) if path.is_file() else ():
        name = unique_id(record.get("_id"), path, line, found)
        found[name] = primary_language(record.get("language"), f"{path}, line {line}"), str(record.get("text") or "")
    return found


def beginnings_of(places: Sequence[Path]) -> dict[str, str]:
    """Document id -> how it begins, of the first documents that any of the replays found.

    Raises:
        UsageError: a line that cannot be read.
    """
    texts: dict[str, str] = {}
    for place in places:
        texts |= {name: text for name, (_, text) in _documents(place).items() if text}
    return texts


def languages_of(dataset: Dataset) -> DatasetLanguages:
    """The languages that the replays knew; nothing is detected anew."""
    documents = {name: document.language for name, document in dataset.documents.items()}
    return DatasetLanguages({}, documents, {query.id: query.language for query in dataset.queries}, ())


def changes(compared: Comparison, many: int = 2 * MANY, *, hits: int = HITS) -> dict[str, Change]:
    """What each later run changes against the first, by its letter.

    Args:
        compared: replays of one log.
        many: how many queries to show at most.
        hits: how many documents of each run these show.
    """
    first, *later = compared.candidates
    languages, queries = compared.languages, {query.id: query for query in compared.dataset.queries}
    texts = beginnings_of([run.place for run in compared.candidates])

    def shown(names: Sequence[str]) -> list[ExampleHit]:
        return [ExampleHit(name, languages.documents.get(name), False, texts.get(name, "")) for name in names[:hits]]

    found = {}
    for run in later:
        pair = first.letter, run.letter
        answers = [_answers(one, queries) for one in (first, run)]
        overlap = measure_overlap(
            (first.label, run.label), *answers, queries=languages.queries, documents=languages.documents
        )
        ranked = [{answer.query: [name for name, _ in answer.hits] for answer in side} for side in answers]
        failed = {answer.query for side in answers for answer in side if answer.error is not None}
        asked = [query for query in queries if query not in failed]
        alike = {query: rank_biased_overlap(*(side[query] for side in ranked)) for query in asked}
        least = sorted((query for query in alike if alike[query] < 1 - _SAME), key=lambda query: (alike[query], query))
        most = [
            ChangedQuery(
                queries[query], languages.queries[query], alike[query], [shown(side[query]) for side in ranked]
            )
            for query in least[:many]
        ]
        found[run.letter] = Change(pair, overlap, most)
    return found


_SAME = 1e-9


def _answers(run: ComparedRun, queries: Mapping[str, DatasetQuery]) -> list[QueryResult]:
    """The answers of a run, best first; one that failed has an error."""
    path = run.place / PER_QUERY
    errors = {str(row.get("query")): row.get("error") for _, row in records(path)} if path.is_file() else {}
    ranked = {query: run.run.get(query, {}) for query in queries}
    return [
        QueryResult(query, tuple((name, hits[name]) for name in ranking(hits)), error=errors.get(query))
        for query, hits in ranked.items()
    ]


def verdicts(compared: Comparison, found: Mapping[str, Change]) -> dict[str, Verdict]:
    """What can be said of each later run without judgements, by its letter."""
    queries, told = compared.dataset.queries, dict[str, Verdict]()
    for letter, change in found.items():
        runs = [compared.candidate(one) for one in change.pair]
        folders = {run.place.parent for run in runs}
        # Runs are judged by the words of their queries, and found in one folder.
        judge = f"langshift serve --results {shlex.quote(str(folders.pop()))}" if len(folders) == 1 else None
        judge = judge if all(query.text for query in queries) and change.most else None
        indices = [str(run.result.get("index") or "NAME") for run in runs]
        steps = next_commands(indices, filter(None, (run.how for run in runs)), len(queries), judge)
        told[letter] = unjudged_runs(change.overlap)._replace(next=steps)
    return told
