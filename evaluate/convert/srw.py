"""Judgements and query sets as OpenSearch's Search Relevance Workbench has them, read and written.

::

    judgments.csv      query, docid and rating under a header
    judgments.json     {"judgmentRatings": [{"query": text, "ratings": [{"docId": id, "rating": "3.0"}]}]}, as the
                       workbench takes it, or as it gives it back under _source
    query-set.ndjson   optional: a line for each query with queryText, and optionally referenceAnswer and queryId
    query-set.csv      the same as a table
    corpus.jsonl       to read: the documents, as a dataset folder has them

A query is known by its words there. ``queryId`` is a field of our own, which the workbench keeps beside them.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.evaluate.convert.beir import find, passages
from langshift.evaluate.convert.common import Chosen, located, require_folder
from langshift.evaluate.convert.pool import JudgedQuestion, PoolSource, new_folder
from langshift.evaluate.datasets.dataset import CORPUS, Dataset
from langshift.evaluate.datasets.logs import csv_rows
from langshift.files import identifier, json_lines, parse_record, string
from langshift.reporting import note
from langshift.wording import join_words, pluralize

JUDGMENTS, QUERY_SET = "judgments", "query-set"
_HOLDS = f"name one with {CORPUS}, and {JUDGMENTS}.csv or {JUDGMENTS}.json"
_COLUMNS = ("query", "docid", "rating")


class _Rating(NamedTuple):
    """A judgement, and where it stands."""

    where: str
    words: str
    document: str
    rating: str


def read_srw(folder: Path, languages: Chosen) -> PoolSource:
    """Judgements of the workbench as a source of pools.

    Args:
        folder: the folder; of two files of judgements the table counts.
        languages: tags of the documents to take; None takes all, also those that name none.

    Raises:
        UsageError: a missing file, or a line of another layout.
    """
    require_folder(folder, _HOLDS)
    corpus, table, document = find(folder, CORPUS), folder / f"{JUDGMENTS}.csv", folder / f"{JUDGMENTS}.json"
    if not table.is_file() and not document.is_file():
        raise UsageError(f"{folder} has no {JUDGMENTS}.csv and no {JUDGMENTS}.json: {_HOLDS}.")
    ratings = list(_table(table) if table.is_file() else _document(document))
    known = _query_set(folder)
    judged: dict[str, dict[str, int]] = {}
    places: dict[str, str] = {}
    rounded = 0
    for one in ratings:
        grade, whole = _grade(one)
        rounded += not whole
        grades = judged.setdefault(one.words, {})
        if grades.setdefault(one.document, grade) != grade:
            raise UsageError(f"{one.where}, grades {one.document!r} differently from an earlier one: keep one of them.")
        places.setdefault(one.document, f"{one.where},")
    if rounded:
        note(f"{pluralize(rounded, 'rating')} of {folder} rounded, since grades are whole numbers.")
    questions = []
    for number, (words, grades) in enumerate(judged.items(), 1):
        name, answer = known.get(words, ("", ""))
        questions.append(JudgedQuestion(name or f"q{number}", words, None, grades, answers=[answer] if answer else []))
    return PoolSource(
        folder,
        list(languages or []),
        questions,
        lambda: passages(corpus, {}, languages),
        whole=languages is None,
        place=lambda name: places[name],
    )


def _table(path: Path) -> Iterator[_Rating]:
    rows = csv_rows(path)
    number, first = next(rows, (1, []))
    heads = [head.strip().lower() for head in first]
    if not set(_COLUMNS) <= set(heads):
        has = ", ".join(first) or "none"
        raise UsageError(f"{path}, line {number}, has the columns {has}: it must have {join_words(_COLUMNS)}.")
    for number, row in rows:
        fields = dict(zip(heads, row, strict=True))
        yield _rating(f"{path}, line {number}", *(fields[name] for name in _COLUMNS))


def _document(path: Path) -> Iterator[_Rating]:
    where = f"{path}"
    found: Any = parse_record(path.read_bytes(), where)
    found = found.get("_source", found)
    lists: Any = found.get("judgmentRatings") if isinstance(found, dict) else None
    try:
        for number, one in enumerate(lists, 1):
            for rating in one["ratings"]:
                yield _rating(f"{where}, query {number}", one["query"], rating["docId"], rating["rating"])
    except (KeyError, TypeError):
        form = '{"judgmentRatings": [{"query": TEXT, "ratings": [{"docId": ID, "rating": NUMBER}, ...]}, ...]}'
        raise UsageError(f"{where} is not a list of judgements: it must be {form}.") from None


def _rating(where: str, words: object, document: object, rating: object) -> _Rating:
    if not isinstance(words, str) or not words.strip():
        raise UsageError(f"{where}, has no query: correct or remove it.")
    return _Rating(where, words, identifier(document, where, "docid"), str(rating).strip())


def _grade(one: _Rating) -> tuple[int, bool]:
    """The grade, and whether it was a whole number."""
    try:
        value = float(one.rating)
        if not math.isfinite(value) or abs(value) > _HIGHEST:
            raise ValueError
    except ValueError:
        raise UsageError(f"{one.where}, has the rating {one.rating!r}: it must be a number such as 3.0.") from None
    return round(value), value.is_integer()


_HIGHEST = 999_999


def _query_set(folder: Path) -> dict[str, tuple[str, str]]:
    """Words -> id and reference answer, "" where there is none; empty without a query set."""
    lines, table = folder / f"{QUERY_SET}.ndjson", folder / f"{QUERY_SET}.csv"
    found: dict[str, tuple[str, str]] = {}
    for where, record in located(lines) if lines.is_file() else _rows_as_objects(table):
        words = string(record, "queryText", where, "correct or remove it")
        name, answer = record.get("queryId") or "", record.get("referenceAnswer") or ""
        found.setdefault(words, (identifier(name, where, "queryId") if name else "", str(answer)))
    return found


def _rows_as_objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    rows = csv_rows(path) if path.is_file() else iter(())
    _, heads = next(rows, (0, []))
    for number, row in rows:
        yield f"{path}, line {number}", dict(zip(heads, row, strict=True))


def write_srw(dataset: Dataset, out: Path) -> list[str]:
    """Write a dataset's queries and judgements as the workbench takes them: all files, or nothing.

    Args:
        dataset: the dataset.
        out: the folder to make; must not exist, or be empty.

    Returns:
        What the workbench cannot hold, in sentences.

    Raises:
        UsageError: ``out`` is taken.
    """
    first: dict[str, str] = {}
    same = [query.id for query in dataset.queries if first.setdefault(query.text, query.id) != query.id]
    queries = [query for query in dataset.queries if first[query.text] == query.id]
    rows = []
    for query in queries:
        answer = dataset.answers.get(query.id, ("",))[0]
        rows.append({"queryText": query.text, "referenceAnswer": answer, "queryId": query.id})
    answered = any(row["referenceAnswer"] for row in rows)
    if not answered:
        rows = [{name: value for name, value in row.items() if name != "referenceAnswer"} for row in rows]
    judged = [
        (query.text, name, f"{grade:.1f}")
        for query in queries
        for name, grade in dataset.qrels.get(query.id, {}).items()
    ]
    lists: dict[str, list[dict[str, str]]] = {}
    for words, name, rating in judged:
        lists.setdefault(words, []).append({"docId": name, "rating": rating})
    document = {
        "name": dataset.folder.absolute().name,
        "description": "Exported by langshift",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [{"query": words, "ratings": ratings} for words, ratings in lists.items()],
    }
    with new_folder(out) as partial:
        (partial / f"{JUDGMENTS}.csv").write_bytes(_csv(_COLUMNS, judged))
        (partial / f"{JUDGMENTS}.json").write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        (partial / f"{QUERY_SET}.csv").write_bytes(_csv(tuple(rows[0]), [tuple(row.values()) for row in rows]))
        (partial / f"{QUERY_SET}.ndjson").write_bytes(json_lines(rows))
    return _lost(dataset, same)


def _csv(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([heads, *rows])
    return text.getvalue().encode()


_CHECKS: Mapping[str, Callable[[Dataset], bool]] = {
    "documents": lambda _: True,
    "languages": lambda dataset: any(query.language for query in dataset.queries),
    "groups and articles": lambda dataset: any(query.group or query.article for query in dataset.queries),
    "vectors of queries": lambda dataset: any(query.embedding is not None for query in dataset.queries),
    "places of the evidence": lambda dataset: bool(dataset.evidence.positions),
    "further reference answers": lambda dataset: any(len(answers) > 1 for answers in dataset.answers.values()),
}
_NAMED = 10


def _lost(dataset: Dataset, same: Sequence[str]) -> list[str]:
    lost = [name for name, has in _CHECKS.items() if has(dataset)]
    sentences = [f"The workbench's files do not hold {join_words(lost)}."]
    if same:
        more = ", …" if len(same) > _NAMED else ""
        sentences.append(
            f"Left out, since the workbench knows queries by their words: {pluralize(len(same), 'query')} with the "
            f"words of an earlier one ({', '.join(same[:_NAMED])}{more})."
        )
    return sentences
