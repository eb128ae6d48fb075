"""Group scores: what a search gives every translation of the passage sought, also below the cut.

Whether a searcher's language is preferred (LPR) is a question about the translations of one passage among
themselves, and some of these may be far below the hundred best. So each query is asked again over these
alone, in the setting of its own run and with what the run knows of its scores (``How``): each leg is scored
apart, and one that the run normalised by its lowest and highest score is normalised by the same two, not by
those of the group. A passage that the search does not match has no score (null in the file): it is behind
every passage that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery
from langshift.evaluate.replay.requests import QueryResult
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchQuery, SearchSettings
from langshift.retrieval.steps import execute_many

GroupScores = Mapping[str, Mapping[str, "float | None"]]
"""Query id -> every document of its target -> score, None where it has none."""


def target_documents(dataset: Dataset, queries: Sequence[DatasetQuery]) -> dict[str, list[str]]:
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


def fetch_group_scores(
    client: OpenSearch,
    searcher: Searcher,
    setting: SearchSettings,
    questions: Mapping[str, SearchQuery],
    wanted: Mapping[str, Sequence[str]],
    heard: Mapping[str, QueryResult],
) -> tuple[GroupScores, dict[str, str]]:
    """Ask for the scores, many queries to a request.

    Args:
        client: the cluster.
        searcher: over the index.
        setting: how it was searched.
        questions: query id -> the question as it was asked.
        wanted: query id -> the documents to score.
        heard: query id -> the answer of the run, which says how its scores were put together.

    Returns:
        The scores, and query id -> reason for those that could not be had. Nothing is asked for a query that failed
        in the run: as it has no answer, its documents have no score.
    """
    scores: dict[str, dict[str, float | None]] = {}
    errors: dict[str, str] = {}
    answered = [query for query in wanted if heard[query].error is None]
    exchanges = (searcher.scores(questions[query], setting, heard[query].how, wanted[query]) for query in answered)
    for query, found in zip(answered, execute_many(client, searcher.index.index, exchanges), strict=True):
        if isinstance(found, LangshiftError):
            errors[query] = str(found)
        else:
            scores[query] = found
    failed: dict[str, dict[str, float | None]] = {
        query: dict.fromkeys(names) for query, names in wanted.items() if heard[query].error is not None
    }
    known = scores | failed
    return {query: known[query] for query in wanted if query in known}, errors


def format_group_scores(scores: GroupScores) -> bytes:
    """The content of ``group-scores.jsonl``: one query a line, with null for a document without a score."""
    lines = ({"query": query, "scores": given} for query, given in scores.items())
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
