"""Which queries belong together: those about one article, else one group, share passages and so their luck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from langshift.evaluate.datasets.dataset import Dataset


class Clusters(NamedTuple):
    """Query id -> name of its cluster, and what a cluster is: ``article``, ``group`` or ``query``."""

    of: Mapping[str, str]
    by: str


def clusters(dataset: Dataset) -> Clusters:
    """Queries by article where every query names one, else by group where every query has one, else each alone.

    A query's group is its own, else that of its relevant documents where these have one alone.
    """
    articles = {query.id: query.article for query in dataset.queries if query.article}
    if len(articles) == len(dataset.queries):
        return Clusters(articles, "article")
    groups = {}
    for query in dataset.queries:
        judged = dataset.qrels.get(query.id, {})
        found = {dataset.documents[name].group for name, grade in judged.items() if grade > 0}
        group = query.group or (found.pop() if len(found) == 1 else None)
        if group:
            groups[query.id] = group
    if len(groups) == len(dataset.queries):
        return Clusters(groups, "group")
    return Clusters({query.id: query.id for query in dataset.queries}, "query")
