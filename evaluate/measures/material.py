"""What a measure may look at: judgements, answers, languages, and what a few measures need beside these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langshift.evaluate.datasets.dataset import POOLED
from langshift.evaluate.datasets.qrels import Qrels

Run = Mapping[str, Mapping[str, float]]
"""Query id -> document id -> score; a query that is missing or empty had no answer."""


@dataclass(frozen=True)
class Material:
    """A run, its judgements, and what is known of the queries and documents.

    Attributes:
        qrels: query id -> document id -> grade; above 0 is relevant.
        run: the answers.
        queries: query id -> language, None where unknown, for all queries that were asked.
        documents: document id -> language (primary tag), None where unknown. A relevant document, or a
            query, of unknown language stays out of the measures by language.
        groups: document id -> translation group, None where it has none.
        group_scores: query id -> document id -> score, for every document of the query's target group that
            the retriever gives a score, also below the cut of ``run``. A document that it does not match is
            absent, and so is a query whose group was not scored.
        evidence: query id -> document id -> where in the document the evidence is: the mean of its first and
            last character's place, by the document's length in characters, 0 to 1.
        lengths: document id -> length in tokens, of the original counterpart where it is a translation.
        judged: ``"per-language"`` where documents were judged only for queries in their own language, so
            that a relevant document in another language counts as not relevant; else ``"pooled"``.
    """

    qrels: Qrels
    run: Run
    queries: Mapping[str, str | None]
    documents: Mapping[str, str | None]
    groups: Mapping[str, str | None] = field(default_factory=dict)
    group_scores: Run = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    judged: str = POOLED
