"""A search request to an index that is nowhere, for what needs no cluster."""

from plain_index import PLAIN

from langshift.plugin.metadata import USUAL
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.filters import FilterPart, IndexFilter
from langshift.retrieval.question import SearchContext, SearchQuery, SearchRequest
from langshift.retrieval.request import SearchSettings


def preferring(beta):
    """What a setting is given for a language preference beta, below 0 for the other languages."""
    return {"prefer_language": beta} if beta >= 0 else {"spread": -beta}


def index_filter(values):
    """The filter for documents that have one of the values in each field."""
    parts = tuple(FilterPart(field, {"terms": {field: wanted}}) for field, wanted in (values or {}).items())
    return IndexFilter(parts, tuple(values["language"]) if values and "language" in values else None)


def request_for(
    vector=None,
    words="tides",
    language="und",
    others=(),
    setting=None,
    *,
    fields=USUAL,
    documents=20,
    filters=None,
    **more,
):
    """A request; ``others`` are the languages of the index, all its documents in the first of them."""
    counts = dict.fromkeys(others, 0) | dict.fromkeys(others[:1], documents)
    index = IndexInfo("news", "news-v0001", PLAIN, fields, tuple(others), documents, 1, counts, frozenset(others))
    question = SearchQuery(words, language, vector)
    return SearchRequest(
        question, setting or SearchSettings("dense"), SearchContext(index), filters=index_filter(filters), **more
    )
