"""``within`` without a cluster: each query searches only the documents of the corpus that have its value of a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import CORPUS, Dataset, gather
from langshift.evaluate.within import LANGUAGE, QueryValues, judged_documents, value_text
from langshift.files import records
from langshift.languages import text_language
from langshift.plugin.metadata import value_at


class OfflinePart(NamedTuple):
    """What each query of an offline evaluation searches.

    Attributes:
        within: ``FIELD`` or ``FIELD=VALUE``.
        values: of the queries.
        documents: value, as text -> the documents that have it.
        dataset: the dataset without the judgements of what its queries do not search.
    """

    within: str
    values: QueryValues
    documents: Mapping[str, frozenset[str]]
    dataset: Dataset

    @classmethod
    def of(
        cls, dataset: Dataset, within: str, queries: Mapping[str, str | None], documents: Mapping[str, str | None]
    ) -> OfflinePart:
        """Read the values of both sides.

        Args:
            dataset: what is searched.
            within: ``FIELD`` or ``FIELD=VALUE``.
            queries: query id -> language.
            documents: document id -> language.

        Raises:
            UsageError: a query without a value, or no document with the field.
        """
        values = QueryValues.read(within, dataset.queries, queries)
        for sentence in values.refusals.values():
            raise UsageError(sentence)
        if values.field == LANGUAGE:
            pairs = [(text_language(tag), name) for name, tag in documents.items() if tag]
        else:
            path = dataset.folder / CORPUS
            lines = ((record["_id"], value_at(record, values.field)) for _, record in records(path))
            pairs = [
                (value_text(value), str(name))
                for name, given in lines
                for value in (given if isinstance(given, list) else [given])
                if value is not None
            ]
        if not pairs:
            raise UsageError(
                f"{dataset.folder} has no document with a field {values.field!r}, by which --within {within} chooses "
                "what a query searches: name another field, or add it to corpus.jsonl."
            )
        having = {value: frozenset(names) for value, names in gather(pairs).items()}
        texts = values.texts
        outside = {
            query.id: judged_documents(dataset, query) - having.get(texts[query.id], frozenset())
            for query in dataset.queries
        }
        return cls(within, values, having, dataset.within({query: names for query, names in outside.items() if names}))
