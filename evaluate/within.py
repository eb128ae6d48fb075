"""``within``: each query searches only the documents that have its value of a field, such as its language or tenant.

What is judged outside of that can never be found: it is left out of the measures, so that the figures are those of an
index and a dataset of their own for each value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from opensearchpy import OpenSearch

from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, gather
from langshift.files import batched
from langshift.languages import UNDETERMINED, require_tag, text_language
from langshift.normal_form import normal_form
from langshift.plugin.metadata import value_at
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl
from langshift.retrieval.filters import FieldCheck, IndexFilter, Value
from langshift.retrieval.searcher import Searcher
from langshift.server_errors import client_errors_as_langshift_errors

LANGUAGE = "language"
_GET_AT_ONCE = 1000


class QueryValues(NamedTuple):
    """What ``within`` makes of queries.

    Attributes:
        field: the field.
        of: query id -> the query's value; a query without one is missing.
        refusals: query id -> why it cannot be asked.
    """

    field: str
    of: Mapping[str, Value]
    refusals: Mapping[str, str]

    @classmethod
    def read(cls, within: str, queries: Sequence[DatasetQuery], languages: Mapping[str, str | None]) -> QueryValues:
        """The value that each query has.

        Args:
            within: ``FIELD`` or ``FIELD=VALUE``.
            queries: the queries.
            languages: query id -> language, None where unknown.

        Raises:
            UsageError: the value is of the field ``language`` and names none.
        """
        field, equals, value = within.partition("=")
        if equals:
            value = text_language(require_tag(value)) if field == LANGUAGE else value
            return cls(field, dict.fromkeys((query.id for query in queries), value), {})
        values: dict[str, Value] = {}
        refusals = {}
        for query in queries:
            language = languages[query.id] or UNDETERMINED
            found = text_language(language) if field == LANGUAGE else value_at(query.fields, field)
            if isinstance(found, Value) and found not in ("", UNDETERMINED):
                values[query.id] = found
            else:
                lacks = "no clear language" if field == LANGUAGE else f"no single value of {field!r}"
                refusals[query.id] = (
                    f"The query {query.id!r} has {lacks}, by which --within {field} chooses what it searches: write "
                    f"one into its line as {field!r}, or name one for all queries, --within {field}=VALUE."
                )
        return cls(field, values, refusals)

    @property
    def texts(self) -> dict[str, str]:
        """Query id -> its value as text."""
        return {query: value_text(value) for query, value in self.of.items()}


def value_text(value: object) -> str:
    """A value as values are compared."""
    return normal_form(str(value))


class SearchedPart(NamedTuple):
    """What each query of a run searches.

    Attributes:
        values: of the queries.
        filters: query id -> what its hits must match; a query that cannot be asked is missing.
        outside: query id -> of the documents that are judged for it, and of their translation groups, those that it
            does not search.
    """

    values: QueryValues
    filters: Mapping[str, IndexFilter]
    outside: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        searcher: Searcher,
        within: str,
        queries: Sequence[DatasetQuery],
        languages: Mapping[str, str | None],
        dataset: Dataset,
    ) -> SearchedPart:
        """Make the filters, and look which of the judged documents match them.

        Raises:
            UsageError: the index has no such field, or it cannot be filtered by.
            ClusterError: the cluster does not tell.
        """
        values, checks = QueryValues.read(within, queries, languages), FieldCheck(searcher.client, searcher.index)
        # A field that the index lacks is refused even where no query has a value of it.
        checks.checked({values.field: {"exists": True}})
        known = {value: checks.checked({values.field: value}) for value in dict.fromkeys(values.of.values())}
        filters = {query: known[value] for query, value in values.of.items()}
        judged = {query.id: judged_documents(dataset, query) for query in queries if query.id in filters}
        wanted: dict[Value, list[str]] = gather(
            (values.of[query], name) for query, names in judged.items() for name in names
        )
        inside = {
            value: _matching(searcher.client, searcher.index, dict.fromkeys(names), known[value].clauses)
            for value, names in wanted.items()
        }
        outside = {query: names - inside[values.of[query]] for query, names in judged.items() if names}
        return cls(values, filters, {query: names for query, names in outside.items() if names})


def judged_documents(dataset: Dataset, query: DatasetQuery) -> frozenset[str]:
    """The documents that are judged for a query, and those of their translation groups."""
    return frozenset([*dataset.qrels.get(query.id, ()), *dataset.target_group(query.id, query.group)])


def _matching(
    client: OpenSearch, index: IndexInfo, names: Collection[str], clauses: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Those of the documents that match all clauses; a document in chunks does where one of them does."""
    found, fields = set[str](), index.fields
    for ids in batched(names, _GET_AT_ONCE):
        query = {"bool": {"filter": [*dsl.of_documents(ids, fields), *clauses]}}
        body: dict[str, Any] = {"size": len(ids), "query": query, "_source": False}
        if fields.parent is not None:
            of = {"field": fields.document_key, "size": len(ids), "include": ids}
            body["aggs"] = {"documents": {"terms": of}}
            # A chunk that names no document is one for itself.
            body["post_filter"] = {"bool": {"must_not": [{"exists": {"field": fields.document_key}}]}}
        with client_errors_as_langshift_errors():
            answer = client.search(index=index.index, body=body)
        found.update(hit["_id"] for hit in answer["hits"]["hits"])
        found.update(one["key"] for one in answer.get("aggregations", {}).get("documents", {}).get("buckets", ()))
    return found


def remarks(within: str | None, dataset: Dataset) -> list[str]:
    """Say how many judgements are left out, where any are; ``dataset`` is without them."""
    if within is None or dataset.whole is None:
        return []
    whole = {query: dataset.whole.relevant(query) for query in dataset.whole.qrels}
    lost = {query: len(names) - len(dataset.relevant(query)) for query, names in whole.items()}
    count, total = sum(lost.values()), sum(map(len, whole.values()))
    empty = sum(bool(names) and not dataset.relevant(query) for query, names in whole.items())
    left = f"; {empty:,} queries have no other, and are left out, too" if empty else ""
    return [
        f"{count:,} of {total:,} relevant documents are outside of what their queries search (--within {within}) and "
        f"are left out of the measures{left}."
    ] * bool(count)
