"""Request bodies for searching: pure functions, plain OpenSearch DSL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin.fields import USUAL, Fields

# The approximate search looks at no fewer candidates than this: fewer cost recall, not time.
LEAST_CANDIDATES = 100

# Clauses of one query that the server allows by default (indices.query.bool.max_clause_count is 1024).
MOST_CLAUSES = 1000
_TEXT_FIELDS = ("title", "text")

Filters = Mapping[str, Sequence[str]]
NO_FILTERS: Filters = {}


def dense(
    vector: NDArray[np.float32], *, size: int, filters: Filters = NO_FILTERS, fields: Fields = USUAL
) -> dict[str, Any]:
    """A k-nearest-neighbour search in the field of vectors.

    The score of a hit is ``(1 + cos(q, z̃)) / 2``.

    Args:
        vector: query vector, shape (dimension,), float32.
        size: how many hits.
        filters: field -> values, any of which a hit must have; applied inside the graph search,
            so that ``size`` hits come back where so many match.
        fields: the index's names of fields.
    """
    knn: dict[str, Any] = {"vector": vector.tolist(), "k": max(size, LEAST_CANDIDATES)}
    if filters:
        knn["filter"] = {"bool": {"filter": filter_clauses(filters)}}
    return _body({"knn": {fields.vector: knn}}, size, fields)


def lexical(
    words: str,
    language: str,
    others: Sequence[str] = (),
    *,
    size: int,
    filters: Filters = NO_FILTERS,
    fields: Fields = USUAL,
) -> dict[str, Any]:
    """A BM25 search in the fields of the query's language, and of the other languages of the index.

    In an index that has text fields of its own, in these, whatever the language.

    Names and numbers are written alike in many languages: on XQuAD (eight languages, English
    questions) the fields of all of them together give nDCG@20 .374, those of the query's language alone
    .243, and one more field shared by all languages .30.

    Args:
        words: the query.
        language: primary language tag of the query, or ``und``.
        others: the other languages of the index, most frequent first; as many of them are searched as
            the server's limit on clauses leaves room for.
        size: how many hits.
        filters: field -> values, any of which a hit must have.
        fields: the index's names of fields.

    Raises:
        UsageError: the query has too many words for the server.
    """
    together = 1 if fields.texts else len(_TEXT_FIELDS)
    room = MOST_CLAUSES // (_most_tokens(words) * together)
    if not room:
        raise UsageError(f"The query has too many words for a word search: at most {MOST_CLAUSES // together} fit.")
    searched = list(fields.texts) or list(dict.fromkeys((language, UNDETERMINED, *others)))
    searched = searched[:room]
    if not fields.texts:
        searched = [f"{field}.{tag}" for tag in searched for field in _TEXT_FIELDS]
    match = {"multi_match": {"query": words, "type": "most_fields", "fields": searched}}
    return _body({"bool": {"must": [match], "filter": filter_clauses(filters)}}, size, fields)


def _most_tokens(words: str) -> int:
    """About as many tokens as an analyzer can make of a query, or more.

    Scripts without spaces (Thai and beyond in Unicode's order) may give a token a character, and
    camelCase or digits may part a word.
    """
    runs = re.findall(r"[^\W\d_]+|\d+", words)
    return max(1, sum(sum(character >= "\u0e00" for character in run) or 1 for run in runs))


def filter_clauses(filters: Filters) -> list[dict[str, Any]]:
    """One ``terms`` clause a field."""
    return [{"terms": {field: list(values)}} for field, values in filters.items()]


def _body(query: dict[str, Any], size: int, fields: Fields) -> dict[str, Any]:
    return {"size": size, "query": query, "_source": {"excludes": [fields.vector]}}
