"""A dataset folder: documents, queries, and which document answers which query.

::

    corpus.jsonl     BEIR: _id, title, text; optional: language, group, embedding
    queries.jsonl    BEIR: _id, text; optional: language, group, article, embedding
    qrels/test.tsv   BEIR (query-id, corpus-id, score under a header) or TREC (four columns)
    languages.tsv    optional: corpus-id and language under a header
    evidence.tsv     optional: query-id, corpus-id, position (0 to 1) and, where known, length (tokens)
    dataset.json     optional: {"judged": "per-language"} where only a query's own language was judged

A document's true language, by which TLR and SLR are counted, is the ``language`` of its line
in ``corpus.jsonl``; where that has none, ``languages.tsv`` gives it. The latter lets a corpus be
ingested with its languages detected and still be judged by the true ones: ingest never reads it.

Languages are kept as primary tags (``zh-TW`` is ``zh``), since measures compare languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.datasets.evidence import Evidence, read_evidence
from langshift.evaluate.datasets.qrels import Qrels, read_qrels
from langshift.ingest.fields import EMBEDDING, at, parse_embedding, require_dimension
from langshift.languages import UNDETERMINED, parse_tag, primary
from langshift.reading import identifier, read_columns, records

CORPUS, QUERIES, QRELS, LANGUAGES = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "languages.tsv"
EVIDENCE, FACTS = "evidence.tsv", "dataset.json"
POOLED, PER_LANGUAGE = "pooled", "per-language"
HOLDS = f"a dataset folder holds {CORPUS}, {QUERIES} and {QRELS}"


class Document(NamedTuple):
    """What measures need to know of a document; its text is not kept."""

    language: str | None
    group: str | None


class Query(NamedTuple):
    """One query, with its language, translation group, article and vector where the dataset brings them."""

    id: str
    text: str
    language: str | None
    group: str | None
    article: str | None = None
    embedding: NDArray[np.float32] | None = None


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
    """

    folder: Path
    documents: Mapping[str, Document]
    queries: tuple[Query, ...]
    qrels: Qrels
    judged: str = POOLED

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """Query id -> document id -> relative position of the evidence, 0 to 1; empty without ``evidence.tsv``.

        Raises:
            UsageError: a line that cannot be read, on first use.
        """
        return self._evidence.positions

    @property
    def lengths(self) -> Mapping[str, int]:
        """Document id -> length in tokens, as the collection counts them; where ``evidence.tsv`` gives it.

        Raises:
            UsageError: a line that cannot be read, on first use.
        """
        return self._evidence.lengths

    @cached_property
    def _evidence(self) -> Evidence:
        path = self.folder / EVIDENCE
        return (
            read_evidence(path, self.documents, {query.id for query in self.queries}) if path.is_file() else Evidence()
        )


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
            raise UsageError(f"{folder} has no {name}: {HOLDS}.")
    documents = _documents(folder / CORPUS, folder / LANGUAGES)
    queries = tuple(_queries(folder / QUERIES))
    qrels = read_qrels(folder / QRELS, documents.keys(), {query.id for query in queries})
    return Dataset(folder, documents, queries, qrels, read_judged(folder / FACTS))


def read_judged(path: Path) -> str:
    """How documents were judged, from ``dataset.json``; pooled without one.

    Raises:
        UsageError: the file says anything else.
    """
    if not path.is_file():
        return POOLED
    try:
        judged = orjson.loads(path.read_bytes()).get("judged", POOLED)
    except (orjson.JSONDecodeError, AttributeError):
        judged = None
    if judged not in (POOLED, PER_LANGUAGE):
        raise UsageError(
            f'{path} cannot be read: it must be {{"judged": "{POOLED}"}} or {{"judged": "{PER_LANGUAGE}"}}.'
        )
    return str(judged)


def _documents(corpus: Path, languages: Path) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for line, record in records(corpus):
        language = _language(record.get("language"), corpus, line)
        documents[_id(record, corpus, line, documents)] = Document(language, _word(record, "group"))
    if not documents:
        raise UsageError(f"{corpus} holds no document: put one JSON object with _id, title and text on each line.")
    if languages.is_file():
        _add_languages(documents, languages)
    return documents


def _add_languages(documents: dict[str, Document], path: Path) -> None:
    for line, columns in read_columns(path):
        if len(columns) != 2:
            raise UsageError(
                f"{path}, line {line}, has {len(columns)} columns: it must have two, corpus-id and language, "
                "parted by a tab."
            )
        if line == 1 and columns == ["corpus-id", "language"]:
            continue
        document, language = columns
        if document not in documents:
            raise UsageError(
                f"{path}, line {line}, names the document {document!r}, which {CORPUS} lacks: "
                "remove the line or add the document."
            )
        if documents[document].language is None:
            documents[document] = documents[document]._replace(language=_language(language, path, line))


def _queries(path: Path) -> Iterator[Query]:
    seen: set[str] = set()
    dimension = None
    for line, record in records(path):
        name = _id(record, path, line, seen)
        text = record.get("text")
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{path}, line {line}, has no text: give the query {name!r} one, or remove it.")
        seen.add(name)
        language = _language(record.get("language"), path, line)
        embedding = None
        if record.get(EMBEDDING) is not None:
            with at(f"{path}, line {line}"):
                embedding = parse_embedding(record[EMBEDDING])
                dimension = dimension or len(embedding)
                require_dimension(embedding, dimension)
        yield Query(name, text, language, _word(record, "group"), _word(record, "article"), embedding)
    if not seen:
        raise UsageError(f"{path} holds no query: put one JSON object with _id and text on each line.")


def _id(record: dict[str, Any], path: Path, line: int, seen: Mapping[str, object] | set[str]) -> str:
    remedy = f"give it one that {path.name} has only once"
    name = identifier(record.get("_id"), f"{path}, line {line}", remedy=remedy)
    if name in seen:
        raise UsageError(f"{path}, line {line}, has the _id {name!r} of an earlier line: every _id must be there once.")
    return name


def _word(record: dict[str, Any], field: str) -> str | None:
    value = record.get(field)
    return None if value is None else str(value)


def _language(value: object, path: Path, line: int) -> str | None:
    """Return the primary tag, or None where no language is named."""
    if value is None or value in ("", UNDETERMINED):
        return None
    tag = parse_tag(value) if isinstance(value, str) else None
    if tag is None:
        raise UsageError(
            f"{path}, line {line}, has the language {value!r}, which is no language tag: give one such as en or zh."
        )
    return primary(tag)
