"""Documents: one line of ``corpus.jsonl``, parsed strictly; and the operation that it becomes."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders import VectorSpec, have_norm_1
from langshift.errors import UsageError
from langshift.files import LineNumbers, lines_of
from langshift.ingest.bulk.writer import Operation, Original
from langshift.languages import UNDETERMINED, parse_tag
from langshift.plugin.index_body import RESERVED_FIELDS


def index_entry(
    document: Document, language: str, confidence: float, embedding: NDArray[np.float32], stamp: dict[str, Any]
) -> dict[str, Any]:
    """The index entry of one document; an empty title or text is left out.

    Args:
        document: the document.
        language: as ``text_language`` gives it; it names the text fields.
        confidence: the detector's posterior.
        embedding: the shifted vector, shape (dimension,), float32, C-contiguous.
        stamp: what was done to the vector.
    """
    entry: dict[str, Any] = {**document.other, "language": language, "language_confidence": confidence}
    if document.title:
        entry["title"] = {language: document.title}
    if document.text:
        entry["text"] = {language: document.text}
    return {**entry, "embedding": embedding, "shift": stamp}


def action_line(operation: Operation, identifier: str, version: int, routing: str | None = None) -> bytes:
    """The first line of an operation, with its line break; the arguments are those of ``body``, and the routing."""
    metadata = {"_id": identifier, "version": version, "version_type": "external_gte"}
    if routing is not None:
        metadata["routing"] = routing
    return orjson.dumps({operation: metadata}, option=orjson.OPT_APPEND_NEWLINE)


def bulk_lines(operation: Operation, identifier: str, version: int, source: dict[str, Any] | None = None) -> bytes:
    """One operation's lines of a bulk request.

    Args:
        operation: what is done.
        identifier: the document's ``_id``.
        version: its place in the order of all writes: the server keeps what has a later one, so that an operation
            sent again never undoes a newer one.
        source: the index entry; none for a delete.
    """
    lines = action_line(operation, identifier, version)
    if source is None:
        return lines
    return lines + orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


EMBEDDING = "embedding"
OPERATION = "_op"
_LONGEST_ID = 512  # bytes, the server's limit
_LONGEST_SHOWN = 60  # characters of what is wrong that a message repeats; no tag of a language is longer
_tag = lru_cache(1024)(parse_tag)
KNOWN_FIELDS = {"_id", "title", "text", "language", EMBEDDING, OPERATION}
# Fields of OpenSearch itself, which no document may bring.
_METADATA = {
    *("_index", "_source", "_routing", "_field_names", "_ignored", "_nested_path", "_doc_count", "_seq_no", "_version"),
    *("_primary_term", "_size", "_type", "_uid", "_feature", "_data_stream_timestamp", "_tier"),
}


class InvalidDocument(Exception):
    """A line that is no document.

    Attributes:
        type: one word for programs: ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
        reason: a sentence that says what is wrong and what should be there, but not where.
    """

    def __init__(self, reason: str, type: str = "invalid_document") -> None:
        super().__init__(reason)
        self.type, self.reason = type, reason


@contextmanager
def invalid_as_usage_error(place: str) -> Iterator[None]:
    """Turn what is unusable into an error that begins with its place.

    Raises:
        UsageError: instead of ``InvalidDocument``.
    """
    try:
        yield
    except InvalidDocument as error:
        raise UsageError(f"{place}: {error.reason}") from None


def json_type(value: object) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# All lines of a corpus have the same few names.
@lru_cache(1024)
def _name_fault(name: str) -> str | None:
    parts = name.split(".")
    if not all(part.strip() for part in parts) or name in _METADATA:
        return f"OpenSearch does not accept a field named {_cut(name)}; rename it."
    if (name in RESERVED_FIELDS and name != EMBEDDING) or (
        len(parts) > 1 and parts[0] in (*RESERVED_FIELDS, *KNOWN_FIELDS, "group")
    ):
        return f"the field name {_cut(name)} is reserved for langshift; rename it."
    return None


def _cut(text: str) -> str:
    """A text between quotation marks, only its beginning where it is long."""
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}..."


def string_field(fields: Mapping[str, Any], name: str) -> str:
    """A field that is a string, "" where it is missing or null.

    Raises:
        InvalidDocument: it is anything else.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidDocument(f"the field {name!r} must be a string, but is {json_type(value)}.")
    return value


def id_field(fields: Mapping[str, Any]) -> str:
    """A document's own ``_id``, or a hash of its content.

    Raises:
        InvalidDocument: an ``_id`` that the server does not take.
    """
    given = fields.get("_id")
    if given is None or given == "":
        # The same content gets the same id, whatever model made its vector: writing it twice never doubles it.
        content = {name: value for name, value in fields.items() if name not in (EMBEDDING, OPERATION)}
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise InvalidDocument(f"the field '_id' must be a string, but is {json_type(given)}.")
    identifier = str(given)
    if len(identifier.encode()) > _LONGEST_ID:
        raise InvalidDocument(f"the '_id' is longer than {_LONGEST_ID} bytes.")
    return identifier


def language_field(fields: Mapping[str, Any]) -> str | None:
    """The tag that a document names, ``und``, or None where it names none.

    Raises:
        InvalidDocument: what it names is no language.
    """
    given = string_field(fields, "language").strip()
    if not given:
        return None
    if given.lower() == UNDETERMINED:
        return UNDETERMINED
    tag = _tag(given) if len(given) <= _LONGEST_SHOWN else None
    if tag is None:
        raise InvalidDocument(
            f"{_cut(given)} is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
            "or leave the field out to have it detected."
        )
    return tag


def require_shallow(value: object) -> None:
    """Refuse what is nested so deep that it can be read but not written again.

    Raises:
        InvalidDocument: it is.
    """
    try:
        orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        raise InvalidDocument("is nested too deeply: OpenSearch accepts at most 20 levels of objects.") from None


def parse_embedding(value: Any) -> NDArray[np.float32]:  # noqa: ANN401 - any JSON value
    """The field ``embedding`` of a document or query as a vector.

    Args:
        value: a list of numbers, as JSON has them; or an array, shape (dimension,), of integers or floats.

    Returns:
        The vector, shape (dimension,), float32; it may be read-only.

    Raises:
        InvalidDocument: what is wrong and what should be there.
    """
    if not isinstance(value, list | np.ndarray):
        raise _no_vector(f"but is {json_type(value)}")
    if not len(value):
        raise _no_vector("but is empty")
    # Numbers beyond the range of float32 become infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        vector = _packed(value) if isinstance(value, list) else np.asarray(value, np.float32)
        squared = vector.dot(vector)
    # By far the cheapest look: in all but strange cases, a sound vector's squared norm is neither 0 nor infinite.
    if not 0 < squared < np.inf:
        if np.isnan(value).any():
            raise _no_vector("but one of them is not a number (NaN)")
        if not np.isfinite(vector).all():
            raise _no_vector("but one of them is too large for 32 bits")
        if not vector.any():
            raise _no_vector("that are not all zero: such a vector has no direction", comma="")
    return vector


def _packed(numbers: list[Any]) -> NDArray[np.float32]:
    """Numbers as 32 bits, infinite where they are too large; ``struct`` takes a third of NumPy's time."""
    try:
        vector = np.frombuffer(struct.pack(f"{len(numbers)}f", *numbers), np.float32)
    except struct.error:
        _require_numbers(numbers)
        raise
    # What struct takes besides numbers is true and false, as 1 and 0.
    if ((vector == 0) | (vector == 1)).any():
        _require_numbers(numbers)
    return vector


def _require_numbers(values: list[Any]) -> None:
    for value in values:
        if type(value) not in (float, int):
            raise _no_vector(f"but contains {json_type(value)}")


def _no_vector(what: str, comma: str = ",") -> InvalidDocument:
    return InvalidDocument(f"the field 'embedding' must be a list of numbers{comma} {what}.", "invalid_embedding")


def require_dimension(vector: NDArray[np.float32], dimension: int) -> None:
    """Refuse a vector of another dimension than those of its file.

    Raises:
        InvalidDocument: it is.
    """
    if len(vector) != dimension:
        raise InvalidDocument(
            f"the field 'embedding' has {len(vector)} numbers, but others in the file have {dimension}: "
            "all must come from the same model.",
            "invalid_embedding",
        )


# What becomes of a document's own vector: an error, taken (and an error where there is none), or left aside unread.
Embeddings = Literal["refused", "needed", "ignored"]


@dataclass(frozen=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: its own ``_id``, or a hash of its content.
        title: may be empty.
        text: may be empty where there is a title.
        language: BCP 47 tag that the document brought (``zh-TW``), ``und``, or None where it brought none.
        other: every other field, as it came.
        embedding: the vector that came with it, shape (dimension,), float32; None where none is wanted.
    """

    id: str
    title: str
    text: str
    language: str | None
    other: Mapping[str, Any]
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


class Delete(NamedTuple):
    """A line that takes a document out of the index: ``{"_op": "delete", "_id": "x"}``."""

    id: str


@dataclass(frozen=True)
class Update:
    """A line that changes some fields of a document: ``{"_op": "update", "_id": "x", "price": 5}``.

    Attributes:
        id: the document's ``_id``.
        texts: those of the text fields that it gives; "" removes one.
        told: whether it says something of the language.
        language: as ``Document`` has it; None has it detected anew.
        other: every other field that it gives, each in place of the whole one that is there; None removes it.
        embedding: as ``Document`` has it.
    """

    id: str
    texts: Mapping[str, str]
    told: bool
    language: str | None
    other: Mapping[str, Any]
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


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


def parse_object(line: bytes) -> dict[str, Any]:
    """The fields of one line.

    Raises:
        InvalidDocument: it is no JSON, or no object.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidDocument(f"not valid JSON ({error.msg} at character {error.pos + 1}).", "invalid_json") from None
    if not isinstance(fields, dict):
        raise InvalidDocument(f"must be a JSON object with a text, but is {json_type(fields)}.")
    return fields


def parse_fields(fields: Mapping[str, Any], embeddings: Embeddings = "refused") -> Document | Delete | Update:
    """The fields of one line as a document, or as the deletion or update of one.

    Args:
        fields: as JSON has them; ``embedding`` may be an array, shape (dimension,).
        embeddings: what becomes of a vector that comes with it.

    Raises:
        InvalidDocument: what is wrong and what should be there.
    """
    operation = fields.get(OPERATION)
    if operation is not None:
        _require_operation(operation, fields)
    if operation == "delete":
        return Delete(id_field(fields))
    for name in fields:
        # One that the server refuses, or that means one of our own fields.
        if fault := _name_fault(name):
            raise InvalidDocument(fault)
    group = fields.get("group")
    if not isinstance(group, str | int | None):
        raise InvalidDocument(f"the field 'group' must be a string, but is {json_type(group)}.")
    title, text = string_field(fields, "title"), string_field(fields, "text")
    other = {name: value for name, value in fields.items() if name not in KNOWN_FIELDS}
    if any(isinstance(value, dict | list) for value in other.values()):
        require_shallow([other])
    if operation == "update":
        return _update(fields, {"title": title, "text": text}, other, embeddings)
    if not title.strip() and not text.strip():
        raise InvalidDocument("has neither a text nor a title.")
    return Document(id_field(fields), title, text, language_field(fields), other, _embedding(fields, embeddings))


def _require_operation(operation: object, fields: Mapping[str, Any]) -> None:
    if operation not in ("index", "update", "delete"):
        raise InvalidDocument("the field '_op' must be 'index', 'update' or 'delete', or be left out.")
    if operation != "index" and fields.get("_id") in (None, ""):
        raise InvalidDocument(f"a line with '_op': '{operation}' needs the '_id' of the document.")


def _update(
    fields: Mapping[str, Any], texts: Mapping[str, str], other: Mapping[str, Any], embeddings: Embeddings
) -> Update:
    if not fields.keys() - {"_id", OPERATION}:
        raise InvalidDocument("a line with '_op': 'update' needs a field to change.")
    if embeddings == "needed" and fields.get(EMBEDDING) is None:
        # What the document has stays, unless its text changes.
        embeddings = "ignored"
    given = {name: text for name, text in texts.items() if name in fields}
    told, language = "language" in fields, language_field(fields)
    return Update(id_field(fields), given, told, language, other, _embedding(fields, embeddings))


def _embedding(fields: Mapping[str, Any], embeddings: Embeddings) -> NDArray[np.float32] | None:
    given = fields.get(EMBEDDING)
    if embeddings == "ignored" or (embeddings == "refused" and given is None):
        return None
    if embeddings == "refused":
        problem = "has an 'embedding', which only --encoder given uses; choose that, or leave the field out"
    elif given is None:
        problem = "has no 'embedding', which --encoder given needs; add one"
    else:
        return parse_embedding(given)
    raise InvalidDocument(f"the document {problem}.", "invalid_embedding")


class InvalidRow(NamedTuple):
    """A line that cannot be used.

    Attributes:
        type: one word for programs: ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
        reason: a sentence that says what is wrong and what should be there, but not where.
        id: the document's ``_id``, where that is known.
    """

    type: str
    reason: str
    id: str | None = None


class SourceRow(NamedTuple):
    """One line of a corpus, or one row.

    Attributes:
        line: where it is, counted from 1.
        content: what it holds.
        original: the line without its line break; or the fields of the row, which orjson writes as JSON with
            ``OPT_SERIALIZE_NUMPY``.
    """

    line: int
    content: Document | Delete | Update | InvalidRow
    original: Original


class DocumentSource(Protocol):
    """A corpus that is open for reading; its first lines were found to hold a document.

    Attributes:
        shown: how messages name it.
        resumable: whether it can be read again, and is then the same; not so for standard input and pipes, and if
            nothing else is said.
        total: how many lines or rows it has, blank lines included; None where only reading it tells.
        content: SHA-256 of its bytes before compression, in hexadecimal; None where only reading it tells.
        vector_spec: what its first lines tell of the vectors that it brings; None where it brings none.
    """

    shown: str
    resumable: bool = False
    total: int | None = None
    content: str | None = None
    vector_spec: VectorSpec | None

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The lines in their order; blank ones are passed over.

        Args:
            skip: numbers of lines that are passed over without a look at what they hold.

        Raises:
            UsageError: the input is damaged, so that nothing more can be read from it.
            LangshiftError: it was read before, and can be read only once.
        """


#: How many lines tell whether an input holds documents, and what vectors it brings; at most so many bytes of them,
#: since those of a pipe are kept meanwhile.
SNIFFED_LINES = 1000
_SNIFFED_BYTES = 64 << 20


@dataclass
class Parser:
    """Makes documents of lines and rows.

    Attributes:
        embeddings: what becomes of vectors that come with documents.
        dimension: the one that all vectors must have; None while nobody knows.
    """

    embeddings: Embeddings
    dimension: int | None = None

    def line(self, numbered: tuple[int, bytes]) -> SourceRow:
        """A line of JSON, of which the number is known."""
        number, line = numbered
        return SourceRow(number, self._content(lambda: parse_object(line)), line)

    def row(self, number: int, fields: Mapping[str, Any]) -> SourceRow:
        """A row, of which the fields are known."""
        return SourceRow(number, self._content(lambda: fields), fields)

    def _content(self, fields: Callable[[], Mapping[str, Any]]) -> Document | Delete | Update | InvalidRow:
        try:
            content = parse_fields(fields(), self.embeddings)
            if self.dimension is None or isinstance(content, Delete):
                return content
            if content.embedding is not None:
                require_dimension(content.embedding, self.dimension)
        except InvalidDocument as error:
            return InvalidRow(error.type, error.reason)
        return content

    def sniff(self, first: Iterable[SourceRow], shown: str, unit: str = "line") -> VectorSpec | None:
        """Look whether an input holds documents, and what vectors they bring: those of the most frequent dimension.

        All that are made from now on must have that dimension.

        Args:
            first: its first lines or rows; more than are looked at may follow.
            shown: how messages name it.
            unit: what messages call a line.

        Raises:
            UsageError: there is none, or none of them can be used: what is wrong with the very first.
        """
        vectors: list[NDArray[np.float32]] = []
        wrong, sound = None, False
        for line, content, _ in islice(first, SNIFFED_LINES):
            if isinstance(content, InvalidRow):
                wrong = wrong or f"{shown}, {unit} {line}: {content.reason}"
                continue
            sound = True
            if not isinstance(content, Delete) and content.embedding is not None:
                vectors.append(content.embedding)
        if not sound:
            raise UsageError(wrong or f"{shown} contains no documents.")
        if not vectors:
            return None
        # A single vector of another model must not turn all its neighbours away.
        ((self.dimension, _),) = Counter(map(len, vectors)).most_common(1)
        alike = [vector for vector in vectors if len(vector) == self.dimension]
        return VectorSpec(self.dimension, have_norm_1(np.stack(alike)))


def first_lines(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The first lines of an input, as far as one looks before anything is begun."""
    size = 0
    for count, (number, line) in enumerate(lines, start=1):
        yield number, line
        size += len(line)
        if count == SNIFFED_LINES or size > _SNIFFED_BYTES:
            return
