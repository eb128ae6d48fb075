"""Filters as a person gives them, checked and made those of the index's own fields."""

import reprlib
from collections.abc import Collection, Mapping, Sequence

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import UsageError
from langshift.files import is_text
from langshift.languages import require_tag, text_language
from langshift.normal_form import canonical_forms
from langshift.plugin.metadata import PARENT
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.dsl import filter_clauses
from langshift.retrieval.settings import Filters
from langshift.server_errors import reason
from langshift.wording import escaped

# A refused filter shows so many of its values, and so many characters of each.
_SHOWN, _SHOWN_CHARACTERS = 3, 40
# Types of fields that a term does not find.
_NOT_EXACT = {"text", "match_only_text", "search_as_you_type", "object", "nested", "knn_vector"}


class FilterCheck:
    """Checks filters over one index; a field that can be filtered by is not asked about again."""

    def __init__(self, client: OpenSearch, index: IndexInfo) -> None:
        self._client, self._index = client, index
        self._known: set[str] = set()
        self._grouped = False

    def checked(self, filters: Mapping[str, Sequence[str]]) -> Filters:
        """The filters, by the index's own fields and tags.

        Raises:
            UsageError: a field cannot be filtered by, or the values are no list of strings.
        """
        fields = self._index.fields
        language = fields.language
        own_names = {"language": language, "group": fields.group_filter, fields.group: fields.group_filter}
        if fields.parent is not None:
            own_names |= {PARENT: fields.document_key, fields.parent: fields.document_key}
        found: dict[str, list[str]] = {}
        for name, values in filters.items():
            listed = isinstance(values, Collection) and not isinstance(values, str)
            if not listed or not all(isinstance(value, str) for value in values):
                received = reprlib.repr(values)
                raise UsageError(f"The filter {name!r} takes a list of strings, such as ['de', 'th'], not {received}.")
            if not all(map(is_text, (name, *values))):
                raise UsageError("A filter is not UTF-8 text.")
            field = own_names.get(name, name)
            self._require_exact(name, field)
            if field == language:
                wanted = [text_language(require_tag(value)) for value in values]
            else:
                # Other fields than texts are kept as they came.
                wanted = [form for value in values for form in canonical_forms(value)]
            found.setdefault(field, []).extend(wanted)
        return found

    def _require_exact(self, name: str, field: str) -> None:
        if field in self._known:
            return
        caps = self._client.field_caps(index=self._index.index, fields=field)["fields"] if field.strip() else {}
        if set(caps.get(field, {})) & _NOT_EXACT or field not in caps:
            raise UsageError(
                f"Index {self._index.name} has no field {name!r} that can be filtered by exact value: "
                "use language, group or another field that its documents came with."
            )
        self._known.add(field)

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
        unfit = sorted(kind for kind, caps in found.items() if kind in _NOT_EXACT or not caps["searchable"])
        if unfit or not found:
            problem = f"is of type {', '.join(unfit)}" if found else "is not in its mapping"
            raise UsageError(
                f"Index {self._index.name} cannot be searched for one document per group, because its field {group!r} "
                f"{problem}: adopt the old index again, with --group-field naming a keyword field or a text field that "
                "has a keyword view."
            )
        self._grouped = True

    def require_fitting(self, filters: Filters) -> None:
        """Say of a search that failed whether its filters are why.

        Raises:
            UsageError: a value does not fit its field.
        """
        for field, values in filters.items():
            body = {"size": 0, "query": {"bool": {"filter": filter_clauses({field: values})}}}
            try:
                self._client.search(index=self._index.index, body=body)
            except RequestError as error:
                message = f"The filter {field}={_few(values)} does not fit its field: {reason(error)}."
                raise UsageError(escaped(message)) from error


def _few(values: Sequence[str]) -> str:
    """The first of the values, as ``a|b|c and 97 more``."""
    cut = [value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]}…" for value in values[:_SHOWN]]
    more = len(values) - len(cut)
    return "|".join(cut) + (f" and {more:,} more" if more else "")
