"""The five stages of indexing, read, detect, encode, shift, write.

The way of each document is ``encoded_batches``, then ``index_batches``.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from langshift.debias.debiaser import is_shifted
from langshift.debias.detector import LOOKALIKES
from langshift.debias.encoders.base import Encoder, Matrix, is_given
from langshift.errors import UsageError
from langshift.files import batched_by_size
from langshift.ingest.bulk.final_pipeline import sampled
from langshift.ingest.bulk.writer import ActionResult, BulkAction, Settle, bulk_lines
from langshift.ingest.chunking import CHARACTERS, chunks_of
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Delete, Document, InvalidRow, SourceRow, Update
from langshift.ingest.progress import NO_TAG, OnStage, no_progress
from langshift.languages import UNDETERMINED, primary, text_language
from langshift.plugin.metadata import USUAL, FieldNames, replaced_at
from langshift.plugin.stored_shift import page_of
from langshift.retry import prefetch


def full_text(title: str, text: str) -> str:
    """What is encoded of a document."""
    return f"{title} {text}".strip()


_ENCODING = Lock()


def document_vectors(encoder: Encoder, documents: Sequence[Document]) -> Matrix:
    """Vectors of documents, shape (len(documents), dimension), float32, not shifted.

    Raises:
        UsageError: a document without a vector of the dimension, where vectors come with the data.
    """
    if not documents:
        return np.empty((0, encoder.dimension), np.float32)
    if is_given(encoder.id):
        return given_vectors("Document", encoder, [(document.id, document.embedding) for document in documents])
    # Updates are encoded in threads of their own, and an encoder is no matter of two at once.
    with _ENCODING:
        return encoder.encode_documents([full_text(document.title, document.text) for document in documents])


def beside_vectors(pipeline: EmbeddingPipeline, documents: Sequence[Document]) -> list[dict[str, Any]]:
    """What is kept of documents beside their vectors: field -> its value, as JSON has it; None where one has none.

    Raises:
        LangshiftError: an encoder fails.
    """
    made: list[dict[str, Any]] = [{} for _ in documents]
    for one in pipeline.beside:
        values: Sequence[Any] = [document.weights or None for document in documents]
        if not one.is_given:
            values = one.of([full_text(document.title, document.text) for document in documents])
        for fields, value in zip(made, values, strict=True):
            fields[one.kept.field] = value
    return made


def given_vectors(what: str, encoder: Encoder, vectors: Sequence[tuple[str, Matrix | None]]) -> Matrix:
    """Vectors that come with the data, shape (len(vectors), dimension), float32.

    Args:
        what: what messages call one thing that has a vector.
        encoder: stands for what made them.
        vectors: id and vector of each.

    Raises:
        UsageError: one without a vector of the dimension.
    """
    found = np.empty((len(vectors), encoder.dimension), np.float32)
    for row, (name, vector) in enumerate(vectors):
        if vector is None:
            raise UsageError(
                f"{what} {name!r} has no 'embedding', which the encoder {encoder.id} needs: add one of "
                f"{encoder.dimension} numbers."
            )
        if vector.shape != (encoder.dimension,):
            raise UsageError(
                f"{what} {name!r} has an 'embedding' of {len(vector)} numbers, but {encoder.dimension} are needed: "
                "documents and queries must be encoded by the same model."
            )
        found[row] = vector
    return found


Stamp = dict[str, Any]


class DocumentLanguage(NamedTuple):
    """What language a document is in.

    Attributes:
        language: its tag; ``und`` where unknown or not certain enough.
        confidence: the detector's posterior; 1 where the document names its language.
    """

    language: str
    confidence: float


def detect_language(document: Document, pipeline: EmbeddingPipeline) -> DocumentLanguage:
    """The language that a document names, else what the detector makes of its text."""
    if document.language is not None:
        return DocumentLanguage(document.language, 1.0)
    language, confidence = pipeline.detector.detect(document.text or document.title)
    return DocumentLanguage(language if confidence >= pipeline.least_confidence else UNDETERMINED, confidence)


def debias_batch(
    vectors: Matrix, detections: Sequence[DocumentLanguage], pipeline: EmbeddingPipeline
) -> tuple[Matrix, list[Stamp]]:
    """Shift documents by their languages; see ``Debiaser.documents``.

    Args:
        vectors: embeddings as the encoder makes them, shape (n, d), float32.
        detections: each document's language.
        pipeline: the shift and its scales.

    Returns:
        The vectors, shape (n, d), float32, and the stamps; see ``Debiaser.stamp``.
    """
    languages = [one.language for one in detections]
    stamps = {tag: pipeline.debias.stamp(tag) for tag in set(languages)}
    return pipeline.debias.documents(vectors, languages), [stamps[tag] for tag in languages]


def is_usable(vector: Matrix, shifted: Matrix) -> bool:
    """Whether a vector has a cosine with others: no number that is none, not all zeros, no length that overflows.

    Args:
        vector: as the encoder makes it, shape (dimension,), float32.
        shifted: as it is to be stored, likewise.
    """
    with np.errstate(all="ignore"):
        length = float(vector @ vector)
    return 0 < length < float("inf") and bool(np.isfinite(shifted).all())


class EncodedDocument(NamedTuple):
    """What was made of a document.

    Attributes:
        vector: its vector before it was shifted.
        shifted: and after.
        detection: its language.
        stamp: what was done to the vector.
        beside: what is kept beside it, see ``beside_vectors``.
    """

    vector: Matrix
    shifted: Matrix
    detection: DocumentLanguage
    stamp: Stamp
    beside: Mapping[str, Any]


def index_entry(
    document: Document,
    language: str,
    confidence: float,
    embedding: Matrix,
    stamp: dict[str, Any],
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The index entry of one document; an empty text is left out.

    Args:
        document: the document.
        language: as ``text_language`` gives it; it names the text fields.
        confidence: the detector's posterior.
        embedding: the shifted vector, shape (dimension,), float32, C-contiguous.
        stamp: what was done to the vector.
        beside: what is kept beside it, see ``beside_vectors``.
    """
    entry: dict[str, Any] = {**document.other, "language": language, "language_confidence": confidence}
    texts = (("title", document.title), ("text", document.text)) if document.texts is None else document.texts.items()
    for name, text in texts:
        held = {language: text} if text else None
        if "." in name:
            entry = replaced_at(entry, name, held)
        elif held:
            entry[name] = held
    more = {name: value for name, value in beside.items() if value is not None}
    return {**entry, **more, "embedding": embedding, "shift": stamp}


@dataclass
class ActionBuilder:
    """Makes operations of lines; those that can be none are settled as dead.

    Attributes:
        pipeline: encoder, shift and detector.
        settle: takes what cannot be used.
        base: the version that line 0 would have.
        wants: whether the final check compares a line.
        fields: the names of the documents' fields.
        encodes: whether the encoder makes the vectors: else no time is reported for it.
    """

    pipeline: EmbeddingPipeline
    settle: Settle
    base: int
    wants: Callable[[int], bool]
    fields: FieldNames = USUAL
    encodes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        vectors = self.pipeline.debias.vectors
        self._needless = {vectors.pivot, UNDETERMINED} if vectors else set()
        self._moves = self.pipeline.fingerprint().moves
        self._no_tag: str | None = None

    def encode(self, documents: Sequence[Document]) -> Matrix:
        """The documents' vectors before they are shifted, shape (len(documents), dimension), float32.

        Raises:
            LangshiftError: the encoder fails.
        """
        return document_vectors(self.pipeline.encoder, documents)

    def beside(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        """What is kept of documents beside their vectors; see ``beside_vectors``."""
        return beside_vectors(self.pipeline, documents)

    def actions(
        self, batch: Sequence[SourceRow], chunks: Iterator[Sequence[Document]], encoded: Iterator[EncodedDocument]
    ) -> list[BulkAction]:
        """The operations of a batch of lines, in their order.

        Args:
            batch: the lines.
            chunks: those of each document among them; of a document that is one entry it alone.
            encoded: what was made of each chunk.
        """
        actions, refused = list[BulkAction](), list[ActionResult]()
        for row in batch:
            content = row.content
            if isinstance(content, InvalidRow):
                item = BulkAction(row.line, content.id or "", "index", b"", row.original)
                refused.append(ActionResult(item, "dead", "", content.type, content.reason, "read"))
            elif isinstance(content, Delete):
                # How many chunks there are is known when it is sent.
                whole = self.pipeline.chunking is None
                lines = bulk_lines("delete", content.id, self.base + row.line) if whole else b""
                actions.append(BulkAction(row.line, content.id, "delete", lines, row.original))
            elif isinstance(content, Update):
                actions.append(BulkAction(row.line, content.id, "update", b"", row.original, update=content))
            else:
                pieces = next(chunks)
                made = [self._action(row, piece, next(encoded)) for piece in pieces]
                usable = [one for one in made if isinstance(one, BulkAction)]
                if len(usable) == len(made):
                    actions += usable if self.pipeline.chunking is None else _parts(content.id, usable)
                else:
                    # Without one of its chunks it is not the document.
                    refused.append(next(one for one in made if isinstance(one, ActionResult)))
        if refused:
            self.settle(refused)
        return actions

    def _action(self, row: SourceRow, document: Document, made: EncodedDocument) -> BulkAction | ActionResult:
        encoder = self.pipeline.encoder
        if not is_usable(made.vector, made.shifted):
            return unusable_vector(BulkAction(row.line, document.id, "index", b"", row.original), encoder)
        language, confidence = made.detection
        stamp = {**made.stamp, "page": page_of(document.other, self.fields, document.id)}
        source = index_entry(document, text_language(language), confidence, made.shifted, stamp, made.beside)
        tallies = self._tallies(document, made.detection, made.stamp)
        if self.pipeline.chunking is None and not is_given(encoder.id):
            length = len(full_text(document.title, document.text))
            # Tokens of natural text have some four characters.
            limits = {"cut": encoder.longest or length, "long": 4 * encoder.window if encoder.window else CHARACTERS}
            tallies += [name for name, limit in limits.items() if length > limit]
        if document.no_tag:
            tallies.append("no tag")
            if self._no_tag is None:
                # One example will do.
                self._no_tag = document.no_tag
                tallies.append(f"{NO_TAG}{document.no_tag}")
        lines = bulk_lines("index", document.id, self.base + row.line, source)
        kept = sampled(made.shifted, source, self.fields) if self.wants(row.line) else None
        return BulkAction(row.line, document.id, "index", lines, row.original, kept, tuple(tallies))

    def _tallies(self, document: Document, detection: DocumentLanguage, stamp: Stamp) -> list[str]:
        """What a document with a vector counts under, such as ``language de`` and ``shifted``."""
        language = text_language(detection.language)
        names = [f"language {language}"]
        if language in LOOKALIKES and document.language is None:
            names.append(f"detected {language}")
        if is_shifted(stamp):
            names.append("shifted")
        if language != primary(detection.language):
            names.append(f"folded {primary(detection.language)}")
        # Whatever its scale: a language that is left alone on purpose lacks no vector.
        lacks = self._moves and language not in self._needless
        if lacks and self.pipeline.debias.named(detection.language) is None:
            names.append(f"without_vector {language}")
        return names


def _parts(document: str, chunks: Sequence[BulkAction]) -> Iterator[BulkAction]:
    """The operations that write the chunks of a document."""
    for ordinal, one in enumerate(chunks):
        # Of a document one vector is compared, of each another chunk's.
        vector = one.vector if ordinal == one.line % len(chunks) else None
        yield one._replace(id=document, target=one.id, parts=len(chunks), vector=vector)


def unusable_vector(item: BulkAction, encoder: Encoder) -> ActionResult:
    """What became of a document of whose text an encoder makes no vector that has a cosine."""
    why = f"the encoder {encoder.id} gives no usable vector for its text"
    return ActionResult(item, "dead", "", "unusable_vector", why, "encode")


_BATCH_BYTES = 8 << 20


class EncodedBatch(NamedTuple):
    """A batch of lines whose documents are detected and encoded.

    Attributes:
        rows: the lines.
        chunks: those of each document among them; of a document that is one entry it alone.
        detections: the language of each chunk.
        vectors: their vectors before they are shifted, shape (chunks, dimension), float32.
        beside: what is kept of each chunk beside its vector.
    """

    rows: list[SourceRow]
    chunks: list[list[Document]]
    detections: list[DocumentLanguage]
    vectors: Matrix
    beside: list[dict[str, Any]]


def encoded_batches(
    rows: Iterator[SourceRow], builder: ActionBuilder, on_stage: OnStage = no_progress
) -> Generator[EncodedBatch, None, None]:
    """Read, detect and encode lines, a batch at a time; the next is read, in a thread of its own, while one is made.

    Args:
        rows: the lines.
        builder: encodes them, and is used for nothing else.
        on_stage: called after each stage of each batch, with its documents and seconds.

    Raises:
        LangshiftError: a stage fails.
    """
    for batch in prefetch(_read(rows, builder.pipeline.encoder.batch, on_stage)):
        documents = [row.content for row in batch if isinstance(row.content, Document)]
        with _timed("detect", documents, on_stage):
            detections = [detect_language(document, builder.pipeline) for document in documents]
            chunks = [[document] for document in documents]
            if builder.pipeline.chunking is not None:
                chunks, detections = chunked(documents, detections, builder.pipeline)
        with _timed("encode", documents, on_stage if builder.encodes else no_progress):
            pieces = [chunk for one in chunks for chunk in one]
            vectors, beside = builder.encode(pieces), builder.beside(pieces)
        yield EncodedBatch(batch, chunks, detections, vectors, beside)


# Bytes: 90 characters of English, 45 of Russian, 30 of Thai or Chinese. Of pieces of XQuAD's texts of 60 characters, in
# twelve languages, the detector is sure and right for 98%, sure and wrong for 0.2%; of those of 30 for 93% and 1.6%.
_DETECTABLE = 90


def chunked(
    documents: Sequence[Document], detections: Sequence[DocumentLanguage], pipeline: EmbeddingPipeline
) -> tuple[list[list[Document]], list[DocumentLanguage]]:
    """The chunks of each document, and the language of each chunk.

    Where a document names no language, that of a chunk is detected; the document's it is where that is not certain.
    """
    assert pipeline.chunking is not None  # noqa: S101 - or nothing is cut
    chunks, languages = [], []
    for document, detected in zip(documents, detections, strict=True):
        found = chunks_of(document, detected.language, pipeline.chunking, pipeline.encoder)
        chunks.append(found)
        for chunk in found:
            alone = detected
            if len(found) > 1 and document.language is None and len(chunk.text.encode()) >= _DETECTABLE:
                alone = detect_language(chunk, pipeline)
            languages.append(detected if alone.language == UNDETERMINED else alone)
    return chunks, languages


def index_batches(
    batches: Iterator[EncodedBatch],
    builder: ActionBuilder,
    write: Callable[[list[BulkAction]], None],
    on_stage: OnStage = no_progress,
) -> None:
    """Shift batches and write them; those before are written in a thread of their own while the next is made.

    Args:
        batches: as ``encoded_batches`` makes them.
        builder: makes operations of them.
        write: takes the operations of a batch, and waits while too many are under way.
        on_stage: called after each batch is shifted, with its documents and seconds.

    Raises:
        LangshiftError: a stage fails.
    """
    for batch in batches:
        with _timed("shift", batch.detections, on_stage):
            shifted, stamps = debias_batch(batch.vectors, batch.detections, builder.pipeline)
        made = zip(batch.vectors, shifted, batch.detections, stamps, batch.beside, strict=True)
        encoded = starmap(EncodedDocument, made)
        write(builder.actions(batch.rows, iter(batch.chunks), encoded))


def _read(rows: Iterator[SourceRow], most: int, on_stage: OnStage) -> Iterator[list[SourceRow]]:
    begun = time.perf_counter()
    for batch in batched_by_size(rows, _BATCH_BYTES, attrgetter("size"), most):
        on_stage("read", len(batch), time.perf_counter() - begun)
        yield batch
        begun = time.perf_counter()


@contextmanager
def _timed(stage: str, documents: Sequence[object], on_stage: OnStage) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    on_stage(stage, len(documents), time.perf_counter() - begun)
