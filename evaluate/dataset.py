"""A dataset folder: documents, queries, and which document answers which query.

::

    corpus.jsonl     BEIR: _id, title, text; optional: language, group
    queries.jsonl    BEIR: _id, text; optional: language, group
    qrels/test.tsv   BEIR (query-id, corpus-id, score under a header) or TREC (four columns)
    languages.tsv    optional: corpus-id and language under a header

A document's true language, by which TLR and SLR are counted, is the ``language`` of its line
in ``corpus.jsonl``; where that has none, ``languages.tsv`` gives it. The latter lets a corpus be
ingested with its languages detected and still be judged by the true ones: ingest never reads it.

Languages are kept as primary tags (``zh-TW`` is ``zh``), since measures compare languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.evaluate.qrels import Qrels, read_columns, read_qrels
from langshift.languages import UNDETERMINED, parse_tag, primary

CORPUS, QUERIES, QRELS, LANGUAGES = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "languages.tsv"
HOLDS = f"a dataset folder holds {CORPUS}, {QUERIES} and {QRELS}"


class Document(NamedTuple):
    """What measures need to know of a document; its text is not kept."""

    language: str | None
    group: str | None


class Query(NamedTuple):
    """One query, with its language and translation group where the dataset names them."""

    id: str
    text: str
    language: str | None
    group: str | None


@dataclass(frozen=True)
class Dataset:
    """A dataset in memory, less the documents' texts.

    Attributes:
        folder: where it was read from.
        documents: document id -> language and group.
        queries: the queries, in the order of the file.
        qrels: query id -> document id -> grade; above 0 is relevant.
    """

    folder: Path
    documents: Mapping[str, Document]
    queries: tuple[Query, ...]
    qrels: Qrels


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
    return Dataset(folder, documents, queries, qrels)


def _documents(corpus: Path, languages: Path) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for line, record in _records(corpus):
        language = _language(record.get("language"), corpus, line)
        documents[_id(record, corpus, line, documents)] = Document(language, _group(record))
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
    for line, record in _records(path):
        name = _id(record, path, line, seen)
        text = record.get("text")
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{path}, line {line}, has no text: give the query {name!r} one, or remove it.")
        seen.add(name)
        yield Query(name, text, _language(record.get("language"), path, line), _group(record))
    if not seen:
        raise UsageError(f"{path} holds no query: put one JSON object with _id and text on each line.")


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of each line; blank lines are passed over."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            line = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
            if not line:
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise UsageError(
                    f"{path}, line {number}, is not valid JSON ({error.msg} at character {error.pos + 1}): "
                    "correct or remove the line."
                ) from error
            if not isinstance(record, dict):
                raise UsageError(f"{path}, line {number}, is not a JSON object: correct or remove the line.")
            yield number, record


def _id(record: dict[str, Any], path: Path, line: int, seen: Mapping[str, object] | set[str]) -> str:
    value = record.get("_id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise UsageError(f"{path}, line {line}, has no _id: give it one that {path.name} has only once.")
    name = str(value)
    if len(name.split()) != 1 or name.strip() != name:
        raise UsageError(
            f"{path}, line {line}, has the _id {name!r}, but an id with white space cannot stand "
            "in a TREC run: take the white space out."
        )
    if name in seen:
        raise UsageError(f"{path}, line {line}, has the _id {name!r} of an earlier line: every _id must be there once.")
    return name


def _group(record: dict[str, Any]) -> str | None:
    value = record.get("group")
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
