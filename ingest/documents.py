"""Documents: one line of ``corpus.jsonl``, parsed strictly; and the operation that it becomes."""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders.base import VectorSpec
from langshift.debias.encoders.sparse import TokenWeights, parse_weights
from langshift.errors import UsageError
from langshift.files import LineNumbers, not_utf8
from langshift.languages import UNDETERMINED, names_none, parse_tag
from langshift.normal_form import normal_form
from langshift.plugin.index_body import RESERVED_FIELDS, FieldTypes
from langshift.plugin.inventory import TranslatedPages
from langshift.plugin.metadata import CHUNK, PARENT, TEXT_FIELDS, USUAL, FieldNames, chunk_id, value_at
from langshift.plugin.stored_vector import parse_vector
from langshift.wording import beginning

EMBEDDING = "embedding"
OPERATION = "_op"
_OPERATIONS = (None, "index", "update", "delete")
_LONGEST_ID = 512  # bytes, the server's limit
_LONGEST_ORDINAL = len(chunk_id("", 9_999_999))  # of a text of 100 MB
_LONGEST_TAG = 60  # characters; no tag of a language is longer
_tag = lru_cache(1024)(parse_tag)
# What does not go to the index as it came.
_USED_UP = {"_id", "language", EMBEDDING, OPERATION}
# Fields of OpenSearch itself, which no document may bring.
_METADATA = {
    *("_index", "_source", "_routing", "_field_names", "_ignored", "_nested_path", "_doc_count", "_seq_no", "_version"),
    *("_primary_term", "_size", "_type", "_uid", "_feature", "_data_stream_timestamp", "_tier"),
}


class InvalidDocument(Exception):
    """A line that is no document.

    Attributes:
        type: one word for programs, such as ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
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


def name_fault(
    name: str, fields: tuple[str, ...] = (*TEXT_FIELDS, "group"), reserved: tuple[str, ...] = RESERVED_FIELDS
) -> str | None:
    """Why a document can have no field of a name; None where it can.

    Args:
        name: a path with dots.
        fields: what the index maps beside langshift's own, which can hold no object.
        reserved: what langshift itself writes into every document.
    """
    parts = name.split(".")
    if not all(part.strip() for part in parts) or name in _METADATA:
        return f"OpenSearch does not accept a field named {beginning(name)!r}; rename it."
    outer = tuple(accumulate(parts[:-1], "{}.{}".format))
    if (name in reserved and name != EMBEDDING) or any(one in (*reserved, *_USED_UP, *fields) for one in outer):
        return f"the field name {beginning(name)!r} is reserved for langshift; rename it."
    return None


def _string(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidDocument(f"the field {name!r} must be a string, but is {json_type(value)}.")
    return value


def _given_id(values: Mapping[str, Any], names: Sequence[str], longest: int = _LONGEST_ID) -> str | None:
    """The first of some fields that has a value."""
    for name in names:
        given = values.get(name)
        if given is None or given == "":
            continue
        if isinstance(given, bool) or not isinstance(given, str | int):
            kinds, shown = "a string", json_type(given)
            if name != "_id":
                kinds, shown = "a string or an integer", str(given) if isinstance(given, float) else shown
            raise InvalidDocument(f"the field {name!r} must be {kinds}, but is {shown}.")
        identifier = str(given)
        if len(identifier.encode()) > longest:
            rest = "" if longest == _LONGEST_ID else ", which leaves no room for the numbers of its chunks"
            raise InvalidDocument(f"the {name!r} is longer than {longest} bytes{rest}.")
        return identifier
    return None


def _content_id(fields: Mapping[str, Any], weights: str | None) -> str:
    # The same content gets the same id, whatever model made its vector: writing it twice never doubles it.
    content = {name: value for name, value in fields.items() if name not in (EMBEDDING, OPERATION, weights)}
    return hashlib.sha256(_shallow_json(content, orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def language_field(fields: Mapping[str, Any]) -> str | None:
    """The tag that a document names, ``und``, or None where it names none, be it by a tag such as ``x-default``.

    Raises:
        InvalidDocument: what it names is no language.
    """
    given = _string(fields.get("language"), "language").strip()
    tag = _tag_or_und(given) if given else None
    if given and tag is None and not names_none(given):
        raise InvalidDocument(
            f"{beginning(given)!r} is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
            "or leave the field out to have it detected."
        )
    return tag


def _tag_or_und(given: str) -> str | None:
    if given.lower() == UNDETERMINED:
        return UNDETERMINED
    return _tag(given) if len(given) <= _LONGEST_TAG else None


def _declared(values: Mapping[str, Any], names: Sequence[str]) -> tuple[str | None, str | None]:
    """The tag that the first of some fields names that names one; and the first value that is none, with its field."""
    found, wrong = None, None
    for name in names:
        given = values.get(name)
        given = given[0] if isinstance(given, list) and len(given) == 1 else given
        if given is None or (isinstance(given, str) and not given.strip()):
            continue
        tag = _tag_or_und(given.strip()) if isinstance(given, str) else None
        if tag is None:
            wrong = wrong or f"{repr(beginning(given)) if isinstance(given, str) else json_type(given)} in {name}"
        elif tag != UNDETERMINED:
            return tag, wrong
        else:
            found = tag
    return found, wrong


def _shallow_json(value: object, option: int) -> bytes:
    """JSON, refused where it is nested so deep that it can be read but not written again."""
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:
        raise InvalidDocument("is nested too deeply: OpenSearch accepts at most 20 levels of objects.") from None


def parse_embedding(value: Any) -> NDArray[np.float32]:  # noqa: ANN401 - any JSON value
    """The field ``embedding`` of a document or query as a vector.

    Args:
        value: a list of numbers, as JSON has them; base64 of little-endian 32-bit floats; or an array, shape
            (dimension,), of integers or floats.

    Returns:
        The vector, shape (dimension,), float32; it may be read-only.

    Raises:
        InvalidDocument: what is wrong and what should be there.
    """
    if isinstance(value, str):
        value = parse_vector(value)
        if value is None:
            raise _no_vector("but is a string that is not base64 of little-endian 32-bit floats")
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
        text: may be empty where there is a title; of several fields, all joined by spaces.
        language: BCP 47 tag that the document brought (``zh-TW``), ``und``, or None where it brought none.
        other: every other field, as it came.
        embedding: the vector that came with it, shape (dimension,), float32; None where none is wanted.
        texts: field -> text, where fields have names of their own; else None.
        no_tag: what it gives as its language and is none, with the field; None where there is no such thing.
        weights: the weights of tokens that came with it; None where none are wanted.
    """

    id: str
    title: str
    text: str
    language: str | None
    other: Mapping[str, Any]
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    texts: Mapping[str, str] | None = None
    no_tag: str | None = None
    weights: TokenWeights | None = field(default=None, compare=False, repr=False)


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


def parse_object(line: bytes) -> dict[str, Any]:
    """The fields of one line.

    Raises:
        InvalidDocument: it is no JSON, or no object.
    """
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if fault := not_utf8(line):
            raise InvalidDocument(f"{fault}.", "invalid_json") from None
        raise InvalidDocument(f"not valid JSON ({error.msg} at character {error.pos + 1}).", "invalid_json") from None
    if not isinstance(fields, dict):
        raise InvalidDocument(f"must be a JSON object with a text, but is {json_type(fields)}.")
    return fields


def exact_object(line: bytes) -> dict[str, Any]:
    """The fields of one line, none of them rounded.

    Raises:
        InvalidDocument: it is no JSON, or no object, or has an integer beyond 64 bits, of which orjson makes a float.
    """
    fields = parse_object(line)
    values = [value for name, value in fields.items() if type(value) in _LOOKED_AT and name != EMBEDDING]
    for value in values:
        if type(value) is dict:
            values += value.values()
        elif type(value) is list:
            values += value
        elif type(value) is float and not -_MOST < value < _MOST:
            # It may have been written with an exponent.
            with suppress(RecursionError):
                json.loads(line, parse_int=_require_64_bits)
            break
    return fields


_LOOKED_AT = {float, dict, list}
_MOST = 2.0**63


def _require_64_bits(digits: str) -> None:
    if len(digits) > len(str(-(2**63))) or not -(2**63) <= int(digits) < 2**64:
        raise InvalidDocument(f"the integer {beginning(digits)!r} is too large to be stored exactly; make it a string.")


class Columns:
    """Which fields of a line a document is made of; what is the same for all lines is worked out once.

    Args:
        fields: the names of the fields in the index.
        weighted: whether documents bring the weights of tokens that the index keeps.
    """

    def __init__(self, fields: FieldNames = USUAL, *, weighted: bool = False) -> None:
        self.of_their_own = fields.by_language
        self.ids = ("_id",) if fields.id is None else (fields.id, "_id")
        self.texts, self.title, self.group = fields.text_fields, fields.title_field or "", fields.group
        # One that is declared elsewhere counts before.
        self.languages = tuple(filter(None, (fields.declared_language, "language")))
        self.weights = fields.sparse if weighted else None
        brought = tuple(filter(None, (self.weights,)))
        mapped = (*self.texts, self.group, *self.languages[:-1], *brought)
        made = [name for name in (fields.sparse, fields.tokens) if name and name not in brought]
        reserved = (*RESERVED_FIELDS, *made, *(() if fields.chunking is None else (PARENT, CHUNK)))
        self.longest_id = _LONGEST_ID if fields.chunking is None else _LONGEST_ID - _LONGEST_ORDINAL
        # All lines of a corpus have the same few names.
        self.fault = lru_cache(1024)(partial(name_fault, fields=mapped, reserved=reserved))
        self.paths = [name for name in (*mapped, *self.ids) if "." in name]
        # Of a text with a path, the entry replaces what is inside.
        self.used_up = {*_USED_UP, *brought, *(name for name in self.texts if "." not in name)}
        named = " or ".join(", ".join(self.texts).rsplit(", ", 1))
        self.no_text = f"has no text in {named}." if self.of_their_own else "has neither a text nor a title."


_USUAL_COLUMNS = Columns()


def parse_fields(
    fields: Mapping[str, Any], embeddings: Embeddings = "refused", columns: Columns = _USUAL_COLUMNS
) -> Document | Delete | Update:
    """The fields of one line as a document, or as the deletion or update of one.

    Args:
        fields: as JSON has them; ``embedding`` may be an array, shape (dimension,).
        embeddings: what becomes of a vector that comes with it.
        columns: which of them are what.

    Raises:
        InvalidDocument: what is wrong and what should be there.
    """
    values = {**fields, **{path: value_at(fields, path) for path in columns.paths}} if columns.paths else fields
    operation = fields.get(OPERATION)
    if operation not in _OPERATIONS:
        raise InvalidDocument("the field '_op' must be 'index', 'update' or 'delete', or be left out.")
    given = _given_id(values, columns.ids, columns.longest_id)
    if operation in ("update", "delete") and given is None:
        raise InvalidDocument(f"a line with '_op': '{operation}' needs the {columns.ids[0]!r} of the document.")
    if operation == "delete" and given is not None:
        return Delete(given)
    _require_acceptable(fields, values.get(columns.group), columns)
    texts = {name: normal_form(_text(values.get(name), name, columns)) for name in columns.texts}
    other = {name: value for name, value in fields.items() if name not in columns.used_up}
    if any(isinstance(value, dict | list) for value in other.values()):
        _shallow_json([other], orjson.OPT_SERIALIZE_NUMPY)
    if operation == "update":
        assert given is not None  # noqa: S101 - or it was refused
        return _update(given, fields, values, texts, other, embeddings, columns)
    if not any(map(str.strip, texts.values())):
        raise InvalidDocument(columns.no_text)
    identifier, weights = given or _content_id(fields, columns.weights), _weights(fields, columns)
    embedding = _embedding(fields, embeddings)
    if not columns.of_their_own:
        language = language_field(fields)
        no_tag = None if language else _declared(fields, ("language",))[1]
        title, text = texts["title"], texts["text"]
        return Document(identifier, title, text, language, other, embedding, no_tag=no_tag, weights=weights)
    title = texts.get(columns.title, "")
    text = " ".join([text for name, text in texts.items() if text and name != columns.title])
    language, no_tag = _declared(values, columns.languages)
    return Document(identifier, title, text, language, other, embedding, texts, no_tag, weights)


def _require_acceptable(names: Iterable[str], group: object, columns: Columns) -> None:
    for name in names:
        # One that the server refuses, or that means one of our own fields.
        if fault := columns.fault(name):
            raise InvalidDocument(fault)
    if not isinstance(group, str | int | None):
        raise InvalidDocument(f"the field {columns.group!r} must be a string, but is {json_type(group)}.")


def _text(value: object, name: str, columns: Columns) -> str:
    if isinstance(value, str):
        return value
    if columns.of_their_own and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return _string(value, name)


def _update(
    identifier: str,
    fields: Mapping[str, Any],
    values: Mapping[str, Any],
    texts: Mapping[str, str],
    other: Mapping[str, Any],
    embeddings: Embeddings,
    columns: Columns,
) -> Update:
    changed = fields.keys() - {*columns.ids, OPERATION}
    if not changed:
        raise InvalidDocument("a line with '_op': 'update' needs a field to change.")
    if embeddings == "needed" and fields.get(EMBEDDING) is None:
        # What the document has stays, unless its text changes.
        embeddings = "ignored"

    def is_given(name: str) -> bool:
        # A field that is given replaces the whole one that is there, with all that is inside.
        return name in changed or name.partition(".")[0] in changed

    if columns.weights is not None and columns.weights in changed:
        other = {**other, columns.weights: _weights(fields, columns) or None}
    given = {name: text for name, text in texts.items() if is_given(name)}
    told = any(map(is_given, columns.languages))
    language = _declared(values, columns.languages)[0] if columns.of_their_own else language_field(fields)
    return Update(identifier, given, told, language, other, _embedding(fields, embeddings))


def _weights(fields: Mapping[str, Any], columns: Columns) -> TokenWeights | None:
    """The weights of tokens that a document brings; None where none are wanted."""
    name = columns.weights
    if name is None:
        return None
    why = f"the document has no {name!r}, which --sparse given needs; add one, or {{}} for no weights."
    if fields.get(name) is not None:
        try:
            return parse_weights(fields[name])
        except ValueError as error:
            why = f"the field {name!r} {error}."
    raise InvalidDocument(why, "invalid_weights")


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
        type: one word for programs, such as ``invalid_json``, ``invalid_document`` or ``invalid_embedding``.
        reason: a sentence that says what is wrong and what should be there, but not where.
        id: the document's ``_id``, where that is known.
    """

    type: str
    reason: str
    id: str | None = None


#: A line as the input had it: its bytes, or the fields of a row where the input has no lines.
Original = bytes | Mapping[str, Any]


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

    @property
    def size(self) -> int:
        """How long it is, in bytes; about as long, where it is a row."""
        if isinstance(self.original, bytes):
            return len(self.original)
        return sum(len(value) for value in self.original.values() if type(value) in _SIZED)


_SIZED = {str, list}


class DocumentSource(Protocol):
    """A corpus that is open for reading; its first lines were found to hold a document.

    Attributes:
        shown: how messages name it.
        resumable: whether it can be read again, and is then the same; not so for standard input and pipes, and if
            nothing else is said.
        total: how many lines or rows it has, blank lines included; None where only reading it tells.
        content: SHA-256 of its bytes before compression, in hexadecimal; None where only reading it tells.
        vector_spec: what its first lines tell of the vectors that it brings; None where it brings none.
        hint: sentences on fields that look like a text or the like and are not used as one, and on those that were
            named and that no document has; None where there are none.
        field_types: what they tell of the types of other fields.
        document_bytes: how many bytes the texts and other fields of a document have, on average over some from all over
            it; None where that is not known.
    """

    shown: str
    resumable: bool = False
    total: int | None = None
    content: str | None = None
    vector_spec: VectorSpec | None
    hint: str | None = None
    field_types: FieldTypes | None = None
    document_bytes: float | None = None

    def read(self, skip: LineNumbers) -> Iterator[SourceRow]:
        """The lines in their order; blank ones are passed over.

        Args:
            skip: numbers of lines that are passed over without a look at what they hold.

        Raises:
            UsageError: the input is damaged, so that nothing more can be read from it.
            ChangedError: it is not what ``total`` and ``content`` say.
            LangshiftError: it was read before, and can be read only once.
        """

    def translations(self, language_of: Callable[[Document], str]) -> TranslatedPages | None:  # noqa: ARG002 - for others
        """How far it is translated; ``language_of`` gives a document's language, as the field ``language`` has it.

        Returns:
            None where nothing is, and where only reading it tells.
        """
        return None

    def place(self, line: int) -> tuple[str, int]:
        """Where a line is: how messages name its file, and its number there."""
        return self.shown, line

    def require_unchanged(self) -> None:
        """Refuse an input that has changed since it was opened; for an input that cannot, nothing is to be done.

        Raises:
            ChangedError: it has.
        """
        return
