"""Filters as a person gives them, read, checked against an index's fields, and made clauses of a query."""

import csv
import math
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import UsageError
from langshift.files import is_text, load_json
from langshift.languages import require_tag, text_language
from langshift.normal_form import canonical_forms
from langshift.plugin.metadata import PARENT
from langshift.plugin.versions import IndexInfo
from langshift.server_errors import reason
from langshift.wording import beginning, escaped

#: One value of a field.
Value = str | int | float | bool | date
#: What a field must be: a value, several of which any will do, or a mapping of ``gt``, ``gte``, ``lt``, ``lte``,
#: ``in``, ``not`` and ``exists``, all of which must hold.
Condition = Value | Sequence[Value] | Mapping[str, Any]
#: Field of the index -> what it must be; ``language`` is by language.
Filters = Mapping[str, Condition]
#: Queries in OpenSearch's own DSL, all of which must match.
DslFilter = Mapping[str, Any] | Sequence[Mapping[str, Any]]
NO_FILTERS: Final[Filters] = {}

_RANGE: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPERATORS: Final = {text: name for name, text in _RANGE.items()} | {"=": "in", "!=": "not"}
_FORM: Final = re.compile(r"([^=!<>]+)(!=|>=|<=|=|>|<)(.+)", re.DOTALL)
# A refused filter shows so many of its values.
_SHOWN = 3
_TEXTS = {"text", "match_only_text", "search_as_you_type"}
# What else has no values of its own that a query could name.
_NO_VALUES = {"object", "nested", "knn_vector"}


class FilterPart(NamedTuple):
    """One of the conditions that all must hold.

    Attributes:
        text: as a person would write it, shortened, such as ``year>=1990``.
        clause: of a query.
    """

    text: str
    clause: Mapping[str, Any]


@dataclass(frozen=True)
class IndexFilter:
    """Filters that were checked against an index.

    Attributes:
        parts: all of them must hold.
        languages: primary tags of the languages that are asked for; None where it is not by language.
        clauses: those of a query, all of which a hit must match.
    """

    parts: tuple[FilterPart, ...] = ()
    languages: tuple[str, ...] | None = None
    clauses: list[Mapping[str, Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the clauses out of the parts."""
        object.__setattr__(self, "clauses", [part.clause for part in self.parts])


NO_FILTER: Final = IndexFilter()


class ReadFilters(NamedTuple):
    """What filters in writing say; see ``SearchArguments``."""

    filters: dict[str, dict[str, Any]]
    dsl_filter: list[dict[str, Any]]


def read_filters(texts: Iterable[str]) -> ReadFilters:
    """Read filters such as ``language=th,de``, ``year!=1990``, ``year>=1990``, ``isbn=*`` or ``{"prefix": ...}``.

    Alternatives of one field may be given together or one after another; all else must hold at once.

    Raises:
        UsageError: one is of another form, says again what was said, or is not UTF-8 text.
    """
    filters: dict[str, dict[str, Any]] = {}
    queries: list[dict[str, Any]] = []
    for text in texts:
        if not is_text(text):
            raise UsageError("A filter is not UTF-8 text.")
        if text.lstrip().startswith("{"):
            queries.append(_read_query(text))
            continue
        form = _FORM.fullmatch(text)
        if form is None:
            raise UsageError(
                f"A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not {text!r}."
            )
        field, operator, value = form[1].strip(), _OPERATORS[form[2]], form[3]
        conditions = filters.setdefault(field, {})
        if operator in {"in", "not"} and value != "*":
            conditions.setdefault(operator, []).extend(_read_values(text, value))
            continue
        operator, given = ("exists", form[2] == "=") if operator in {"in", "not"} else (operator, value)
        if operator in conditions:
            raise UsageError(f"The filter {text} contradicts or repeats another one by {field}: give one of them.")
        conditions[operator] = given
    return ReadFilters(filters, queries)


def _read_values(text: str, given: str) -> list[str]:
    """The values of a list as in CSV, where a value with a comma stands in quotation marks."""
    try:
        values = next(csv.reader([given], strict=True))
    except (csv.Error, StopIteration):
        values = []
    if not values or not all(values):
        raise UsageError(
            f"The filter {text} has an empty value or a quotation mark too few: separate values by commas, and write a "
            'value with a comma as "a, b".'
        )
    return values


def _read_query(text: str) -> dict[str, Any]:
    try:
        return dict(load_json(text.encode()))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"The filter {beginning(text)} is not JSON: {error}.") from None


class FieldCheck:
    """Checks what is asked of an index's fields; a field is asked about once."""

    def __init__(self, client: OpenSearch, index: IndexInfo) -> None:
        self._client, self._index = client, index
        self._known: dict[str, dict[str, Any]] = {}
        self._grouped = False
        fields = index.fields
        group = fields.group_filter
        self._own_names = {"language": fields.language, "group": group, fields.group: group}
        if fields.parent is not None:
            self._own_names |= {PARENT: fields.document_key, fields.parent: fields.document_key}

    def checked(self, filters: Filters, dsl_filter: DslFilter = ()) -> IndexFilter:
        """The filters, by the index's own fields and tags.

        Raises:
            UsageError: a field cannot be filtered by, or what it must be is of no form that there is.
        """
        if not isinstance(filters, Mapping) or not all(isinstance(name, str) for name in filters):
            raise UsageError("filters must map each field to what it must be, such as {'year': {'gte': 1990}}.")
        parts: list[FilterPart] = []
        languages: tuple[str, ...] | None = None
        for name, given in filters.items():
            conditions = _conditions(name, given)
            if not is_text(name):
                raise UsageError("A filter is not UTF-8 text.")
            if self._own_names.get(name, name) == self._index.fields.language:
                conditions = {kind: _tags(value) for kind, value in conditions.items()}
                if (asked := conditions.get("in")) is not None:
                    languages = tuple(tag for tag in asked if languages is None or tag in languages)
            parts += self._parts(name, conditions)
        queries = [dsl_filter] if isinstance(dsl_filter, Mapping) else dsl_filter
        if not isinstance(queries, list | tuple) or not all(isinstance(one, Mapping) for one in queries):
            raise UsageError("dsl_filter must be a query in OpenSearch's DSL or a list of them, as JSON has it.")
        return IndexFilter((*parts, *map(_query_part, queries)), languages)

    def _parts(self, name: str, conditions: Mapping[str, Any]) -> list[FilterPart]:
        """A part for each condition; ranges together are one."""
        conditions, parts = dict(conditions), list[FilterPart]()
        if (exists := conditions.pop("exists", None)) is not None:
            field = self._own_names.get(name, name)
            self._capabilities(name, field)
            parts.append(_part(name, "=" if exists else "!=", "*", {"exists": {"field": field}}))
        for kind, sign in (("in", "="), ("not", "!=")):
            if (values := conditions.pop(kind, None)) is not None:
                # Other fields than texts are kept as they came.
                forms = [form for one in values for form in (canonical_forms(one) if isinstance(one, str) else [one])]
                parts.append(_part(name, sign, _few(values), {"terms": {self.exact(name): forms}}))
        if conditions:
            field = self.exact(name, ordered=True)
            self._require_dates(name, field, conditions)
            text = " and ".join(f"{name}{_RANGE[kind]}{_few([value])}" for kind, value in conditions.items())
            parts.append(FilterPart(text, {"range": {field: conditions}}))
        return parts

    def _require_dates(self, name: str, field: str, conditions: Mapping[str, Any]) -> None:
        """Refuse date arithmetic with what are no dates; strings are compared with any."""
        types = self._capabilities(name, self._own_names.get(name, name))[field]
        if not set(types) & {"date", "date_nanos"} and any(str(one)[:3] == "now" for one in conditions.values()):
            raise UsageError(
                f"Index {self._index.name} has no dates in its field {name!r}, which is of type {', '.join(types)}: "
                f"load the index anew with --date-field {name}."
            )

    def exact(self, name: str, use: str = "filter", *, ordered: bool = False) -> str:
        """The field that holds the values of a field that is named; of a text its view of type keyword.

        Args:
            name: as a person names it.
            use: what for: ``filter``, or ``sort`` and ``count``, which need doc values.
            ordered: whether values are put in order: dates that are kept as they came have a view for that.

        Raises:
            UsageError: there is no such field, or it has no values to be used so.
        """
        field = self._own_names.get(name, name)
        found = self._capabilities(name, field)
        kinds = set(found[field])
        wanted = "keyword" if kinds & _TEXTS else "date" if ordered and kinds == {"keyword"} else ""
        views = [view for view, types in found.items() if view != field and set(types) == {wanted}]
        field = min(views, key=lambda view: (not view.endswith(f".{wanted}"), view), default=field)
        types = found[field]
        kind = ", ".join(sorted(types))
        refusal = f"Index {self._index.name} cannot {use} by its field {name!r}, which is of type {kind}"
        if set(types) & _TEXTS:
            remedy = "name a field of type keyword, or search for its words"
            query = f", or filter by OpenSearch's own DSL, such as {{'match_phrase': {{{name!r}: '…'}}}}"
            raise UsageError(f"{refusal} and holds words, not values: {remedy}{query if use == 'filter' else ''}.")
        if set(types) & _NO_VALUES:
            raise UsageError(f"{refusal} and has no values: name a field inside it, or another one.")
        if use != "filter" and not all(one["aggregatable"] for one in types.values()):
            raise UsageError(f"{refusal} and keeps no doc values: map it with doc_values, or name another field.")
        return field

    def _capabilities(self, name: str, field: str) -> dict[str, Any]:
        """Field -> type -> what the server can do with it, of a field and its views.

        Raises:
            UsageError: there is no such field.
        """
        if field not in self._known:
            # The server takes no longer one.
            asked = f"{field},{field}.*" if field.strip() and len(field) <= 200 else "_"
            found = self._client.field_caps(index=self._index.index, fields=asked)["fields"]
            if field not in found:
                no_field = f"Index {self._index.name} has no field {beginning(name)!r}"
                raise UsageError(f"{no_field}: use language, group or another field that its documents came with.")
            self._known[field] = found
        return self._known[field]

    def require_groups(self) -> None:
        """Refuse to search for groups where the documents of one cannot be asked for; asked about once.

        In an adopted index the field may be a text, or in no mapping at all.

        Raises:
            UsageError: naming the field and its type.
        """
        if self._grouped:
            return
        group = self._index.fields.group_filter
        found = self._client.field_caps(index=self._index.index, fields=group)["fields"].get(group, {})
        unfit = sorted(kind for kind, caps in found.items() if kind in _TEXTS | _NO_VALUES or not caps["searchable"])
        if unfit or not found:
            problem = f"is of type {', '.join(unfit)}" if found else "is not in its mapping"
            raise UsageError(
                f"Index {self._index.name} cannot be searched for one document per group, because its field {group!r} "
                f"{problem}: adopt the old index again, with --group-field naming a keyword field or a text field that "
                "has a keyword view."
            )
        self._grouped = True

    def require_fitting(self, filters: Filters, dsl_filter: DslFilter) -> None:
        """Say of a search that failed whether its filters are why.

        Raises:
            UsageError: a value does not fit its field, or a query cannot be read.
        """
        for part in self.checked(filters, dsl_filter).parts:
            body = {"size": 0, "query": {"bool": {"filter": [part.clause]}}}
            try:
                self._client.search(index=self._index.index, body=body)
            except RequestError as error:
                what = "is no query that the cluster takes" if part.text.startswith("{") else "does not fit its field"
                raise UsageError(escaped(f"The filter {part.text} {what}: {reason(error)}.")) from error


# What queries of clients may be, and have in them: all else runs a script, asks another index, or takes as long as its
# author likes.
_QUERIES: Final = {
    "bool": ("must", "filter", "should", "must_not", "minimum_should_match", "adjust_pure_negative"),
    "constant_score": ("filter",),
    "exists": ("field",),
    "ids": ("values",),
    "match": ("query", "operator", "minimum_should_match", "zero_terms_query", "lenient"),
    "match_all": (),
    "match_phrase": ("query", "zero_terms_query"),
    "nested": ("query", "path", "score_mode", "ignore_unmapped"),
    "prefix": ("value", "case_insensitive"),
    "range": ("gte", "gt", "lte", "lt", "format", "time_zone", "relation"),
    "term": ("value", "case_insensitive"),
    "terms": ("a list of values",),
    "wildcard": ("value", "wildcard", "case_insensitive"),
}
# Of these all stands below the name of a field, where the first may also stand alone.
_OF_FIELD: Final = frozenset(("match", "match_phrase", "prefix", "range", "term", "terms", "wildcard"))
# Each of these goes through all values of its field that match.
_EXPANDING: Final = frozenset(("prefix", "range", "wildcard"))
_DEEPEST, _MOST_QUERIES, _MOST_EXPANDING, _MOST_VALUES, _MOST_WILDCARDS = 10, 100, 20, 10_000, 5
_LONGEST: Final = 1000  # characters


class ClientFilters:
    """Filters of a client, who searches with the operator's rights and beside others."""

    def __init__(self, filters: Filters, dsl_filter: DslFilter = ()) -> None:
        """Refuse what a client may not ask for; whether the rest can be carried out is seen by who does that.

        Raises:
            UsageError: saying what may not be, and what may.
        """
        self._counts = Counter[str]()
        for name, given in filters.items():
            self._count("conditions", _MOST_QUERIES)
            for value in (name, *(given.values() if isinstance(given, Mapping) else [given])):
                for one in value if isinstance(value, list) else [value]:
                    self._value(one)
        for query in [dsl_filter] if isinstance(dsl_filter, Mapping) else dsl_filter:
            self._query(query, _DEEPEST)

    def _query(self, query: object, deeper: int) -> None:
        if not deeper:
            raise UsageError(f"A filter nests its queries more than {_DEEPEST} deep: write it flatter.")
        if not isinstance(query, Mapping) or len(query) != 1:
            raise UsageError(
                'Each query in a filter is an object with one name, such as {"term": {"year": 1990}}: put several into '
                "a bool."
            )
        [(kind, body)] = query.items()
        if kind not in _QUERIES:
            raise UsageError(f"A filter may not use {beginning(kind)!r} here: use {', '.join(_QUERIES)}.")
        self._count("conditions", _MOST_QUERIES)
        if kind in _EXPANDING:
            self._count(f"conditions by {', '.join(sorted(_EXPANDING))}", _MOST_EXPANDING)
        parts = self._below_field(kind, body) if kind in _OF_FIELD else body
        known = (*_QUERIES[kind], "boost")
        for name, value in parts.items() if isinstance(parts, Mapping) else [(str(parts), None)]:
            if name not in known:
                raise UsageError(f"In a filter, {kind} takes {', '.join(known)} here, not {beginning(name)!r}.")
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, Mapping):
                    self._query(one, deeper - 1)
                else:
                    self._value(one, pattern=kind in ("exists", "wildcard") and name != "case_insensitive")

    def _below_field(self, kind: str, body: object) -> Mapping[str, Any]:
        given = body.items() if isinstance(body, Mapping) else ()
        fields = [(name, value) for name, value in given if name != "boost" or isinstance(value, Mapping)]
        if len(fields) != 1:
            raise UsageError(f"In a filter, {kind} is of one field: write one for each, and put them into a bool.")
        name, value = fields[0]
        self._value(name)
        return value if isinstance(value, Mapping) else {_QUERIES[kind][0]: value}

    def _value(self, value: object, *, pattern: bool = False) -> None:
        self._count("values", _MOST_VALUES)
        text = value if isinstance(value, str) else ""
        if len(text) > _LONGEST:
            raise UsageError(f"A value or a name in a filter has more than {_LONGEST:,} characters: shorten it.")
        if pattern and (text[:1] in ("*", "?") or text.count("*") + text.count("?") > _MOST_WILDCARDS):
            rule = f"begin with another character than * and ?, and use at most {_MOST_WILDCARDS} of them"
            raise UsageError(f"The filter {beginning(text)!r} may match too much: {rule}.")

    def _count(self, what: str, most: int) -> None:
        self._counts[what] += 1
        if self._counts[what] > most:
            raise UsageError(f"The filters have more than {most:,} {what}: ask for fewer at once.")


def _conditions(name: str, given: object) -> dict[str, Any]:
    """What a field must be, by kind: lists of values for ``in`` and ``not``, one for all else.

    Raises:
        UsageError: it is of no form that there is.
    """
    conditions = dict(given) if isinstance(given, Mapping) else {"in": given}
    for kind, value in conditions.items():
        if kind in {"in", "not"}:
            conditions[kind] = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    known = conditions and conditions.keys() <= {*_RANGE, "in", "not", "exists"}
    if not known or not all(_fits(kind, value) for kind, value in conditions.items()):
        raise UsageError(
            f"The filter {name!r} takes values, such as ['de', 'th'], or conditions, such as {{'gte': 1990, 'lt': "
            f"2000}}, {{'not': ['x']}} or {{'exists': True}}, not {reprlib.repr(given)}."
        )
    strings = [one for value in conditions.values() for one in (value if isinstance(value, list) else [value])]
    if not all(is_text(one) for one in strings if isinstance(one, str)):
        raise UsageError("A filter is not UTF-8 text.")
    return conditions


def _fits(kind: str, value: object) -> bool:
    if kind == "exists":
        return isinstance(value, bool)
    values = value if isinstance(value, list) else [value]
    return all(isinstance(one, Value) and not (isinstance(one, float) and not math.isfinite(one)) for one in values)


def _tags(value: Any) -> Any:  # noqa: ANN401 - of any kind of condition
    """Languages as their primary tags; of what is no list of these the value itself."""
    return [text_language(require_tag(str(one))) for one in value] if isinstance(value, list) else value


def _part(name: str, sign: str, values: str, clause: Mapping[str, Any]) -> FilterPart:
    """The part for a clause, which must not match where the sign says so."""
    return FilterPart(f"{name}{sign}{values}", {"bool": {"must_not": [clause]}} if sign == "!=" else clause)


def _query_part(query: Mapping[str, Any]) -> FilterPart:
    try:
        text = orjson.dumps(query).decode()
    except TypeError as error:
        raise UsageError(f"The filter {reprlib.repr(dict(query))} cannot be written as JSON: {error}.") from None
    return FilterPart(beginning(text), dict(query))


def _few(values: Sequence[object]) -> str:
    """The first of the values, as ``a,b,c and 97 more``."""
    more = len(values) - _SHOWN
    return ",".join(beginning(str(value)) for value in values[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
