"""A run in trec_eval's order, which every measure goes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from langshift.evaluate.measures.material import Material


def singles(scores: Collection[float]) -> list[float]:
    """Scores as trec_eval compares them: as 32-bit floats."""
    with np.errstate(over="ignore"):
        found: list[float] = np.array(list(scores), dtype=np.float64).astype(np.float32).tolist()
    return found


def ranking(hits: Mapping[str, float]) -> list[str]:
    """Documents, best first; where scores are equal as 32-bit floats, the greater id comes first.

    This is trec_eval's order. Not all of ir_measures keeps to it: its Judged and RR@k take the
    smaller id first.
    """
    pairs = zip(singles(hits.values()), hits, strict=True)
    return [document for _, document in sorted(pairs, reverse=True)]


class Ranked:
    """Material with its answers ranked.

    Attributes:
        material: what was given.
        queries: query id -> language, of the queries that are to be counted.
        rankings: query id -> documents, best first, for the queries that have an answer.
    """

    def __init__(self, material: Material, queries: Mapping[str, str | None] | None = None) -> None:
        self.material = material
        self.queries = material.queries if queries is None else queries

    @cached_property
    def rankings(self) -> Mapping[str, Sequence[str]]:
        """Query id -> documents, best first."""
        run = self.material.run
        return {query: ranking(hits) for query, hits in run.items() if hits and query in self.material.queries}

    @cached_property
    def run(self) -> dict[str, dict[str, float]]:
        """The same as scores that have no ties, so that every provider of ir_measures ranks alike."""
        return {
            query: {document: float(len(documents) - place) for place, document in enumerate(documents)}
            for query, documents in self.rankings.items()
        }

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Translation group -> its documents."""
        members: dict[str, list[str]] = {}
        for document, group in self.material.groups.items():
            if group is not None:
                members.setdefault(group, []).append(document)
        return members

    def top(self, query: str, depth: int) -> Sequence[str]:
        """The first documents of a query's answer."""
        return self.rankings.get(query, ())[:depth]

    def language(self, document: str) -> str | None:
        """A document's language, None where it is unknown."""
        return self.material.documents.get(document)

    def relevant(self, query: str) -> dict[str, int]:
        """The relevant documents of a query, and their grades."""
        return {document: grade for document, grade in self.material.qrels.get(query, {}).items() if grade > 0}

    def by_language(self) -> dict[str, list[str]]:
        """Query language -> queries, sorted by language, without queries of unknown language."""
        asked: dict[str, list[str]] = {}
        for query, language in self.queries.items():
            if language is not None:
                asked.setdefault(language, []).append(query)
        return dict(sorted(asked.items()))

    def only(self, queries: Collection[str]) -> Ranked:
        """The same answers, for some of the queries to be counted."""
        asked = self.material.queries
        part = Ranked(self.material, {query: asked[query] for query in queries if query in asked})
        part.__dict__.update(rankings=self.rankings, run=self.run, members=self.members)
        return part
