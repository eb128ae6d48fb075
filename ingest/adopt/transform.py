"""Documents of another index as operations: detected, shifted, and else as they were."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders import VectorSpec
from langshift.debias.stamps import is_shifted
from langshift.errors import LangshiftError
from langshift.files import LineNumbers
from langshift.ingest.adopt.reader import IndexReader, decode_hit, edit_source, parse_source
from langshift.ingest.bulk.chunks import BulkAction
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document, InvalidRow, SourceRow, action_line
from langshift.ingest.progress import OnStage, no_progress
from langshift.ingest.transform import DocumentLanguage, RejectionSink, Stamp, Tallies, debias_batch, detect_language
from langshift.languages import UNDETERMINED, parse_tag, text_language
from langshift.plugin.metadata import FieldNames, value_at


def document_of(hit: bytes, fields: FieldNames, dimension: int) -> Document | InvalidRow:
    """Look at a document.

    Args:
        hit: as a search gives it.
        fields: the names of its fields, and of those that it is to get.
        dimension: the length of its vector.

    Returns:
        The document, its texts joined as ``text``; or why it cannot be adopted.
    """
    stored = decode_hit(hit)
    source = parse_source(stored.source)
    for name in (fields.language, fields.confidence, fields.stamp):
        if name in source:
            return InvalidRow(
                "field_taken", f"has a field {name!r} that the mapping does not know, and that langshift needs."
            )
    value, vector = value_at(source, fields.vector), None
    if value is not None:
        vector = _vector(value, dimension)
        if vector is None:
            return InvalidRow(
                "invalid_embedding", f"the field {fields.vector!r} is not one list of {dimension} numbers."
            )
    texts = [text for name in fields.texts for text in strings_at(source, name)]
    return Document(
        id=stored.id,
        title="",
        text="\n".join(texts),
        language=_language(source, fields.declared_language),
        other={},
        embedding=vector,
    )


def strings_at(source: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """All strings at a field, also within lists, in the document's order."""
    if isinstance(source, list):
        for each in source:
            yield from strings_at(each, path)
    elif not path and isinstance(source, str):
        yield source
    elif path and isinstance(source, Mapping):
        for name, inner in source.items():
            if name == path:
                yield from strings_at(inner, "")
            elif path.startswith(f"{name}."):
                yield from strings_at(inner, path[len(name) + 1 :])


def _vector(value: Any, dimension: int) -> NDArray[np.float32] | None:  # noqa: ANN401 - any JSON
    if not isinstance(value, list) or len(value) != dimension:
        return None
    try:
        return np.array(value, np.float32)
    except (TypeError, ValueError):
        return None


def _language(source: Mapping[str, Any], name: str | None) -> str | None:
    """The tag that a document names; None where it names none, or several."""
    tags = set(strings_at(source, name)) if name else set()
    if len(tags) != 1:
        return None
    (given,) = tags
    return UNDETERMINED if given.strip().lower() == UNDETERMINED else parse_tag(given)


class IndexDocuments:
    """The documents of an index at one point in time; see ``Source``.

    Another point in time gives another order: nothing can be gone on with.

    Args:
        reader: reads the index.
        fields: the names of the documents' fields, and of those that they are to get.
        brought: what is known of their vectors.
    """

    resumable = False
    content: str | None = None

    def __init__(self, reader: IndexReader, fields: FieldNames, vector_spec: VectorSpec) -> None:
        self.shown, self.total = reader.old.name, reader.total
        self.vector_spec: VectorSpec | None = vector_spec
        self._reader, self._fields, self._dimension = reader, fields, vector_spec.dimension

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The documents, numbered as they come; the original of each is what a search gives.

        Raises:
            ClusterError: they cannot all be read.
            LangshiftError: the cluster finds vectors in more documents than are found here.
        """
        bearing = 0
        for number, hit in enumerate(self._reader.documents(), 1):
            content = document_of(hit, self._fields, self._dimension)
            bearing += not isinstance(content, Document) or content.embedding is not None
            if number not in skip:
                yield SourceRow(number, content, hit)
        if bearing < self._reader.bearing:
            lacking = self._reader.bearing - bearing
            raise LangshiftError(
                f"{lacking:,} of {self._reader.bearing:,} documents with a vector hold it in a list of objects, where "
                f"it cannot be shifted: write {self._fields.vector!r} of each document as one list of numbers."
            )


Moved = tuple[NDArray[np.float32], Stamp]

#: What a document without a vector counts under.
VECTORLESS = "vectorless"


class StoredDocumentBuilder:
    """Makes operations of documents as a search gives them; those that can be none go to the ledger.

    Each keeps its ``_id``, routing, version and every byte of its fields but the vector's, where that moves.
    """

    def __init__(
        self,
        fields: FieldNames,
        pipeline: EmbeddingPipeline,
        ledger: RejectionSink,
        base: int,  # noqa: ARG002 - documents have versions of their own
        wants: Callable[[int], bool],
        on_stage: OnStage = no_progress,
    ) -> None:
        """Make a maker.

        Args:
            fields: the names of the documents' fields, and of those that they get.
            pipeline: as for ``items.Maker``, as are the others.
            ledger: takes what cannot be used.
            base: not needed.
            wants: whether the final check compares the vector of a line.
            on_stage: called after each stage of each batch.
        """
        self._fields, self._pipeline, self._ledger = fields, pipeline, ledger
        self._wants, self._on_stage = wants, on_stage
        self._tallies = Tallies(pipeline)

    def items(self, batch: Sequence[SourceRow]) -> list[BulkAction]:
        """The operations of a batch of documents, in their order."""
        documents = [read.content for read in batch if isinstance(read.content, Document)]
        begun = time.perf_counter()
        detections = [detect_language(document, self._pipeline) for document in documents]
        detected = time.perf_counter()
        moved = self._moved(documents, detections)
        self._on_stage("detect", len(documents), detected - begun)
        self._on_stage("shift", len(documents), time.perf_counter() - detected)
        made = iter(zip(documents, detections, strict=True))
        items = []
        for read in batch:
            if isinstance(read.content, InvalidRow):
                bad = read.content
                self._ledger.refuse(read.line, decode_hit(_hit(read)).id, bad.type, bad.reason, read.original, "read")
            elif isinstance(read.content, Document):
                document, language = next(made)
                items.append(self._item(read, document, language, moved))
        self._ledger.flush()
        return items

    def _moved(self, documents: Sequence[Document], detections: Sequence[DocumentLanguage]) -> Iterator[Moved]:
        """The vectors of those documents that have one."""
        rows = [
            (doc.embedding, one) for doc, one in zip(documents, detections, strict=True) if doc.embedding is not None
        ]
        if not rows:
            return iter(())
        vectors, stamps = debias_batch(
            np.stack([vector for vector, _ in rows]), [one for _, one in rows], self._pipeline
        )
        return iter(list(zip(vectors, stamps, strict=True)))

    def _item(
        self, read: SourceRow, document: Document, detection: DocumentLanguage, moved: Iterator[Moved]
    ) -> BulkAction:
        stored, fields = decode_hit(_hit(read)), self._fields
        language = text_language(detection.language)
        added = {fields.language: orjson.dumps(language), fields.confidence: orjson.dumps(detection.confidence)}
        vector, sent, tallies = None, None, [f"language {language}", VECTORLESS]
        if document.embedding is not None:
            sent, stamp = next(moved)
            added[fields.stamp] = orjson.dumps(stamp)
            tallies = self._tallies.of(detection, stamp)
            if is_shifted(stamp):
                vector = orjson.dumps(sent, option=orjson.OPT_SERIALIZE_NUMPY)
        elif not document.text.strip() and document.language is None:
            # Nothing tells its language, and nothing asks for it.
            added = {}
        source = edit_source(stored.source, fields.vector, vector, added)
        return BulkAction(
            read.line,
            stored.id,
            "index",
            action_line("index", stored.id, stored.version, stored.routing) + source + b"\n",
            read.original,
            sent.tobytes() if sent is not None and self._wants(read.line) else None,
            tuple(tallies),
        )


def _hit(read: SourceRow) -> bytes:
    assert isinstance(read.original, bytes)  # noqa: S101 - as ``Documents`` gives them
    return read.original
