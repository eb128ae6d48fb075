"""Request bodies, of single searches and of the steps of the modes: pure functions, plain OpenSearch DSL."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.sparse import TokenWeights
from langshift.errors import UsageError
from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.metadata import CHUNK, PLACE, USUAL, FieldNames
from langshift.retrieval.hits import VECTOR, Part, ScoringContext
from langshift.retrieval.plans import Body, ShardBody
from langshift.retrieval.question import SearchQuery, SearchRequest, Source

# What one search may bring by the server's default (index.max_result_window), and the most that k may be.
MOST: Final = 10_000

# Clauses of one query that the server allows by default (indices.query.bool.max_clause_count is 1024).
MOST_CLAUSES = 1000
# How many nodes of its graph Faiss keeps in view beyond ``k``: by itself 100 in all, with which it finds .58 of 1,000.
_IN_VIEW = 100
_EXACT = "(1.0 + cosineSimilarity(params.vector, doc[params.field])) / 2.0"

# Characters of a query, in a sentence about it.
_SHOWN_CHARACTERS: Final = 100


def vector_of(question: SearchQuery) -> NDArray[np.float32]:
    """The question's vector.

    Raises:
        UsageError: it has none, or one of zeros, which is near to nothing.
    """
    if question.vector is None:
        raise UsageError("The query has no vector, but this search mode needs one: encode the query.")
    if not question.vector.any():
        raise UsageError(
            f"The vector of the query {question.words[:_SHOWN_CHARACTERS]!r} is all zeros, so no document is near it: "
            "use other words, or mode lexical."
        )
    return question.vector


def weights_of(question: SearchQuery) -> TokenWeights:
    """The question's weights of tokens.

    Raises:
        UsageError: it has none, so that it matches nothing.
    """
    if question.weights is None:
        raise UsageError("The query has no weights of tokens, but this search mode needs them: encode the query.")
    if not question.weights:
        raise UsageError(
            f"The sparse encoder gives no weights for the query {question.words[:_SHOWN_CHARACTERS]!r}, so no document "
            "matches it: use other words, or mode dense."
        )
    return question.weights


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


#: Part of the documents -> the clause that they match.
Parts = Mapping[str, Mapping[str, Any]]


# A preference is in units of cosine. A bonus only reorders what was retrieved, so the best of the favoured documents
# are retrieved, too: those in the searcher's language, or with a preference below 0 (``--spread``) those in any
# other.
def preferred_clause(request: SearchRequest, preference: float) -> dict[str, Any]:
    """The clause that the favoured documents match."""
    same = {"term": {request.fields.language: request.question.language}}
    return same if preference > 0 else {"bool": {"must_not": [same]}}


def searched_vector(request: SearchRequest, how: ScoringContext) -> NDArray[np.float32]:
    """What is searched with: the question's vector where it was not moved.

    Raises:
        UsageError: the question has no vector.
    """
    return vector_of(request.question) if how.moved is None else how.moved


def nearest_bodies(request: SearchRequest, how: ScoringContext, k: int) -> tuple[Body, ...]:
    """The bodies of a search by vector: one, in an index of chunks with a preference two.

    What the mode itself gives only reorders the ``k`` nearest of each shard: that is worth a few spreads at most, and a
    union costs as much time as a second search. With a preference, which may be worth any amount, the nearest of the
    favoured documents are looked at, too: the best ``k`` are among these in any mode that gives the favoured more. In
    an index of chunks that is a search each: only so is it known that both find enough documents.

    Args:
        request: what is searched for; hits must match its filters.
        how: with the vector, where it was moved, and what is added to its cosine.
        k: how many.

    Raises:
        UsageError: the question has no vector.
    """
    queries = _nearest_of_each(request, searched_vector(request, how), k, how.bonus if request.preference else 0.0)
    if len(queries) > 1 and request.fields.parent is None:
        queries = [{"dis_max": {"queries": queries}}]
    if how.bonus or how.moved is not None:
        queries = [_with_added(request, query, how) for query in queries]
    return tuple(documents_body(request, query, request.size) for query in queries)


def nearest_of_each_bodies(request: SearchRequest, k: int, size: int) -> tuple[Body, ...]:
    """The bodies for the nearest of all, and with a preference for those of the favoured, always a body each.

    Args:
        request: what is searched for; hits must match its filters.
        k: how many each shard finds.
        size: how many of them are looked at.

    Raises:
        UsageError: the question has no vector.
    """
    queries = _nearest_of_each(request, vector_of(request.question), k, request.preference)
    return tuple(documents_body(request, query, size) for query in queries)


def _nearest_of_each(
    request: SearchRequest, vector: NDArray[np.float32], k: int, favour: float
) -> list[dict[str, Any]]:
    clauses = request.filters.clauses
    among = [clauses, [*clauses, preferred_clause(request, favour)]] if favour else [clauses]
    return [knn(vector, k, one, request.fields) for one in among]


def exact_body(request: SearchRequest, how: ScoringContext, clauses: Clauses, size: int) -> Body:
    """The body of an exact search as ``nearest_bodies`` search, among what matches all clauses."""
    made = exact(searched_vector(request, how), clauses, size, request.fields)
    return {**made, "query": _with_added(request, made["query"], how)}


def _with_added(request: SearchRequest, query: Mapping[str, Any], how: ScoringContext) -> dict[str, Any]:
    """The query, whose scores have added what is given to single documents, and for the language."""
    worth = [({"term": {"_id": name}}, given) for name, given in how.given.items()]
    if how.bonus:
        worth.append((preferred_clause(request, how.bonus), abs(how.bonus)))
    added = [{"constant_score": {"filter": which, "boost": boost}} for which, boost in worth]
    return {"bool": {"must": [query], "should": added}}


# From doc values, which takes a fifth of the time that reading it out of the document does. Behind its dimension, two
# values share a whole number: in half the time that decimal fractions take to write, and exactly.
_PACKED: Final = (
    "if (doc[params.field].size() == 0) { return null; } float[] stored = doc[params.field].value; "
    "long[] packed = new long[1 + (stored.length + 1) / 2]; packed[0] = stored.length; "
    "for (int i = 0; i < stored.length; ++i) { "
    "packed[1 + i / 2] |= ((long) Float.floatToIntBits(stored[i]) & 0xffffffffL) << (32 * (i % 2)); } return packed;"
)


def body_with_vectors(query: Mapping[str, Any], size: int, fields: FieldNames) -> Body:
    """The body of a search whose hits bring their vectors, which ``hits.stored_vectors`` reads."""
    script = {"source": _PACKED, "params": {"field": fields.vector}}
    return body(query, size, fields, source=False) | {"script_fields": {VECTOR: {"script": script}}}


# A clause of the server's can weigh as much: more is refused.
_HEAVIEST: Final = 64.0


def leg_query(leg: str, request: SearchRequest, *clauses: Mapping[str, Any]) -> dict[str, Any]:
    """The query of the leg ``dense``, ``lexical`` or ``sparse`` among what matches the filters and the clauses.

    By vector it is for the ``depth`` nearest of each shard. By tokens the score of a hit is ``Σ_t q_t · d_t`` over
    those that both have; the server keeps ``d_t`` within 1/256 of itself. Where a ``q_t`` is above 64, all are made
    smaller in proportion, which leaves the order as it is.

    Raises:
        UsageError: the question has no vector, too many words for the server, or no weights.
    """
    question, among = request.question, [*request.filters.clauses, *clauses]
    if leg == "dense":
        return knn(vector_of(question), request.depth, among, request.fields)
    if leg == "lexical":
        return matching(question.words, question.language, request.target.index.languages, among, request.fields)
    weights = weights_of(question)
    scale = min(1.0, _HEAVIEST / max(weights.values()))
    asked = {token: weight * scale for token, weight in weights.items()}
    return {"bool": {"must": [{"neural_sparse": {request.fields.sparse: {"query_tokens": asked}}}], "filter": among}}


def bodies_of_legs(request: SearchRequest, legs: Sequence[str], shards: int) -> dict[Part, Body]:
    """The bodies of the one step in which legs are asked, each for ``depth`` documents.

    Vectors are asked for always; where they are no leg themselves, not among the favoured. Hits bring no fields, or the
    group where one of each is wanted.

    Args:
        request: what is searched for.
        legs: which count.
        shards: how many shards bring as many each; 1 where they bring as many together.

    Returns:
        (Leg, part) -> body; parts are ``all`` or ``shard N``, and with a preference the one that it favours, ``own`` or
        ``others``.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    bare = replace(request, source=[request.fields.group] if request.setting.one_per_group else False)
    parts = {request.favoured: preferred_clause(request, request.preference)} if request.favoured else {}
    bodies: dict[Part, Body] = {}
    for leg in dict.fromkeys(("dense", *legs)):
        bodies |= bodies_of_leg(leg, bare, parts if leg in legs else {}, shards)
    return bodies


def bodies_of_leg(leg: str, request: SearchRequest, parts: Parts, shards: int) -> dict[Part, Body]:
    """The bodies of one leg, of ``all`` documents or, of words and tokens, of each ``shard N``, and of the parts.

    Args:
        leg: ``dense``, ``lexical`` or ``sparse``.
        request: whose setting and size have no part in it.
        parts: what is asked for beside all.
        shards: see ``bodies_of_legs``; shards bring their nearest by one search.

    Raises:
        UsageError: the question has no vector or no weights, or too many words for the server.
    """
    fields, depth, source = request.fields, request.depth, request.source
    size = min(depth * shards, MOST) if leg == "dense" else depth
    whole = body(leg_query(leg, request), size, fields, source)
    bodies: dict[Part, Body] = {(leg, "all"): whole}
    if shards > 1 and leg != "dense":
        bodies = {(leg, f"shard {shard}"): ShardBody(whole, shard) for shard in range(shards)}
    for part, clause in parts.items():
        bodies[leg, part] = body(leg_query(leg, request, clause), depth, fields, source)
    return bodies


def members_body(request: SearchRequest, groups: Sequence[str], without: Sequence[str]) -> Body:
    """The body of a search for the documents of groups, 10,000 at most, those in the searcher's language first.

    Args:
        request: whose filters a document must match, and whose fields it brings.
        groups: the groups.
        without: ids of documents that are not wanted.
    """
    own = {"term": {request.fields.language: request.question.language}}
    query: dict[str, Any] = {
        "filter": [{"terms": {request.fields.group_filter: list(groups)}}, *request.filters.clauses],
        "must_not": of_documents(without, request.fields),
        "should": [{"constant_score": {"filter": own}}],
    }
    return documents_body(request, {"bool": query}, MOST)
