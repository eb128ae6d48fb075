"""Group scores: what an index gives every translation of the passage sought, also below the cut.

Whether a searcher's language is preferred (LPR) is a question about the translations of one passage among
themselves, and some of these may be far below the hundred best. So each query is asked again over these
alone, many queries to a request:

- dense: the exact score ``(1 + cos(q, z̃)) / 2`` of each, by a script over a filter, on the scale of the run;
- lexical: the run's own query under a filter, which leaves BM25 as it is. A passage that none of the words
  match has no score (null in the file): it is behind every passage that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.cluster import failure
from langshift.evaluate.dataset import Dataset, Query
from langshift.failures import not_permitted
from langshift.ingest.search import Searcher
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.query import filter_clauses

GroupScores = Mapping[str, Mapping[str, "float | None"]]
"""Query id -> every document of its target -> score, None where it has none."""

_QUERIES_AT_ONCE = 100
_BYTES_AT_ONCE = 4_000_000
_EXACT = "(1.0 + cosineSimilarity(params.vector, doc[params.field])) / 2.0"


def targets(dataset: Dataset, queries: Sequence[Query]) -> dict[str, list[str]]:
    """Query id -> the documents that answer it, and all of their translation groups and its own.

    Empty where the dataset has no groups; a query without such a document is left out.
    """
    members: dict[str, list[str]] = {}
    for name, document in dataset.documents.items():
        if document.group is not None:
            members.setdefault(document.group, []).append(name)
    if not members:
        return {}
    found = {}
    for query in queries:
        relevant = [name for name, grade in dataset.qrels.get(query.id, {}).items() if grade > 0]
        groups = [dataset.documents[name].group for name in relevant] + [query.group]
        names = [*relevant, *(name for group in dict.fromkeys(groups) for name in members.get(group or "", ()))]
        if names:
            found[query.id] = list(dict.fromkeys(names))
    return found


def bodies(
    searcher: Searcher,
    queries: Sequence[Query],
    wanted: Mapping[str, Sequence[str]],
    tags: Mapping[str, str | None],
    vectors: NDArray[np.float32] | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id of each query that has a target, and the body of the search for its scores.

    Args:
        searcher: over the index.
        queries: the queries.
        wanted: query id -> the documents to score.
        tags: query id -> language.
        vectors: the queries' vectors, shape (queries, dimension); None for lexical.
    """
    for row, query in enumerate(queries):
        names = wanted.get(query.id)
        if not names:
            continue
        if vectors is not None:
            among = {"bool": {"filter": filter_clauses({"_id": names})}}
            yield query.id, exact(vectors[row], among, len(names), searcher.index.fields)
        else:
            body = searcher.body(
                query.text, mode="lexical", language=tags[query.id], size=len(names), filters={"_id": names}
            )
            yield query.id, body | {"_source": False}


def exact(vector: NDArray[np.float32], among: Mapping[str, Any], size: int, fields: Fields = USUAL) -> dict[str, Any]:
    """The body of an exact search by cosine; a document without a vector is not found.

    Args:
        vector: the query's vector, shape (dimension,).
        among: the query that chooses the documents to score.
        size: how many hits.
        fields: the index's names of fields.
    """
    among = {"bool": {"filter": [among, {"exists": {"field": fields.vector}}]}}
    script = {"source": _EXACT, "params": {"vector": vector.tolist(), "field": fields.vector}}
    return {"size": size, "query": {"script_score": {"query": among, "script": script}}, "_source": False}


def ask_groups(
    client: OpenSearch,
    index: str,
    bodies: Iterator[tuple[str, dict[str, Any]]],
    wanted: Mapping[str, Sequence[str]],
) -> tuple[GroupScores, dict[str, str]]:
    """Send the searches, many to a request, and collect the scores.

    Args:
        client: the cluster.
        index: the index to search.
        bodies: query ids and the bodies of their searches.
        wanted: query id -> the documents to score.

    Returns:
        The scores, and query id -> reason for those that failed.
    """
    scores: dict[str, dict[str, float | None]] = {}
    errors: dict[str, str] = {}
    for names, lines in _requests(bodies):
        try:
            answers = client.msearch(index=index, body=lines)["responses"]
        except OpenSearchException as error:
            errors.update(dict.fromkeys(names, str(failure(error))))
        else:
            for name, answer in zip(names, answers, strict=True):
                if "hits" in answer and not answer["timed_out"] and not answer["_shards"]["failed"]:
                    found = {hit["_id"]: float(hit["_score"]) for hit in answer["hits"]["hits"]}
                    scores[name] = {document: found.get(document) for document in wanted[name]}
                else:
                    errors[name] = _reason(answer)
    return scores, errors


def _requests(bodies: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[list[str], bytes]]:
    """Put bodies together to requests of bounded size."""
    names: list[str] = []
    lines = bytearray()
    for name, body in bodies:
        names.append(name)
        lines += b"{}\n" + orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
        if len(names) == _QUERIES_AT_ONCE or len(lines) >= _BYTES_AT_ONCE:
            yield names, bytes(lines)
            names, lines = [], bytearray()
    if names:
        yield names, bytes(lines)


def _reason(answer: Mapping[str, Any]) -> str:
    error = answer.get("error")
    if isinstance(error, Mapping):
        told = f"The cluster answered {answer.get('status')}: {error.get('reason')}."
        return str(not_permitted(str(error.get("reason"))) or told)
    return "The cluster answered from some of its shards only."


def format_group_scores(scores: GroupScores) -> bytes:
    """The content of ``group-scores.jsonl``: one query a line, with null for a document without a score."""
    lines = ({"query": query, "scores": given} for query, given in scores.items())
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
