"""A random sample of an index: its documents' languages, and their vectors as the encoder made them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.debiaser import recommended
from langshift.debias.detector import open_detector
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.evaluate.datasets import dataset
from langshift.evaluate.datasets.logs import QueryLog
from langshift.ingest.adopt.adopt import open_for_adoption
from langshift.ingest.adopt.reader import IndexReader, OldIndex, find_index, open_reader
from langshift.ingest.adopt.transform import document_of
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.documents import Document, InvalidRow
from langshift.ingest.transform import detect_language, full_text
from langshift.languages import UNDETERMINED, text_language
from langshift.plugin import metadata, stored_shift
from langshift.plugin.index_sample import require_vectors_as_written, stored_text
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.raw_documents import decode_hit, parse_source
from langshift.plugin.stored_shift import StoredShift, own_tag, unshifted
from langshift.plugin.stored_vector import vector_at
from langshift.plugin.versions import live
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.searcher import open_encoder_of
from langshift.retry import PATIENCE

_SEED = 20_260_213


class AuditedIndex(NamedTuple):
    """An index that is open for an audit.

    Attributes:
        reader: reads it.
        fields: the names of its fields.
        pipeline: how its vectors were made, and how the shift in question moves them.
        read: makes a document, with its vector as the encoder made it, of what a search gives; or says why not.
        own: whether langshift has made it.
    """

    reader: IndexReader
    fields: FieldNames
    pipeline: EmbeddingPipeline
    read: Callable[[bytes], Document | InvalidRow]
    own: bool


@contextmanager
def open_index(
    client: OpenSearch, name: str, there: FieldNames | None, options: PipelineOptions
) -> Iterator[AuditedIndex]:
    """Open an index for an audit; nothing is written.

    Args:
        client: the cluster.
        name: an index of langshift's, or any other with vectors and text; or an alias over one.
        there: the names of the fields of an index that is not langshift's; None where none was given.
        options: the encoder that made the vectors, empty for that of an index of langshift's, and how they are moved:
            of such an index, what is not asked for is as the index has it.

    Raises:
        UsageError: it cannot be audited; saying why and what to do.
        LangshiftError: the encoder cannot be opened.
    """
    old = find_index(client, name)
    if metadata.FINGERPRINT in old.mappings.get("_meta", {}):
        if there is not None:
            raise UsageError(f"Index {old.index} knows its fields itself: leave --vector-field and the like out.")
        with _open_own(client, old, options) as opened:
            yield opened
        return
    if there is None:
        raise UsageError(
            f"Index {old.index} was not created by langshift: name its fields with --vector-field and --text-field."
        )
    with open_for_adoption(client, name, there, options, PATIENCE) as found:
        read = partial(document_of, fields=found.fields, dimension=found.vector_spec.dimension, norms=found.norms)
        yield AuditedIndex(found.reader, found.fields, found.pipeline, read, own=False)


@contextmanager
def _open_own(client: OpenSearch, old: OldIndex, options: PipelineOptions) -> Iterator[AuditedIndex]:
    index, meta = live(client, old.name), metadata.read_metadata(client, old.index)
    fields, shift = index.fields, StoredShift.from_meta(meta)
    require_vectors_as_written(client, index)
    encoder = open_encoder_of(index, SearchOptions(options.encoder or None), {})
    debias = stored_shift.of_documents(meta, index.index)
    if not options.default_shift:
        known = None if debias.vectors is None else stored_shift.known_vectors(meta, index.index)
        if options.vectors is not None:
            known = LanguageVectors.load(options.vectors)
            known.require_encoder(encoder, str(options.vectors))
        debias = recommended(known, options.alpha, options.gamma, options.own)
    pipeline = EmbeddingPipeline(encoder, debias, open_detector().limited(index.fingerprint.languages))
    with open_reader(client, old, fields.vector, PATIENCE) as reader:
        yield AuditedIndex(reader, fields, pipeline, partial(_own_document, fields=fields, shift=shift), own=True)


def _own_document(hit: bytes, fields: FieldNames, shift: StoredShift | None) -> Document | InvalidRow:
    """A document of langshift's with its vector before the shift; its language is the one that it was shifted by."""
    stored = decode_hit(hit)
    source = parse_source(stored.source)
    vector, stamp = vector_at(source, fields.vector), value_at(source, fields.stamp) or {}
    raw = None if vector is None else unshifted(vector, stamp, shift)
    if raw is None:
        return InvalidRow("shift_unknown", "its shift cannot be reversed exactly.", stored.id)
    language = own_tag(source, stamp, fields, same=shift is not None and shift.hash == stamp.get("vectors"))
    return Document(stored.id, "", stored_text(source, fields), language, {}, embedding=raw.astype(np.float32))


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
        unusable: how many documents were left aside: adopting would refuse them, or their shift cannot be reversed.
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


def draw(opened: AuditedIndex, size: int) -> Sample:
    """Draw documents at random, the same each time as long as the index stays as it is.

    Args:
        opened: the index.
        size: how many at most.

    Raises:
        UsageError: none of them can be used.
    """
    hits = opened.reader.sample(size, {"exists": {"field": opened.fields.vector}}, _SEED)
    read = map(opened.read, hits)
    documents, vectors, texts = [], [], []
    for document in (one for one in read if isinstance(one, Document)):
        vector = document.embedding
        # One without a direction could not be shifted.
        if vector is not None and 0 < float(np.linalg.norm(vector.astype(np.float64))) < float("inf"):
            documents.append(_sample_document(document, opened.pipeline))
            vectors.append(vector)
            texts.append(full_text(document.title, document.text))
    if not vectors:
        raise UsageError(f"None of the {len(hits):,} documents drawn from {opened.reader.old.index} could be used.")
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


def read_queries(log: QueryLog, pipeline: EmbeddingPipeline, among: Collection[str], most: int) -> AuditQueries:
    """Queries of a log, encoded, or with the vectors that they bring.

    Args:
        log: the log.
        pipeline: its encoder, and the detector of the languages that queries do not name.
        among: languages as the field ``language`` holds them, of which queries may be.
        most: of more queries, so many are taken at random, the same each time.

    Raises:
        UsageError: a line is no query, named by file and line; or there is no query.
    """
    found = [line.query for line in log.lines()]
    total = len(found)
    if total > most:
        rows = np.sort(np.random.default_rng(_SEED).choice(total, most, replace=False))
        found = [found[row] for row in rows]
    tags = [
        query.tag or query.language or pipeline.detector.detect(query.text, among=among).language for query in found
    ]
    return AuditQueries(str(log.path), total, tags, dataset.query_vectors(pipeline.encoder, found))
