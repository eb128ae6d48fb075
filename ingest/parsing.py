"""Makes documents of lines and rows, and looks at the first ones: whether they are any, and which fields they have."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.encoders.base import VectorSpec, have_norm_1
from langshift.errors import UsageError
from langshift.files import CutLine, too_long
from langshift.ingest.documents import (
    OPERATION,
    Columns,
    Delete,
    Document,
    Embeddings,
    InvalidDocument,
    InvalidRow,
    Original,
    SourceRow,
    Update,
    exact_object,
    parse_fields,
    require_dimension,
)
from langshift.languages import parse_tag
from langshift.plugin.index_body import FieldTypes
from langshift.plugin.metadata import TEXT_FIELDS, USUAL, FieldNames, value_at
from langshift.wording import join_words

#: How many lines tell whether an input holds documents, and what vectors it brings.
SNIFFED_LINES = 1000


@dataclass
class Parser:
    """Makes documents of lines and rows.

    Attributes:
        embeddings: what becomes of vectors that come with documents.
        dimension: the one that all vectors must have; None while nobody knows.
        fields: the names of the documents' fields.
        weighted: whether documents bring the weights of tokens that the index keeps.
        field_types: what ``sniff`` has seen of the documents' other fields.
    """

    embeddings: Embeddings
    dimension: int | None = None
    fields: FieldNames = USUAL
    weighted: bool = False

    def __post_init__(self) -> None:
        self.columns = Columns(self.fields, weighted=self.weighted)
        self.field_types = FieldTypes(self.fields)

    def line(self, numbered: tuple[int, bytes]) -> SourceRow:
        """A line of JSON, of which the number is known."""
        number, line = numbered
        if isinstance(line, CutLine):
            return SourceRow(number, InvalidRow("invalid_document", f"{too_long()}; only its beginning is kept."), line)
        return SourceRow(number, self._content(lambda: exact_object(line)), line)

    def row(self, number: int, fields: Mapping[str, Any]) -> SourceRow:
        """A row, of which the fields are known."""
        return SourceRow(number, self._content(lambda: fields), fields)

    def _content(self, fields: Callable[[], Mapping[str, Any]]) -> Document | Delete | Update | InvalidRow:
        try:
            content = parse_fields(fields(), self.embeddings, self.columns)
            if self.dimension is None or isinstance(content, Delete):
                return content
            if content.embedding is not None:
                require_dimension(content.embedding, self.dimension)
        except InvalidDocument as error:
            return InvalidRow(error.type, error.reason)
        return content


class Sniffer:
    """Looks whether an input holds documents, what vectors they bring, and what fields of theirs nobody has named.

    Args:
        parser: makes its lines.
        named: fields that a document must have, each with the option that names it.
    """

    def __init__(self, parser: Parser, named: Mapping[str, str]) -> None:
        self._parser, self._absent = parser, dict(named)
        self._vectors: list[NDArray[np.float32]] = []
        self._originals: list[Original] = []
        self._sound = self._looked_at = False

    def look(self, first: Iterable[SourceRow], shown: str, unit: str = "line", most: int = SNIFFED_LINES) -> None:
        """Look at the first lines of a file.

        Args:
            first: its first lines or rows; more than are looked at may follow.
            shown: how messages name it.
            unit: what messages call a line.
            most: after how many lines one that is a document is enough.

        Raises:
            UsageError: it has lines, and none of the first 1,000 can be used: what is wrong with the very first.
        """
        wrong, sound = None, False
        for count, (line, content, original) in enumerate(islice(first, SNIFFED_LINES)):
            if sound and count >= most:
                break
            if len(self._originals) < _LOOKED_AT:
                self._originals.append(original)
            if self._absent and (fields := _object(original)) is not None and OPERATION not in fields:
                absent = self._absent.items()
                self._absent = {name: option for name, option in absent if value_at(fields, name) is None}
                self._looked_at = True
            if isinstance(content, InvalidRow):
                wrong = wrong or f"{shown}, {unit} {line}: {content.reason}"
                continue
            sound = self._sound = True
            if isinstance(content, Delete):
                continue
            self._parser.field_types.add(content.other)
            if content.embedding is not None:
                self._vectors.append(content.embedding)
        if wrong and not sound and not (self._absent and self._looked_at):
            unused = unused_fields(self._originals, self._parser.fields)
            advice = f" {unused.advice}" if wrong.endswith(self._parser.columns.no_text) and unused else ""
            raise UsageError(f"{wrong}{advice}")

    def conclude(self, shown: str, verb: str = "contains") -> tuple[VectorSpec | None, str | None]:
        """Conclude; all vectors that the parser reads from now on must have the dimension that most had.

        Args:
            shown: how messages name the whole input.
            verb: what they say that it does.

        Returns:
            What the vectors are, None where there are none; and a sentence on fields that look like a text or the like
            and are not used as one, None where there are none.

        Raises:
            UsageError: there was no document, or none has a field that was named.
        """
        if self._absent and self._looked_at:
            raise UsageError(_absent(self._absent, self._originals, shown))
        if not self._sound:
            raise UsageError(f"{shown} {verb} no documents.")
        unused = unused_fields(self._originals, self._parser.fields)
        hint = unused.note if unused else None
        if not self._vectors:
            return None, hint
        # A single vector of another model must not turn all its neighbours away.
        ((dimension, _),) = Counter(map(len, self._vectors)).most_common(1)
        self._parser.dimension = dimension
        alike = [vector for vector in self._vectors if len(vector) == dimension]
        return VectorSpec(dimension, have_norm_1(np.stack(alike))), hint


_LOOKED_AT = 100  # lines, for fields that nobody named
_LISTED = 20  # fields in a message
_LONG = 150  # characters, of strings that are texts and not names or labels
# What other systems call what a document is made of.
_OTHER_NAMES = {
    "id": "id uuid doc_id docid",
    "title": "headline name subject heading",
    "text": "body content description summary abstract passage",
    "language": "lang locale language_code lang_code",
    "group": "translation_group group_id translation_of",
}


class UnusedFields(NamedTuple):
    """Fields that look like an id, a title, a text, a language or a group and are not used as one.

    Attributes:
        roles: ``id``, ``title``, ``text``, ``language`` or ``group`` -> the fields for it.
        texts: the text fields that are used.
    """

    roles: Mapping[str, Sequence[str]]
    texts: Sequence[str]

    @property
    def advice(self) -> str:
        """What to do, as a sentence."""
        return f"If {_the(self._of(*self.roles))} {self._meant}, give {self._options}."

    @property
    def note(self) -> str:
        """What becomes of them, and what to do, as a sentence."""
        words, others = self._of("title", "text"), self._of("id", "language", "group")
        parts = [f"{_the(words)} stored but neither encoded nor searched by words"] if words else []
        parts += [f"{_the(others)} stored but not used"] if others else []
        they_are = "they are" if len(words + others) > 1 else "it is"
        sentence = f"{', and '.join(parts)}: give {self._options} if {they_are} {self._meant}."
        return f"{sentence[0].upper()}{sentence[1:]}"

    def _of(self, *roles: str) -> list[str]:
        return [name for role in roles for name in self.roles.get(role, ())]

    @property
    def _options(self) -> str:
        # Who names one text field has to name all.
        named = {**self.roles, **({"text": [*self.texts, *self.roles["text"]]} if "text" in self.roles else {})}
        return " ".join(f"--{role}-field {name}" for role, names in named.items() for name in names)

    @property
    def _meant(self) -> str:
        one, several = ("another text", "other texts") if self.texts else ("the text", "the texts")
        text = several if len(self.roles.get("text", ())) > 1 else one
        return join_words([text if role == "text" else f"the {role}" for role in self.roles])


def _the(names: Sequence[str]) -> str:
    return f"the field{'s' if len(names) > 1 else ''} {join_words(names)} {'are' if len(names) > 1 else 'is'}"


def unused_fields(originals: Iterable[Original], fields: FieldNames) -> UnusedFields | None:
    """Look for fields that have the part of one that is missing; of texts that nobody named, also for more of them.

    Args:
        originals: lines, or the fields of rows.
        fields: the names that are used.
    """
    values: dict[str, list[Any]] = {}
    for original in originals:
        for name, value in _leaves(original):
            values.setdefault(name, []).append(value)
    title = fields.title_field or ""
    used = {
        "id": {fields.id or "_id", "_id"},
        "title": {title},
        "text": {*fields.text_fields} - {title},
        "language": {fields.declared_language or "language", "language"},
        "group": {fields.group},
    }
    texts = [name for name in fields.text_fields if name in values and name != title]
    wanted = [role for role, names in used.items() if names.isdisjoint(values)]
    if texts and not fields.by_language:
        wanted.append("text")
    roles: dict[str, list[str]] = {}
    for role, others in _OTHER_NAMES.items():
        for name in values if role in wanted else ():
            named = name.rpartition(".")[2].lower() in others.split()
            if not any(name in names for names in used.values()) and _fits(role, values[name], named=named):
                roles.setdefault(role, []).append(name)
    # A document has one id, title, language and group.
    roles = {role: names if role == "text" else names[:1] for role, names in roles.items()}
    taken = {name for role, names in roles.items() if role != "text" for name in names}
    roles["text"] = [name for name in roles.get("text", ()) if name not in taken]
    found = {role: roles[role] for role in _OTHER_NAMES if roles.get(role)}
    return UnusedFields(found, texts) if found else None


def own_fields(fields: FieldNames) -> dict[str, str]:
    """Each field that is not a usual one, with the option that names it."""
    return {name: option for name, option in fields.named_by() if name not in TEXT_FIELDS}


def _absent(absent: Mapping[str, str], originals: Iterable[Original], shown: str) -> str:
    """That no document has a field that was named, and which there are."""
    there = list(dict.fromkeys(name for original in originals for name, _ in _leaves(original) if name != OPERATION))
    more = [f"{len(there) - _LISTED:,} more"] if len(there) > _LISTED else []
    return (
        f"None of the first documents of {shown} has {' or '.join(absent)}, which "
        f"{join_words(list(dict.fromkeys(absent.values())))} name{'s' * (len(absent) == 1)}: they have "
        f"{join_words([*there[:_LISTED], *more])}."
    )


def _object(original: Original) -> Mapping[str, Any] | None:
    """The fields of a line or a row; None where it is no JSON object."""
    try:
        line = orjson.loads(original) if isinstance(original, bytes) else original
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, Mapping) else None


def _leaves(original: Original) -> Iterator[tuple[str, Any]]:
    """The fields of a line with their values, those within an object, too."""
    fields = _object(original) or {}
    for name, value in fields.items() if fields.get(OPERATION) != "delete" else ():
        for inner, one in value.items() if isinstance(value, Mapping) else (("", value),):
            if one is not None:
                yield f"{name}.{inner}".rstrip("."), one


def _fits(role: str, values: Sequence[Any], *, named: bool) -> bool:
    strings = [value for value in values if isinstance(value, str)]
    if role in ("id", "group"):
        return named and all(isinstance(value, str | int) for value in values)
    if role == "language":
        return named and 2 * sum(parse_tag(one) is not None for one in strings) >= len(values)
    long = role == "text" and sum(len(one) for one in strings if " " in one) >= _LONG * len(values)
    return len(strings) == len(values) and (named or long) and any(strings)
