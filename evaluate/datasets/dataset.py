"""A dataset folder: documents, queries, which document answers which query, and which are translations.

::

    corpus.jsonl     BEIR: _id, title, text; optional: language, group, embedding
    queries.jsonl    BEIR: _id, text; optional: language, group, article, embedding, sparse_embedding, any other
    qrels/test.tsv   BEIR (query-id, corpus-id, score under a header) or TREC (four columns)
    languages.tsv    optional: corpus-id and language under a header
    evidence.tsv     optional: query-id, corpus-id, position (0 to 1) and, where known, length (tokens), start, end
    answers.jsonl    optional: query (its id) and answers, the reference answers, strings
    dataset.json     optional: {"judged": "per-language"} where only a query's own language was judged; a note

A document's true language, by which TLR and SLR are counted, is the ``language`` of its line
in ``corpus.jsonl``; where that has none, ``languages.tsv`` gives it. The latter lets a corpus be
ingested with its languages detected and still be judged by the true ones: ingest never reads it.

Languages are kept as primary tags (``zh-TW`` is ``zh``), since measures compare languages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder, is_given
from langshift.debias.encoders.sparse import TokenWeights, parse_weights
from langshift.errors import UsageError, no_file
from langshift.evaluate.datasets.annotations import EvidencePositions, read_answers, read_evidence, require_known
from langshift.files import identifier, read_columns, records, string
from langshift.ingest.documents import EMBEDDING, invalid_as_usage_error, parse_embedding, require_dimension
from langshift.ingest.transform import given_vectors
from langshift.languages import UNDETERMINED, names_none, parse_tag, primary
from langshift.plugin.representations import SPARSE_FIELD

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Ids = Collection[str]


def gather(pairs: Iterable[tuple[_Key | None, _Value]]) -> dict[_Key, list[_Value]]:
    """Key -> the values beside it, in the order in which they come; a value beside None is left out."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        if key is not None:
            found.setdefault(key, []).append(value)
    return found


#: Query id -> document id -> grade; a grade above 0 is relevant.
Qrels = Mapping[str, Mapping[str, int]]

QRELS_HEADER = ("query-id", "corpus-id", "score")
_WHOLE = "give a whole number, 0 for not relevant, 1 or more for relevant"
_FORMS = "three columns separated by tabs (query-id, corpus-id, score) or TREC's four (query, 0, document, grade)"


def read_qrels(path: Path, documents: _Ids, queries: _Ids) -> Qrels:
    """Read judgements, and check them against the ids of the documents and queries.

    Raises:
        UsageError: wrong columns, a grade that is no whole number, an unknown or repeated pair,
            or no relevant document at all.
    """
    qrels: dict[str, dict[str, int]] = {}
    for line, query, document, grade in read_judgements(path):
        where = f"{path}, line {line},"
        require_known("query", query, queries, where)
        require_known("document", document, documents, where)
        judged = qrels.setdefault(query, {})
        if document in judged:
            raise UsageError(f"{where} judges {query!r} and {document!r} a second time: keep one of the two lines.")
        judged[document] = grade
    if not any(grade > 0 for judged in qrels.values() for grade in judged.values()):
        raise UsageError(f"{path} judges no document as relevant, so there is nothing to measure: give {_FORMS}.")
    return qrels


def read_judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line number, query, document and grade of each line of a BEIR or TREC file.

    Raises:
        UsageError: a line of another form.
    """
    for line, columns in read_columns(path, QRELS_HEADER):
        try:
            query, document, grade = split_judgement(columns)
        except ValueError:
            raise UsageError(f"{path}, line {line}, cannot be read: give {_FORMS}.") from None
        try:
            yield line, query, document, parse_grade(grade)
        except ValueError:
            raise UsageError(f"{path}, line {line}, has the score {grade!r}: {_WHOLE}.") from None


def parse_grade(text: str) -> int:
    """The grade of a judgement.

    Raises:
        ValueError: it is no whole number of at most six digits.
    """
    if not re.fullmatch(r"[+-]?\d{1,6}", text, re.ASCII):
        raise ValueError(text)
    return int(text)


def split_judgement(columns: list[str]) -> tuple[str, str, str]:
    """Query, document and grade of BEIR's three columns or TREC's four.

    Raises:
        ValueError: there are others.
    """
    if len(columns) == 1 and len(trec := columns[0].split()) == 4:
        columns = trec
    parts = [part.strip() for part in columns]
    if len(parts) == 4:
        del parts[1]
    query, document, grade = parts
    return query, document, grade


CORPUS, QUERIES, QRELS, LANGUAGES = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "languages.tsv"
LANGUAGES_HEADER = ("corpus-id", "language")
EVIDENCE, ANSWERS, FACTS = "evidence.tsv", "answers.jsonl", "dataset.json"
POOLED: Final = "pooled"
PER_LANGUAGE: Final = "per-language"
HOLDS = f"a dataset folder contains {CORPUS}, {QUERIES} and {QRELS}"


class DatasetDocument(NamedTuple):
    """What measures need to know of a document; its text is not kept."""

    language: str | None
    group: str | None


class DatasetQuery(NamedTuple):
    """One query, with its language, translation group, article and vector where the dataset brings them.

    Attributes:
        language: the primary tag, as measures compare it.
        tag: the whole one, ``zh-TW``, by which its vector moves; None where that is ``language``.
        weights: those of its tokens.
        fields: whatever else its line says, such as a domain or tenant.
    """

    id: str
    text: str
    language: str | None
    group: str | None
    article: str | None = None
    embedding: NDArray[np.float32] | None = None
    tag: str | None = None
    weights: TokenWeights | None = None
    fields: Mapping[str, Any] = {}


# What is kept of a query's line apart, or is too large to be kept twice.
_KEPT_APART = {"_id", "text", "language", EMBEDDING, SPARSE_FIELD}


def query_weights(queries: Sequence[DatasetQuery]) -> list[TokenWeights]:
    """The weights of tokens that come with queries.

    Raises:
        UsageError: a query without any.
    """
    found = [query.weights for query in queries if query.weights is not None]
    if len(found) < len(queries):
        lacking = next(query.id for query in queries if query.weights is None)
        raise UsageError(
            f"Query {lacking!r} has no 'sparse_embedding', which an index needs whose weights of tokens came with the "
            "data: add an object with a weight for each token."
        )
    return found


def query_vectors(encoder: Encoder, queries: Sequence[DatasetQuery]) -> NDArray[np.float32]:
    """Vectors of queries, shape (len(queries), dimension), float32, not shifted.

    Raises:
        UsageError: a query without a vector of the dimension, where vectors come with the data.
    """
    if is_given(encoder.id):
        return given_vectors("Query", encoder, [(query.id, query.embedding) for query in queries])
    return encoder.encode_queries([query.text for query in queries])


@dataclass(frozen=True)
class Dataset:
    """A dataset in memory, less the documents' texts.

    Attributes:
        folder: where it was read from.
        documents: document id -> language and group.
        queries: the queries, in the order of the file.
        qrels: query id -> document id -> grade; above 0 is relevant.
        judged: ``pooled``, or ``per-language`` where documents in other languages than the query's
            were never judged, so that measures across languages say nothing.
        own_documents: ids of the queries that are documents of the corpus themselves, see ``is_own_document``; what is
            found for one of them leaves out the document of that id.
        outside: query id -> documents that it does not search, see ``within``.
        whole: the dataset itself where this one is without judgements of those; None where this is it.
        note: what its questions can and cannot say; empty where nothing is noted.
    """

    folder: Path
    documents: Mapping[str, DatasetDocument]
    queries: tuple[DatasetQuery, ...]
    qrels: Qrels
    judged: str = POOLED
    own_documents: frozenset[str] = frozenset()
    outside: Mapping[str, Collection[str]] = field(default_factory=dict)
    whole: Dataset | None = None
    note: str = ""

    def within(self, outside: Mapping[str, Collection[str]]) -> Dataset:
        """The dataset without the judgements of documents that a query does not search.

        Args:
            outside: query id -> those documents, also unjudged ones of translation groups.
        """
        if not outside:
            return self
        qrels = {
            query: {name: grade for name, grade in judged.items() if name not in outside.get(query, ())}
            for query, judged in self.qrels.items()
        }
        return replace(self, qrels=qrels, outside=outside, whole=self)

    def without_own(self, query: str, hits: Iterable[tuple[str, _Value]]) -> Iterator[tuple[str, _Value]]:
        """What was found for a query, without the document that the query itself is."""
        own = query in self.own_documents
        return (hit for hit in hits if not (own and hit[0] == query))

    def others(self, run: Mapping[str, Mapping[str, _Value]]) -> dict[str, Mapping[str, _Value]]:
        """A run, or any figures by query and document, without the documents that queries themselves are."""
        own = self.own_documents
        return {
            query: dict(self.without_own(query, hits.items())) if query in own else hits for query, hits in run.items()
        }

    @property
    def remarks(self) -> list[str]:
        """What its questions cannot say, and how many are documents themselves, in sentences; mostly none."""
        return [*filter(None, [self.note]), *describe_own_documents(len(self.own_documents), len(self.queries))]

    def relevant(self, query: str) -> list[str]:
        """The documents that were judged relevant for a query."""
        return [name for name, grade in self.qrels.get(query, {}).items() if grade > 0]

    def target_group(self, query: str, group: str | None = None) -> list[str]:
        """The relevant documents of a query, then all others of their translation groups, and of ``group``."""
        relevant = self.relevant(query)
        groups = dict.fromkeys([*(self.documents[name].group for name in relevant), group])
        together = (name for one in groups if one is not None for name in self.members.get(one, ()))
        found = dict.fromkeys([*relevant, *together], None)
        return [name for name, _ in self.without_own(query, found.items())]

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Translation group -> its documents."""
        return gather((document.group, name) for name, document in self.documents.items())

    @cached_property
    def evidence(self) -> EvidencePositions:
        """Where the evidence is, and how long documents are; empty without ``evidence.tsv``.

        Raises:
            UsageError: a line that cannot be read, on first use.
        """
        path = self.folder / EVIDENCE
        if not path.is_file():
            return EvidencePositions()
        return read_evidence(path, self.documents, {query.id for query in self.queries})

    @cached_property
    def answers(self) -> Mapping[str, tuple[str, ...]]:
        """Query id -> its reference answers, in its own language; empty without ``answers.jsonl``.

        Raises:
            UsageError: a line that cannot be read, on first use.
        """
        return read_answers(self.folder / ANSWERS, {query.id for query in self.queries})


def load_dataset(folder: Path) -> Dataset:
    """Read and check a dataset folder.

    Raises:
        UsageError: a missing file, a line that cannot be read, an id that is there twice or unknown,
            an empty file; the message names the file and the line.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no dataset folder {folder}: {HOLDS}.")
    for name in (CORPUS, QUERIES, QRELS):
        if not (folder / name).is_file():
            raise UsageError(f"{no_file(folder / name, f'{folder} has no {name}')}: {HOLDS}.")
    queries = tuple(_queries(folder / QUERIES))
    texts = {query.id: query.text for query in queries}
    documents, own = _documents(folder / CORPUS, folder / LANGUAGES, texts)
    qrels = read_qrels(folder / QRELS, documents.keys(), texts)
    own = frozenset(name for name in own if qrels.get(name, {}).get(name, 0) <= 0)
    facts = read_facts(folder / FACTS)
    return Dataset(folder, documents, queries, qrels, facts.judged, own, note=facts.note)


def describe_own_documents(own: int, queries: int) -> list[str]:
    """Say how many queries are documents themselves, and what becomes of these; nothing where none is."""
    if not own:
        return []
    return [
        f"{own:,} of {queries:,} queries are documents of the same id: a query's own document is left out of what is "
        "found for it, as in BEIR."
    ]


# BEIR goes by the id alone (``ignore_identical_ids``). Here queries and documents are often numbered alike, and the
# first query is then not the first document: its text must be one of the document's, too. Half of the pieces in common
# leave room for a title before the text, for other punctuation and for a query that was cut off.
_PIECE, _ALIKE = 3, 0.5


def is_own_document(text: str, document: Mapping[str, Any]) -> bool:
    """Whether a query is the document of its id: their texts share at least half of their characters' trigrams.

    Args:
        text: of the query.
        document: the document's line, whose title, text, or both as one are compared with it.
    """
    title, body = (value if isinstance(value := document.get(name), str) else "" for name in ("title", "text"))
    pieces = _pieces(text)
    return any(
        len(pieces & other) >= _ALIKE * len(pieces | other) > 0
        for other in map(_pieces, (title, body, f"{title} {body}"))
    )


def _pieces(text: str) -> set[str]:
    squeezed = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return {squeezed[start : start + _PIECE] for start in range(max(len(squeezed) - _PIECE + 1, min(len(squeezed), 1)))}


class DatasetFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ``dataset.json`` says.

    Attributes:
        judged: how documents were judged, see ``Dataset.judged``.
        note: what the questions can and cannot say.
    """

    judged: Literal["pooled", "per-language"] = POOLED
    note: str = ""


def read_facts(path: Path) -> DatasetFacts:
    """Read ``dataset.json``; pooled, and without a note, where there is none.

    Raises:
        UsageError: the file says anything else.
    """
    if not path.is_file():
        return DatasetFacts()
    try:
        return msgspec.json.decode(path.read_bytes(), type=DatasetFacts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(
            f'{path} cannot be read: it must be {{"judged": "{POOLED}"}} or {{"judged": "{PER_LANGUAGE}"}}.'
        ) from None


def _documents(
    corpus: Path, languages: Path, queries: Mapping[str, str]
) -> tuple[dict[str, DatasetDocument], frozenset[str]]:
    """The documents, and the ids of those that are the query of their id, whose text ``queries`` has."""
    documents: dict[str, DatasetDocument] = {}
    own = set()
    for line, record in records(corpus):
        language = primary_language(record.get("language"), f"{corpus}, line {line}")
        name = unique_id(record.get("_id"), corpus, line, documents)
        documents[name] = DatasetDocument(language, optional_word(record, "group"))
        if name in queries and is_own_document(queries[name], record):
            own.add(name)
    if not documents:
        raise UsageError(f"{corpus} is empty: write one JSON object with _id, title and text on each line.")
    if languages.is_file():
        _add_languages(documents, languages)
    return documents, frozenset(own)


def _add_languages(documents: dict[str, DatasetDocument], path: Path) -> None:
    for line, columns in read_columns(path, LANGUAGES_HEADER):
        where = f"{path}, line {line}"
        if len(columns) != 2:
            raise UsageError(
                f"{where}, has {len(columns)} columns: it must have two, corpus-id and language, separated by a tab."
            )
        document, language = columns
        require_known("document", document, documents, f"{where},")
        if documents[document].language is None:
            documents[document] = documents[document]._replace(language=primary_language(language, where))


class QueryLine(NamedTuple):
    """A line of a file of queries.

    Attributes:
        number: of the line, from 1.
        query: what it says; a query without an ``_id`` has the number of its line.
        named: whether it has an ``_id`` of its own.
        timestamp: when it was asked, as the line has it; None where it does not say.
    """

    number: int
    query: DatasetQuery
    named: bool
    timestamp: object


def read_queries(path: Path, fields: str = "text") -> Iterator[QueryLine]:
    """Read the queries of a dataset: JSON Lines with ``text``.

    Optional are ``_id``, ``language``, ``timestamp``, ``group``, ``article``, ``embedding`` and ``sparse_embedding``.

    Args:
        path: the file.
        fields: what a message says that each line must have.

    Raises:
        UsageError: no such file, no query, or a line that cannot be used; named by file and line.
    """
    if not path.is_file():
        raise UsageError(f"{no_file(path)}: write one JSON object with {fields} on each line.")
    number, parser = 0, QueryParser()
    for number, record in records(path):
        yield parser.parse(record, number, f"{path}, line {number}")
    if not number:
        raise UsageError(f"{path} is empty: write one JSON object with {fields} on each line.")


class QueryParser:
    """Makes queries of the objects of one file, whose vectors must be of one dimension."""

    def __init__(self) -> None:
        self._dimension = 0

    def parse(self, record: Mapping[str, Any], number: int, where: str, time: object = None) -> QueryLine:
        """Return the query of a line.

        Args:
            record: the line's object.
            number: of the line, from 1.
            where: file and line, which begin a message.
            time: when it was asked; None takes ``timestamp``.

        Raises:
            UsageError: beginning with ``where``, what cannot be used.
        """
        given = record.get("_id")
        name = identifier(number if given is None else given, where)
        text = string(record, "text", where, "give the query one, or remove the line")
        language, tag = query_language(record.get("language"), where)
        embedding = None
        if record.get(EMBEDDING) is not None:
            with invalid_as_usage_error(where):
                embedding = parse_embedding(record[EMBEDDING])
                self._dimension = self._dimension or len(embedding)
                require_dimension(embedding, self._dimension)
        weights = None
        if record.get(SPARSE_FIELD) is not None:
            try:
                weights = parse_weights(record[SPARSE_FIELD])
            except ValueError as error:
                raise UsageError(f"{where}: the field {SPARSE_FIELD!r} {error}.") from None
        group, article = optional_word(record, "group"), optional_word(record, "article")
        fields = {name: value for name, value in record.items() if name not in _KEPT_APART}
        query = DatasetQuery(name, text, language, group, article, embedding, tag, weights, fields)
        return QueryLine(number, query, given is not None, record.get("timestamp") if time is None else time)


def _queries(path: Path) -> Iterator[DatasetQuery]:
    seen: set[str] = set()
    for line in read_queries(path, "_id and text"):
        seen.add(unique_id(line.query.id if line.named else None, path, line.number, seen))
        yield line.query


def unique_id(given: object, path: Path, line: int, seen: Collection[str]) -> str:
    """Return the ``_id`` of a line as text.

    Raises:
        UsageError: there is none, it cannot stand in a TREC run, or an earlier line has it.
    """
    name = identifier(given, f"{path}, line {line}", remedy=f"give it one that is unique in {path.name}")
    if name in seen:
        raise UsageError(f"{path}, line {line}, repeats the _id {name!r} of an earlier line: every _id must be unique.")
    return name


def optional_word(record: Mapping[str, Any], field: str) -> str | None:
    """Return a field's value as text, or None where there is none."""
    value = record.get(field)
    return None if value is None else str(value)


def optional_tag(value: object, where: str) -> str | None:
    """Return the tag that names a language, or None where none is named.

    Raises:
        UsageError: beginning with ``where``, that it is no tag.
    """
    if value is None or value in ("", UNDETERMINED) or (isinstance(value, str) and names_none(value)):
        return None
    tag = parse_tag(value) if isinstance(value, str) else None
    if tag is None:
        raise UsageError(f"{where}, has the language {value!r}, which is not a valid tag: use a tag such as en or zh.")
    return tag


def primary_language(value: object, where: str) -> str | None:
    """Return the primary tag, or None where no language is named.

    Raises:
        UsageError: beginning with ``where``, that it is no language tag.
    """
    tag = optional_tag(value, where)
    return tag and primary(tag)


def query_language(value: object, where: str) -> tuple[str | None, str | None]:
    """Return what a query names as ``DatasetQuery`` has it: ``language`` and ``tag``.

    Raises:
        UsageError: beginning with ``where``, that it is no language tag.
    """
    tag = optional_tag(value, where)
    language = tag and primary(tag)
    return language, None if tag == language else tag


class Clusters(NamedTuple):
    """Query id -> name of its cluster, and what a cluster is: ``article``, ``group`` or ``query``."""

    of: Mapping[str, str]
    by: str


def clusters(dataset: Dataset) -> Clusters:
    """Queries by article where every query names one, else by group where every query has one, else each alone.

    A query's group is its own, else that of its relevant documents where these have one alone.
    """
    articles = {query.id: query.article for query in dataset.queries if query.article}
    if len(articles) == len(dataset.queries):
        return Clusters(articles, "article")
    groups = {}
    for query in dataset.queries:
        found = {dataset.documents[name].group for name in dataset.relevant(query.id)}
        group = query.group or (found.pop() if len(found) == 1 else None)
        if group:
            groups[query.id] = group
    if len(groups) == len(dataset.queries):
        return Clusters(groups, "group")
    return Clusters({query.id: query.id for query in dataset.queries}, "query")


def identity(dataset: Dataset) -> dict[str, Any]:
    """The dataset as it stands in ``result.json``: where it was, how large, and a hash of ids and judgements.

    Two datasets of one hash have the same queries, documents and judgements, wherever they lie.
    """
    dataset = dataset.whole or dataset
    content = [
        sorted(dataset.documents),
        sorted(query.id for query in dataset.queries),
        sorted((query, sorted(judged.items())) for query, judged in dataset.qrels.items()),
    ]
    return {
        "folder": str(dataset.folder.absolute()),
        "documents": len(dataset.documents),
        "queries": len(dataset.queries),
        "own_documents": len(dataset.own_documents),
        "hash": hashlib.sha256(orjson.dumps(content)).hexdigest()[:16],
    }
