"""A random sample of an index that could be adopted: its documents' languages and vectors."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import is_given
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import DatasetQuery, query_vectors
from langshift.files import lines_of
from langshift.ingest import documents as parsing
from langshift.ingest.adopt.adopt import AdoptableIndex
from langshift.ingest.adopt.transform import document_of
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document, InvalidDocument
from langshift.ingest.transform import detect_language, full_text
from langshift.languages import UNDETERMINED, text_language

_SEED = 20_260_213


class SampledDocument(NamedTuple):
    """What is known of the language of one document.

    Attributes:
        tag: as adopting would take it: told, else detected; ``und`` where unknown.
        confidence: the detector's posterior for what it detects, also where a language is told.
        declared: the language that the document names, as the field ``language`` holds it; None where it names none.
        detected: what the detector says, likewise; ``und`` where it is not certain enough.
    """

    tag: str
    confidence: float
    declared: str | None
    detected: str


class Sample(NamedTuple):
    """Documents at random of those that have a vector.

    Attributes:
        documents: the language of each.
        vectors: their vectors as they are, shape (n, d), float32.
        texts: what was encoded of each, as far as that is known.
        unusable: how many documents were left aside, since adopting would refuse them.
    """

    documents: Sequence[SampledDocument]
    vectors: NDArray[np.float32]
    texts: Sequence[str]
    unusable: int

    @property
    def languages(self) -> list[str]:
        """The language of each, as the field ``language`` would hold it."""
        return [text_language(one.tag) for one in self.documents]

    @property
    def tags(self) -> list[str]:
        """The language of each as adopting would take it, by which it is shifted."""
        return [one.tag for one in self.documents]


class LanguageMix(NamedTuple):
    """The documents of one language in a sample.

    Attributes:
        language: as the field ``language`` would hold it.
        documents: how many.
        share: of the sample.
        confidence: median of the detector's posterior.
        told: how many name their language.
        agreed: for how many of these the detector says the same.
        unsure: for how many of these the detector is not certain enough to say anything.
        norm: median norm of the vectors.
        low: 5th percentile of the norms.
        high: 95th percentile.
    """

    language: str
    documents: int
    share: float
    confidence: float
    told: int
    agreed: int
    unsure: int
    norm: float
    low: float
    high: float


class LanguageDisagreement(NamedTuple):
    """Documents that name one language, while another is detected."""

    told: str
    detected: str
    documents: int


def draw(opened: AdoptableIndex, size: int) -> Sample:
    """Draw documents at random, the same each time as long as the index stays as it is.

    Args:
        opened: the index.
        size: how many at most.

    Raises:
        UsageError: none of them can be used.
    """
    hits = opened.reader.sample(size, {"exists": {"field": opened.fields.vector}}, _SEED)
    read = (document_of(hit, opened.fields, opened.vector_spec.dimension, opened.norms) for hit in hits)
    documents, vectors, texts = [], [], []
    for document in (one for one in read if isinstance(one, Document)):
        vector = document.embedding
        # One without a direction could not be shifted.
        if vector is not None and 0 < float(np.linalg.norm(vector.astype(np.float64))) < float("inf"):
            documents.append(_sample_document(document, opened.pipeline))
            vectors.append(vector)
            texts.append(full_text(document.title, document.text))
    if not vectors:
        raise UsageError(f"None of the {len(hits):,} documents drawn from {opened.old.index} could be adopted.")
    return Sample(documents, np.stack(vectors), texts, len(hits) - len(vectors))


def mixes(sample: Sample) -> list[LanguageMix]:
    """The languages of a sample, the most frequent first."""
    languages = np.array(sample.languages)
    norms = np.linalg.norm(sample.vectors.astype(np.float64), axis=1)
    found = []
    for language, count in sorted(Counter(sample.languages).items(), key=lambda one: (-one[1], one[0])):
        rows = np.flatnonzero(languages == language).tolist()
        documents = [sample.documents[row] for row in rows]
        declared = [one for one in documents if one.declared is not None]
        confidence = float(np.median([one.confidence for one in documents]))
        agreed = sum(one.declared == one.detected for one in declared)
        unsure = sum(one.detected == UNDETERMINED for one in declared)
        low, norm, high = np.percentile(norms[rows], [5, 50, 95]).tolist()
        share = count / len(languages)
        found.append(LanguageMix(language, count, share, confidence, len(declared), agreed, unsure, norm, low, high))
    return found


def disagreements(sample: Sample) -> list[LanguageDisagreement]:
    """Where the detector says another language than documents name, the most frequent first."""
    found = Counter(
        (one.declared, one.detected)
        for one in sample.documents
        if one.declared is not None and one.detected not in (one.declared, UNDETERMINED)
    )
    return [LanguageDisagreement(declared, detected, count) for (declared, detected), count in found.most_common()]


def _sample_document(document: Document, pipeline: EmbeddingPipeline) -> SampledDocument:
    adopted = detect_language(document, pipeline)
    if document.language is None:
        return SampledDocument(adopted.language, adopted.confidence, None, text_language(adopted.language))
    language, confidence = pipeline.detector.detect(document.text)
    certain = language if confidence >= pipeline.least_confidence else UNDETERMINED
    declared = None if document.language == UNDETERMINED else text_language(document.language)
    return SampledDocument(adopted.language, confidence, declared, text_language(certain))


class AuditQueries(NamedTuple):
    """Queries with their vectors.

    Attributes:
        file: where they come from; None where documents of the sample stand in for them, row by row.
        total: how many the file has.
        tags: the language of each, ``und`` where unknown.
        vectors: as the encoder makes them, shape (n, d), float32.
    """

    file: str | None
    total: int
    tags: list[str]
    vectors: NDArray[np.float32]

    @property
    def languages(self) -> list[str]:
        """The language of each, as a field ``language`` would hold it."""
        return [text_language(tag) for tag in self.tags]


def read_queries(path: Path, pipeline: EmbeddingPipeline, among: Collection[str], most: int) -> AuditQueries:
    """Queries of a file in BEIR's layout (``queries.jsonl``), encoded, or with the vectors that they bring.

    Args:
        path: the file.
        pipeline: its encoder, and the detector of the languages that queries do not name.
        among: languages as the field ``language`` holds them, of which queries may be.
        most: of more queries, so many are taken at random, the same each time.

    Raises:
        UsageError: a line is no query, named by file and line; or there is no query.
    """
    try:
        found = list(_read(path, given=is_given(pipeline.encoder.id)))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}).") from error
    if not found:
        raise UsageError(f"{path} is empty: write one JSON object with _id and text on each line.")
    total = len(found)
    if total > most:
        rows = np.sort(np.random.default_rng(_SEED).choice(total, most, replace=False))
        found = [found[row] for row in rows]
    tags = [query.language or pipeline.detector.detect(query.text, among=among).language for query in found]
    return AuditQueries(str(path), total, tags, query_vectors(pipeline.encoder, found))


def _read(path: Path, *, given: bool) -> Iterator[DatasetQuery]:
    for number, line in lines_of(path):
        with parsing.invalid_as_usage_error(f"{path}, line {number}"):
            fields = parsing.parse_object(line)
            text = parsing.string_field(fields, "text")
            if not text.strip():
                raise InvalidDocument("has no text: give the query one, or remove it.")
            language = parsing.language_field(fields)
            vector = fields.get(parsing.EMBEDDING) if given else None
            embedding = None if vector is None else parsing.parse_embedding(vector)
            tag = None if language == UNDETERMINED else language
            yield DatasetQuery(parsing.id_field(fields), text, tag, None, embedding=embedding)
