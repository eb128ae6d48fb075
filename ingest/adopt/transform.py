"""Documents of another index as operations: detected, shifted, and else as they were."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debiaser import is_shifted
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import ClusterError, LangshiftError
from langshift.files import LineNumbers
from langshift.ingest.adopt.reader import IndexReader
from langshift.ingest.bulk.writer import BulkAction, action_line
from langshift.ingest.documents import Document, DocumentSource, InvalidRow, SourceRow
from langshift.ingest.transform import ActionBuilder, EncodedDocument
from langshift.languages import UNDETERMINED, parse_tag, text_language
from langshift.normal_form import normal_form, normal_texts
from langshift.plugin.metadata import USUAL, FieldNames, value_at
from langshift.plugin.raw_documents import decode_hit, edit_source, parse_source
from langshift.plugin.stored_shift import page_of
from langshift.plugin.stored_vector import left_out, masked, parse_vector


class Norms(NamedTuple):
    """Which norms the vectors of an index may have, so that its space ranks them as cosine similarity does."""

    space: str
    least: float
    most: float

    def hold(self, vector: NDArray[np.float32]) -> bool:
        """Whether a vector has one of them."""
        return self.least <= float(np.linalg.norm(vector.astype(np.float64))) <= self.most


def document_of(hit: bytes, fields: FieldNames, dimension: int, norms: Norms | None = None) -> Document | InvalidRow:
    """Look at a document.

    Args:
        hit: as a search gives it.
        fields: the names of its fields, and of those that it is to get.
        dimension: the length of its vector.
        norms: those that its vector may have; None for any.

    Returns:
        The document, its texts joined as ``text``, and in ``other`` what is filled in; or why it cannot be adopted.
    """
    stored = decode_hit(hit)
    source = parse_source(stored.source)
    for name in (fields.language, fields.confidence, fields.stamp):
        if name in source:
            why = f"has a field {name!r} that is not in the mapping and whose name langshift needs."
            return InvalidRow("field_taken", why, stored.id)
    value, vector = value_at(source, fields.vector), None
    if value is not None:
        vector = parse_vector(value)
        if vector is None or len(vector) != dimension:
            why = masked(fields.vector, value) or f"the field {fields.vector!r} is not one list of {dimension} numbers"
            return InvalidRow("invalid_embedding", f"{why}.", stored.id)
        if norms is not None and not norms.hold(vector):
            why = f"the vector in {fields.vector!r} has another length than the others, which {norms.space} counts."
            return InvalidRow("invalid_embedding", why, stored.id)
    other = {}
    if fields.parent is not None:
        parent = _parent(source, fields.parent)
        if parent is None:
            return InvalidRow("invalid_parent", f"the field {fields.parent!r} is not one value.", stored.id)
        if parent == "":
            other = {fields.parent: stored.id}
    texts = [text for name in fields.texts for text in strings_at(source, name)]
    return Document(stored.id, "", normal_form("\n".join(texts)), _language(source, fields), other, embedding=vector)


def _parent(source: Mapping[str, Any], field: str) -> str | int | None:
    """The document that a chunk is of, empty where it names none; None where it names several, or what is no id."""
    value = value_at(source, field)
    if isinstance(value, list) and len(value) < 2:
        value = value[0] if value else None
    if value is None:
        return None if any(strings_at(source, field)) else ""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


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


def texts_in_normal_form(source: Mapping[str, Any], fields: FieldNames) -> dict[str, Any]:
    """The outermost fields with a text in another form than the normal one, in which it is."""
    made = normal_texts(source, fields.text_fields)
    return {name: value for name, value in made.items() if value != source[name]}


def is_in_list(hit: bytes, field: str) -> bool:
    """Whether a document, as a search gives it, has a list where the field's objects are."""
    outer = field.rpartition(".")[0]
    return bool(outer) and isinstance(value_at(parse_source(decode_hit(hit).source), outer), list)


def _language(source: Mapping[str, Any], fields: FieldNames) -> str | None:
    """The tag that a document names, in ``language`` where the declared field has none; None where there is none."""
    if fields.declared_language is None:
        return None
    return declared_tag(source, fields.declared_language) or declared_tag(source, USUAL.language)


def declared_tag(source: Mapping[str, Any], field: str) -> str | None:
    """The tag that a document names in a field; None where it names none there, or several."""
    tags = set(strings_at(source, field))
    if len(tags) != 1:
        return None
    (given,) = tags
    return UNDETERMINED if given.strip().lower() == UNDETERMINED else parse_tag(given)


class IndexDocuments(DocumentSource):
    """The documents of an index at one point in time.

    Another point in time gives another order: nothing can be gone on with.

    Args:
        reader: reads the index.
        fields: the names of the documents' fields, and of those that they are to get.
        vector_spec: what is known of their vectors.
        norms: those that their vectors may have; None for any.
    """

    def __init__(
        self, reader: IndexReader, fields: FieldNames, vector_spec: VectorSpec, norms: Norms | None = None
    ) -> None:
        self._norms = norms
        self.shown, self.total = reader.old.name, reader.total
        self.vector_spec = vector_spec
        self._reader, self._fields, self._dimension = reader, fields, vector_spec.dimension

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The documents, numbered as they come; the original of each is what a search gives.

        Raises:
            ClusterError: they cannot all be read.
            LangshiftError: the cluster finds vectors in more documents than are found here.
        """
        bearing, in_lists = 0, False
        for number, hit in enumerate(self._reader.documents(), 1):
            content = document_of(hit, self._fields, self._dimension, self._norms)
            if not isinstance(content, Document) or content.embedding is not None:
                bearing += 1
            else:
                in_lists = in_lists or is_in_list(hit, self._fields.vector)
            if number not in skip:
                yield SourceRow(number, content, hit)
        if bearing < self._reader.bearing:
            if not in_lists:
                raise ClusterError(left_out(self._reader.old.index, self._fields.vector))
            lacking = self._reader.bearing - bearing
            raise LangshiftError(
                f"{lacking:,} of {self._reader.bearing:,} documents with a vector store it in a list of objects, where "
                f"it cannot be shifted: store {self._fields.vector!r} of each document as one list of numbers."
            )


@dataclass
class StoredDocumentBuilder(ActionBuilder):
    """Makes operations of documents as a search gives them; those that can be none are settled as dead.

    Each keeps its ``_id``, routing, version and every byte of its fields but the vector's, where that moves, and of
    texts that are not in normal form.

    Attributes:
        fields: the names of the documents' fields, and of those that they get.
    """

    encodes: ClassVar[bool] = False

    def encode(self, documents: Sequence[Document]) -> NDArray[np.float32]:
        """The vectors that the documents have, shape (len(documents), dimension), float32; zeros for one without."""
        vectors = np.zeros((len(documents), self.pipeline.encoder.dimension), np.float32)
        for row, document in enumerate(documents):
            if document.embedding is not None:
                vectors[row] = document.embedding
        return vectors

    def beside(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        """Nothing: documents keep what they have beside their vectors."""
        return [{} for _ in documents]

    def _action(self, row: SourceRow, document: Document, made: EncodedDocument) -> BulkAction:
        assert isinstance(row.original, bytes)  # noqa: S101 - as ``IndexDocuments`` gives them
        stored, fields = decode_hit(row.original), self.fields
        language = text_language(made.detection.language)
        # First, as they may be in one object with the others.
        texts = texts_in_normal_form(parse_source(stored.source), fields)
        changes = {**texts, fields.language: language, fields.confidence: made.detection.confidence}
        tallies = [f"language {language}", "vectorless"]
        if document.embedding is not None:
            source = {**parse_source(stored.source), **document.other}
            changes[fields.stamp] = {**made.stamp, "page": page_of(source, fields, stored.id)}
            tallies = self._tallies(document, made.detection, made.stamp)
            # A string is base64, which servers before 3.7 refuse.
            if is_shifted(made.stamp) or isinstance(value_at(source, fields.vector), str):
                changes[fields.vector] = made.shifted
        elif not document.text.strip() and document.language is None:
            # Nothing tells its language, and nothing asks for it.
            changes = texts
        if document.other:
            tallies.append("parentless")
        changes |= document.other
        lines = action_line("index", stored.id, stored.version, stored.routing)
        lines += edit_source(stored.source, changes) + b"\n"
        # No final pipeline runs on it, and its texts may be what only the server can read.
        vector_sent = made.shifted.tobytes() if document.embedding is not None and self.wants(row.line) else None
        return BulkAction(row.line, stored.id, "index", lines, row.original, vector_sent, tuple(tallies))
