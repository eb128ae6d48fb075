"""Request bodies of single searches, by vector or by words: pure functions, plain OpenSearch DSL."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.metadata import CHUNK, PLACE, USUAL, FieldNames
from langshift.retrieval.settings import SearchRequest, Source

# What one search may bring by the server's default (index.max_result_window), and the most that k may be.
MOST: Final = 10_000

# Clauses of one query that the server allows by default (indices.query.bool.max_clause_count is 1024).
MOST_CLAUSES = 1000
# How many nodes of its graph Faiss keeps in view beyond ``k``: by itself 100 in all, with which it finds .58 of 1,000.
_IN_VIEW = 100
_EXACT = "(1.0 + cosineSimilarity(params.vector, doc[params.field])) / 2.0"

#: What documents must match, all of it.
Clauses = Sequence[Mapping[str, Any]]


def knn(vector: NDArray[np.float32], k: int, clauses: Clauses = (), fields: FieldNames = USUAL) -> dict[str, Any]:
    """The query for the ``k`` nearest of each shard among the documents that match all of the clauses.

    The score of a hit is ``(1 + cos(q, z̃)) / 2``. The clauses are applied inside the graph search, so that ``k`` hits
    come back where so many match.
    """
    parameters: dict[str, Any] = {"vector": vector.tolist(), "k": k}
    if clauses:
        parameters["filter"] = {"bool": {"filter": list(clauses)}}
    if fields.oversample is not None:
        parameters["rescore"] = {"oversample_factor": fields.oversample}
    if fields.ef_search:
        parameters["method_parameters"] = {"ef_search": k + _IN_VIEW}
    return {"knn": {fields.vector: parameters}}


def matching(
    words: str, language: str, others: Sequence[str] = (), clauses: Clauses = (), fields: FieldNames = USUAL
) -> dict[str, Any]:
    """The BM25 query in the fields of the query's language, and of the other languages of the index.

    In an index that has text fields of its own, in these: documents of each analyzed language by its analyzer, all
    others whatever their language.

    Names and numbers are written alike in many languages: on XQuAD (eight languages, English
    questions) the fields of all of them together give nDCG@20 .374, those of the query's language alone
    .243, and one more field shared by all languages .30.

    Args:
        words: the query.
        language: primary language tag of the query, or ``und``.
        others: the other languages of the index, most frequent first; as many of them are searched as
            the server's limit on clauses leaves room for.
        clauses: what documents must match.
        fields: the index's names of fields.

    Raises:
        UsageError: the query has too many words for the server.
    """
    words = normal_form(words)
    if fields.analyzed and (match := _by_analyzer(words, (language, *others), fields)):
        return {"bool": {"must": [match], "filter": list(clauses)}}
    together = len(fields.text_fields) if fields.split else 1
    room = MOST_CLAUSES // (_most_tokens(words) * together)
    if not room:
        raise UsageError(f"The query has too many words for a lexical search: the limit is {MOST_CLAUSES // together}.")
    if fields.split:
        tags = list(dict.fromkeys((language, UNDETERMINED, *others)))[:room]
        searched = [name for tag in tags for name in _weighted(fields, f".{tag}")]
    else:
        searched = _weighted(fields)[:room]
    match = {"multi_match": {"query": words, "type": "most_fields", "fields": searched}}
    return {"bool": {"must": [match], "filter": list(clauses)}}


def _weighted(fields: FieldNames, view: str = "") -> list[str]:
    """The text fields, or a view of each, as a query names them with their weights."""
    weights = {name: f"^{weight:g}" for name, weight in fields.weights.items()}
    return [f"{name}{view}{weights.get(name, '')}" for name in fields.text_fields]


def _by_analyzer(words: str, languages: Sequence[str], fields: FieldNames) -> dict[str, Any] | None:
    """A clause for each analyzed language that the limit leaves room for, and one for all other documents.

    None where there is room for the last alone.
    """
    # The filter by language is a clause, too.
    room = MOST_CLAUSES // (_most_tokens(words) * len(fields.texts) + 1) - 1
    tags = [tag for tag in dict.fromkeys(languages) if tag in fields.analyzed][: max(room, 0)]
    if not tags:
        return None

    def match(view: str, filters: Mapping[str, Any]) -> dict[str, Any]:
        found = {"multi_match": {"query": words, "type": "most_fields", "fields": _weighted(fields, view)}}
        return {"bool": {"must": [found], **filters}}

    own = [match(f".{tag}", {"filter": [{"term": {fields.language: tag}}]}) for tag in tags]
    rest = match("", {"must_not": [{"terms": {fields.language: tags}}]})
    return {"bool": {"should": [*own, rest], "minimum_should_match": 1}}


def exact(vector: NDArray[np.float32], clauses: Clauses, size: int, fields: FieldNames = USUAL) -> dict[str, Any]:
    """The body of an exact search by cosine among what matches all clauses; what has no vector is not found.

    The score of a hit is ``(1 + cos(q, z̃)) / 2``, as that of ``knn``.
    """
    scored = {"bool": {"filter": [{"bool": {"filter": list(clauses)}}, {"exists": {"field": fields.vector}}]}}
    script = {"source": _EXACT, "params": {"vector": vector.tolist(), "field": fields.vector}}
    return body({"script_score": {"query": scored, "script": script}}, size, fields, source=False)


def named(ids: Sequence[str], fields: FieldNames = USUAL, source: Source = True) -> dict[str, Any]:
    """The body of a search for the documents of these ids."""
    return body(among(ids), len(ids), fields, source)


def among(ids: Sequence[str]) -> dict[str, Any]:
    """The query that the entries of these ids match, all with the same score."""
    return {"bool": {"filter": filter_clauses({"_id": ids})}}


def of_documents(ids: Sequence[str], fields: FieldNames = USUAL) -> list[dict[str, Any]]:
    """The clauses that all entries of documents match: the documents themselves, or their chunks.

    An entry of an index of chunks that names no document is one for itself.
    """
    themselves = filter_clauses({"_id": ids})
    if fields.parent is None:
        return themselves
    nameless = {"bool": {"filter": themselves, "must_not": [{"exists": {"field": fields.document_key}}]}}
    either = [*filter_clauses({fields.document_key: ids}), nameless]
    return [{"bool": {"should": either, "minimum_should_match": 1}}]


def filter_clauses(wanted: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """One ``terms`` clause a field: any of its values will do."""
    return [{"terms": {field: list(values)}} for field, values in wanted.items()]


def body(query: Mapping[str, Any], size: int, fields: FieldNames = USUAL, source: Source = True) -> dict[str, Any]:
    """A request body; hits that do not bring the whole document tell apart from it what each needs.

    That is the language, and in an index of chunks the document and the place in it.
    """
    if source is True:
        return {"size": size, "query": query, "_source": {"excludes": list(fields.embeddings)}}
    apart = [fields.language]
    if fields.parent is not None:
        apart.append(fields.document_key)
    if fields.chunking is not None:
        apart += [f"{CHUNK}.{name}" for name in PLACE]
    projection = {"_source": list(source) if source else False, "docvalue_fields": apart}
    return {"size": size, "query": query, **projection}


def once_each(body: Mapping[str, Any], fields: FieldNames) -> dict[str, Any]:
    """The body of a search that brings the best chunk of each document alone; that of whole documents as it is."""
    return {**body, "collapse": {"field": fields.document_key}} if fields.parent is not None else dict(body)


def documents_body(request: SearchRequest, query: Mapping[str, Any], size: int) -> dict[str, Any]:
    """A request body for as many documents, in an index of chunks the best chunk of each.

    Where groups are to be found among documents, it is for ``depth`` of them; and where the request does not collapse,
    for as many chunks of any documents.
    """
    fields = request.fields
    if fields.parent is not None and (request.setting.one_per_group or not request.collapses):
        size = max(size, request.depth)
    made = body(query, size, fields, request.source)
    return once_each(made, fields) if request.collapses else made


def _most_tokens(words: str) -> int:
    """About as many tokens as an analyzer can make of a query, or more.

    Scripts without spaces (Thai and beyond in Unicode's order) may give a token a character, and
    camelCase or digits may part a word. Marks, such as an accent that is a character of its own, part none.
    """
    unmarked = "".join(character for character in words if unicodedata.category(character)[0] != "M")
    runs = re.findall(r"[^\W\d_]+|\d+", unmarked)
    return max(1, sum(sum(character >= "\u0e00" for character in run) or 1 for run in runs))


# How many of the best a mode's scores are compared with cosines over.
SCALED_OVER: Final = 100


# A preference is in units of cosine. A bonus only reorders what was retrieved, so the best of the favoured documents
# are retrieved, too: those in the searcher's language, or with a preference below 0 (``--spread``) those in any
# other.
def preferred_clause(request: SearchRequest, preference: float) -> dict[str, Any]:
    """The clause that the favoured documents match."""
    same = {"term": {request.fields.language: request.question.language}}
    return same if preference > 0 else {"bool": {"must_not": [same]}}


def nearest(request: SearchRequest, vector: NDArray[np.float32], k: int, preference: float) -> list[dict[str, Any]]:
    """The queries for the ``k`` nearest of each shard among all, and with a preference among the favoured, too.

    The best ``k`` are among these in any mode that gives the favoured more. In an index of chunks that is a query each:
    only so is it known that both find enough documents.

    Args:
        request: whose filters all must match.
        vector: what they are near to, shape (dimension,), float32.
        k: how many.
        preference: above 0 for the searcher's language, below for others, 0 for none.
    """
    queries = nearest_of_each(request, vector, k, preference)
    return queries if len(queries) == 1 or request.fields.parent is not None else [{"dis_max": {"queries": queries}}]


def nearest_of_each(
    request: SearchRequest, vector: NDArray[np.float32], k: int, preference: float
) -> list[dict[str, Any]]:
    """As ``nearest``, but always a query each."""
    clauses = request.filters.clauses
    among = [clauses, [*clauses, preferred_clause(request, preference)]] if preference else [clauses]
    return [knn(vector, k, one, request.fields) for one in among]


def added(which: Mapping[str, Any], score: float) -> dict[str, Any]:
    """The clause that adds a score to that of the documents that match ``which``."""
    return {"constant_score": {"filter": which, "boost": score}}


def bonus(preference: float, own: Sequence[float], dense: Sequence[float]) -> float:
    """What favoured documents are given in a mode whose scores are no cosines.

    ``|beta| · (max s - min s) / (max cos - min cos)``, with ``s`` the mode's own scores, over the best 100 of each:
    as much of the scores' range as ``beta`` is of the cosines'. 0 where all of one are equal.

    Args:
        preference: beta, in units of cosine.
        own: the mode's own scores, best first.
        dense: scores ``(1 + cos) / 2`` of the vectors' search, best first.
    """
    own, dense = own[:SCALED_OVER], dense[:SCALED_OVER]
    if not own or not dense or dense[0] == dense[-1]:
        return 0.0
    return abs(preference) * (own[0] - own[-1]) / (2 * (dense[0] - dense[-1]))
