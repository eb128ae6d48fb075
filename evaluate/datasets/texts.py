"""The texts of a dataset's documents, and the languages of what names none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch

from langshift.debias.detector import LanguageDetector, open_detector
from langshift.evaluate.datasets.dataset import CORPUS, Dataset, DatasetQuery
from langshift.files import batched, lines_of
from langshift.ingest.config import LEAST_CONFIDENCE
from langshift.ingest.documents import (
    Delete,
    Document,
    Embeddings,
    InvalidDocument,
    invalid_as_usage_error,
    parse_fields,
    parse_object,
    require_dimension,
)
from langshift.languages import UNDETERMINED, text_language
from langshift.plugin.metadata import CHUNK, FieldNames, value_at
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.result import title_and_text
from langshift.retrieval.searcher import Searcher
from langshift.server_errors import client_errors_as_langshift_errors

_GET_AT_ONCE, _LANGUAGES = 1000, 100
_BEGINNING = 300  # characters


def document_languages(
    client: OpenSearch, index: IndexInfo, dataset: Dataset
) -> tuple[dict[str, str | None], list[str]]:
    """The languages of the documents, the index's own where the dataset names none for a relevant one.

    Returns:
        Document id -> language, and sentences on what came from the index.

    Raises:
        ClusterError: the cluster does not tell.
    """
    languages = {name: document.language for name, document in dataset.documents.items()}
    relevant = {name for judged in dataset.qrels.values() for name, grade in judged.items() if grade > 0}
    unnamed = sorted(name for name in relevant if languages[name] is None)
    if not unnamed:
        return languages, []
    languages.update(indexed_languages(client, index.index, index.fields, unnamed))
    unknown = sum(languages[name] is None for name in unnamed)
    left = f"; {unknown:,} without one are left out" if unknown else ""
    return languages, [
        f"The dataset names no language for {len(unnamed):,} of its {len(relevant):,} relevant documents, "
        f"so TLR and SLR use the languages stored in the index{left}."
    ]


def indexed_languages(client: OpenSearch, index: str, fields: FieldNames, names: Iterable[str]) -> dict[str, str]:
    """Document id -> the language that the index has for it; those without one are left out.

    Raises:
        ClusterError: the cluster does not tell.
    """
    found, ask = {}, _of_whole_documents if fields.parent is None else _of_most_chunks
    for ids in batched(names, _GET_AT_ONCE):
        with client_errors_as_langshift_errors():
            answered = ask(client, index, fields, ids)
        found.update({name: tag for name, tag in answered if tag not in (None, UNDETERMINED)})
    return found


def _of_whole_documents(client: OpenSearch, index: str, fields: FieldNames, ids: list[str]) -> list[tuple[str, Any]]:
    answer = client.mget(index=index, body={"ids": ids}, params={"_source": fields.language})
    return [(document["_id"], value_at(document.get("_source", {}), fields.language)) for document in answer["docs"]]


def _of_most_chunks(client: OpenSearch, index: str, fields: FieldNames, ids: list[str]) -> list[tuple[str, Any]]:
    """The language of most of a document's chunks, as far as it is known; of as many the one that comes first."""
    first = {"first": {"min": {"field": f"{CHUNK}.ordinal"}}}
    order = [{"_count": "desc"}, {"first": "asc"}]
    of_chunks = {"field": fields.language, "size": _LANGUAGES, "exclude": [UNDETERMINED], "order": order}
    # The field of somebody else's chunk may hold other ids, too.
    documents = {"field": fields.document_key, "size": len(ids), "include": ids}
    aggregated = {"documents": {"terms": documents, "aggs": {"languages": {"terms": of_chunks, "aggs": first}}}}
    query = {"terms": {fields.document_key: ids}}
    answer = client.search(index=index, body={"size": 0, "query": query, "aggs": aggregated})
    buckets = [(one["key"], one["languages"]["buckets"]) for one in answer["aggregations"]["documents"]["buckets"]]
    return [(name, languages[0]["key"]) for name, languages in buckets if languages]


def beginnings(client: OpenSearch, index: str, fields: FieldNames, names: Collection[str]) -> dict[str, str]:
    """Document id -> the beginning of its title and text in one line, 300 characters at most.

    Of an index of chunks that is the beginning of the document's first chunk; empty where chunks have no order.

    Raises:
        ClusterError: the cluster does not tell.
    """
    found = dict[str, str]()
    ordered = fields.parent is None or fields.chunking is not None
    for ids in batched(names if ordered else (), _GET_AT_ONCE):
        with client_errors_as_langshift_errors():
            documents = _sources(client, index, fields, ids)
        for name, source in documents:
            words = " · ".join(" ".join(part.split()) for part in title_and_text(source, fields) if part.strip())
            found[name] = words[:_BEGINNING]
    return found


def _sources(
    client: OpenSearch, index: str, fields: FieldNames, ids: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    included = list(fields.text_fields)
    if fields.parent is None:
        answer = client.mget(index=index, body={"ids": ids}, params={"_source": ",".join(included)})
        return ((document["_id"], document.get("_source", {})) for document in answer["docs"])
    parts = [{"terms": {fields.document_key: ids}}, {"term": {f"{CHUNK}.ordinal": 0}}]
    query = {"bool": {"filter": parts}}
    answer = client.search(index=index, body={"size": len(ids), "query": query, "_source": [*included, fields.parent]})
    hits = (hit["_source"] for hit in answer["hits"]["hits"])
    return ((str(value_at(source, fields.parent or "")), source) for source in hits)


def misfits(searcher: Searcher, dataset: Dataset, run: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say where index and dataset do not hold the same documents."""
    expected = len(dataset.documents)
    if not expected:
        return []
    held = _held(searcher, expected)
    differing = (
        f"{searcher.index.name} has {held:,} documents and the dataset has {expected:,}, "
        "so the figures do not describe the dataset alone."
    )
    return [*([differing] if held != expected else []), *unknown_documents(run, dataset)]


def _held(searcher: Searcher, expected: int) -> int:
    """How many documents an index holds; ``expected`` where that cannot be counted exactly."""
    fields = searcher.index.fields
    if fields.parent is None:
        return searcher.index.documents
    if fields.chunking is None:
        return expected
    # Each has one chunk that is its first.
    query = {"query": {"term": {f"{CHUNK}.ordinal": 0}}}
    return int(searcher.client.count(index=searcher.index.index, body=query)["count"])


def unknown_documents(run: Mapping[str, Mapping[str, float]], dataset: Dataset) -> list[str]:
    """Say how many documents of a run the dataset does not have."""
    unknown = {name for hits in run.values() for name in hits} - dataset.documents.keys()
    if not unknown:
        return []
    return [
        f"{len(unknown):,} of the documents found are not in the dataset (for example {min(unknown)}) "
        "and count as not relevant."
    ]


def query_tags(queries: Iterable[DatasetQuery]) -> dict[str, str | None]:
    """Query id -> the tag of the language that the query names, else of the detected one; None where it is not clear.

    Detection is not restricted to an index's languages, as searching does: a question in a language that
    the index lacks has no documents in its own language, and must not count as having some. Nor is a language taken
    that is less than likely, as searching does: one that is not clear is asked as of no language.
    """
    opened = cache(open_detector)  # only where it is needed
    tags = {query.id: query.tag or query.language or _detected(opened(), query.text) for query in queries}
    return {name: None if tag == UNDETERMINED else tag for name, tag in tags.items()}


def query_languages(
    queries: Sequence[DatasetQuery], tags: Mapping[str, str | None] | None = None
) -> dict[str, str | None]:
    """Query id -> the language that the query names, else the detected one, as measures compare it.

    Args:
        queries: the queries.
        tags: what ``query_tags`` gives of them, where that is known.
    """
    tags = query_tags(queries) if tags is None else tags
    return {query.id: query.language or _compared(tags[query.id] or UNDETERMINED) for query in queries}


def read_texts(dataset: Dataset, wanted: Collection[str] | None = None) -> dict[str, Document]:
    """Document id -> the document without its other fields, in the order of the corpus.

    Args:
        dataset: whose corpus is read.
        wanted: the documents to keep; None keeps all.

    Raises:
        UsageError: a line that is no document.
    """
    documents = read_corpus(dataset.folder / CORPUS, str(dataset.folder / CORPUS), "ignored")
    # Whatever other fields a line has would take memory for nothing.
    return {one.id: replace(one, other={}) for one in documents if wanted is None or one.id in wanted}


@dataclass(frozen=True)
class DatasetLanguages:
    """The languages of a dataset: those that it names, else detected ones.

    Attributes:
        tags: document id -> tag as ingest would store it with the vector, ``zh-TW``; ``und`` where unknown.
        documents: document id -> primary tag as measures compare it, None where unknown.
        queries: query id -> primary tag, None where unknown.
        warnings: what was detected, in sentences.
        query_tags: query id -> whole tag, ``zh-TW``, of the queries where that says more.
    """

    tags: Mapping[str, str]
    documents: Mapping[str, str | None]
    queries: Mapping[str, str | None]
    warnings: tuple[str, ...]
    query_tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, texts: Mapping[str, Document] | None = None) -> DatasetLanguages:
        """Complete the languages of a dataset.

        Args:
            dataset: names languages, or not.
            texts: the texts of the documents that it names no language for, at least; read if None.
        """
        named = {name: document.language for name, document in dataset.documents.items()}
        unnamed = {name for name, language in named.items() if language is None}
        if texts is None:
            texts = read_texts(dataset, unnamed) if unnamed else {}
        unasked = [query for query in dataset.queries if query.language is None]
        opened = cache(open_detector)  # only where it is needed
        tags, documents = {}, {}
        for name, language in named.items():
            if language is None:
                tags[name] = _detected(opened(), detected_from(texts[name]))
                documents[name] = _compared(tags[name])
            else:
                tags[name] = (texts[name].language if name in texts else None) or language
                documents[name] = language
        queries = {query.id: query.language for query in dataset.queries}
        query_tags = {query.id: query.tag for query in dataset.queries if query.tag}
        among = {language for language in documents.values() if language}
        for query in unasked:
            language = opened().detect(query.text, among=among).language
            queries[query.id], query_tags[query.id] = _compared(language), language
        counts = ((len(unnamed), len(named), "documents"), (len(unasked), len(queries), "queries"))
        warnings = tuple(
            f"The dataset names no language for {count:,} of its {total:,} {what}; the detected ones are used."
            for count, total, what in counts
            if count
        )
        return cls(tags, documents, queries, warnings, query_tags)


def detected_from(text: Document, characters: int | None = None) -> str:
    """The words of a document that its language is detected from, as ingest does.

    Args:
        text: the document.
        characters: how much of them to read; None leaves that to the detector.
    """
    words = text.text or text.title
    return words if characters is None else " ".join(words.split())[:characters]


def _compared(tag: str) -> str | None:
    """A detected tag as measures compare it; None for ``und``."""
    return None if tag == UNDETERMINED else text_language(tag)


def _detected(detector: LanguageDetector, words: str) -> str:
    """The tag of a language that is likely enough; ``und`` where none is."""
    found = detector.detect(words)
    return found.language if found.confidence >= LEAST_CONFIDENCE else UNDETERMINED


def read_corpus(path: Path, shown: str, embeddings: Embeddings = "refused") -> Iterator[Document]:
    """Read the documents of a corpus, in order; blank lines are passed over.

    Args:
        path: the file; its first bytes tell how it is compressed.
        shown: how messages name it.
        embeddings: what becomes of vectors that come with documents.

    Raises:
        UsageError: a line that is no document, named by file and line with what is wrong.
    """
    dimension = None
    for number, line in lines_of(path, shown):
        place = f"{shown}, line {number}"
        document = parse_document(line, place, embeddings)
        if document.embedding is not None:
            dimension = dimension or len(document.embedding)
            with invalid_as_usage_error(place):
                require_dimension(document.embedding, dimension)
        yield document


def parse_document(line: bytes, place: str, embeddings: Embeddings = "refused") -> Document:
    """One line of a corpus as a document.

    Args:
        line: the line.
        place: file and line, which begin a message.
        embeddings: what becomes of a vector that comes with it.

    Raises:
        UsageError: beginning with ``place``, what is wrong and what should be there.
    """
    with invalid_as_usage_error(place):
        content = parse_fields(parse_object(line), embeddings)
        if not isinstance(content, Document):
            does = "deletes a document from" if isinstance(content, Delete) else "updates a document of"
            raise InvalidDocument(f"{does} an index, which only `langshift ingest` does; leave the line out.")
        return content
