"""What measures share: a run in trec_eval's order, what is judged, and scores by query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import POOLED, Qrels, gather

#: Query id -> document id -> score; a query that is missing or empty had no answer.
Run = Mapping[str, Mapping[str, float]]
#: Query id -> document id -> first character in the document's text, and the one after the last.
Spans = Mapping[str, Mapping[str, tuple[int, int]]]


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
        spans: query id -> document id -> the evidence's characters in the document's text.
        passages: query id -> document id -> the characters of the passage that a hit showed; a hit without one,
            such as any in an index of whole documents, is absent.
        held: language -> documents of the index that was searched, where the documents are not all known.
        judged: ``"per-language"`` where documents were judged only for queries in their own language, so
            that a relevant document in another language counts as not relevant; else ``"pooled"``.
        outside: query id -> documents that it did not search; ``qrels`` and ``group_scores`` have none of them.
    """

    qrels: Qrels
    run: Run
    queries: Mapping[str, str | None]
    documents: Mapping[str, str | None]
    groups: Mapping[str, str | None] = field(default_factory=dict)
    group_scores: Run = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    spans: Spans = field(default_factory=dict)
    passages: Spans = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    judged: str = POOLED
    outside: Mapping[str, Collection[str]] = field(default_factory=dict)


def as_float32(scores: Collection[float]) -> list[float]:
    """Scores as trec_eval compares them: as 32-bit floats."""
    with np.errstate(over="ignore"):
        found: list[float] = np.array(list(scores), dtype=np.float64).astype(np.float32).tolist()
    return found


def ranking(hits: Mapping[str, float]) -> list[str]:
    """Documents, best first; where scores are equal as 32-bit floats, the greater id comes first.

    This is trec_eval's order. Not all of ir_measures keeps to it: its Judged and RR@k take the
    smaller id first.
    """
    pairs = zip(as_float32(hits.values()), hits, strict=True)
    return [document for _, document in sorted(pairs, reverse=True)]


class RankedMaterial:
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
        return gather((group, document) for document, group in self.material.groups.items())

    def top(self, query: str, depth: int) -> Sequence[str]:
        """The first documents of a query's answer."""
        return self.rankings.get(query, ())[:depth]

    def language(self, document: str) -> str | None:
        """A document's language, None where it is unknown."""
        return self.material.documents.get(document)

    def relevant(self, query: str) -> dict[str, int]:
        """The relevant documents of a query, and their grades."""
        return {document: grade for document, grade in self.material.qrels.get(query, {}).items() if grade > 0}

    def languages_of_relevant(self, query: str) -> dict[str, str]:
        """The relevant documents of a query whose language is known, and that language."""
        languages = {document: self.language(document) for document in self.relevant(query)}
        return {document: language for document, language in languages.items() if language is not None}

    def by_language(self) -> dict[str, list[str]]:
        """Query language -> queries, sorted by language, without queries of unknown language."""
        return dict(sorted(gather((language, query) for query, language in self.queries.items()).items()))

    def only(self, queries: Collection[str]) -> RankedMaterial:
        """The same answers, for some of the queries to be counted."""
        languages = self.material.queries
        part = RankedMaterial(self.material, {query: languages[query] for query in queries if query in languages})
        part.__dict__.update(rankings=self.rankings, run=self.run, members=self.members)
        return part


#: The row or column of a table that holds all of what it also has in parts.
ALL = "all"


class MeasureCell(NamedTuple):
    """A figure of a table (None where it has none) and the number of queries behind it."""

    mean: float | None
    queries: int


class MeasureTable(NamedTuple):
    """A measure's figures in rows and columns, such as query language by document language.

    Attributes:
        rows: what a row is.
        columns: what a column is.
        cells: row -> column -> cell; a cell that is missing has no query.
    """

    rows: str
    columns: str
    cells: Mapping[str, Mapping[str, MeasureCell]]

    @property
    def heads(self) -> list[str]:
        """The columns, in the order in which rows bring them."""
        return list(dict.fromkeys(column for row in self.cells.values() for column in row))

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object."""
        cells = {row: {head: cell._asdict() for head, cell in cells.items()} for row, cells in self.cells.items()}
        return {"rows": self.rows, "columns": self.columns, "cells": cells}


@dataclass(frozen=True)
class Scores:
    """One measure over a run.

    Attributes:
        per_query: query id -> figure, for each query that the measure counts.
        left_out: how many queries it does not count.
        note: what a reader must know of the figure, such as why there is none, to follow the name and a colon;
            or None.
        table: the figures behind it in rows and columns, where it has such.
        pooled: the figure and how many queries it is over, where it belongs to a set of queries and is not the mean
            of ``per_query``, which may be empty.
        again: computes the same measure over other queries, where its figure or table changes with the set.
    """

    per_query: Mapping[str, float]
    left_out: int
    note: str | None = None
    table: MeasureTable | None = None
    pooled: MeasureCell | None = None
    again: Callable[[Collection[str]], Scores] | None = field(default=None, repr=False, compare=False)

    @property
    def queries(self) -> int:
        """How many queries the mean is over."""
        return self.pooled.queries if self.pooled else len(self.per_query)

    @property
    def mean(self) -> float | None:
        """The mean over the queries; None where there is none."""
        return self.pooled.mean if self.pooled else mean_of(self.per_query.values())

    @property
    def cells(self) -> Mapping[str, Mapping[str, MeasureCell]]:
        """Row -> column -> figure of the table; empty where there is none."""
        return self.table.cells if self.table else {}

    def over(self, queries: Iterable[str]) -> Scores:
        """The same measure over some of the queries."""
        wanted = list(queries)
        if self.again is not None:
            return self.again(wanted)
        per_query = {query: self.per_query[query] for query in wanted if query in self.per_query}
        return Scores(per_query, len(wanted) - len(per_query))


def mean_of(figures: Collection[float]) -> float | None:
    """The mean; None where there is no figure."""
    return fmean(figures) if figures else None


class MeasureOption(NamedTuple):
    """A setting that a measure's name may give, as in ``Lang_nDCG(same=2)@20``.

    Attributes:
        default: its value where the name does not give it.
        says: which values fit, in words.
        fits: whether a value does.
    """

    default: Any
    says: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class MeasureFamily:
    """A measure less its cutoff and options.

    Attributes:
        written: how the name is written, with ``k`` for a rank.
        direction: which way is good; ``report`` where that depends on what the searcher wants.
        source: where it is defined.
        compute: gives the figures; its docstring is the definition, and ends with the direction and the source.
        options: what the name may set.
        across: whether it compares languages by judgement, which data that is judged per language cannot.
    """

    written: str
    direction: Literal["high", "low", "report"]
    source: str
    compute: Callable[[Measure, RankedMaterial], Scores]
    options: Mapping[str, MeasureOption] = field(default_factory=dict)
    across: bool = False

    @property
    def name(self) -> str:
        """The name before the ``@``."""
        return self.written.removesuffix("@k")

    def check(self, measure: Measure) -> None:
        """Refuse a cutoff or options that the family does not take.

        Raises:
            UsageError: the name is written wrongly.
        """
        if self.written.endswith("@k") is not isinstance(measure.cutoff, int):
            raise UsageError(f"{measure.name!r} is not a valid form of {self.name}: write {self.written_out}.")
        for key, value in measure.options.items():
            if key not in self.options:
                takes = f"its options are {' and '.join(self.options)}" if self.options else "it has no options"
                raise UsageError(f"{measure.name!r} sets {key!r}, which is not an option of {self.name}: {takes}.")
            if not self.options[key].fits(value):
                raise UsageError(f"{measure.name!r} sets {key} to {value!r}: give {self.options[key].says}.")

    @property
    def written_out(self) -> str:
        """How the name is written, with what ``k`` is."""
        return f"{self.written}, where k is a rank such as 20" if self.written.endswith("@k") else self.written


class Measure(NamedTuple):
    """A measure with its cutoff and options, such as ``TLR@20``.

    Attributes:
        family: what it is.
        cutoff: what follows the ``@``; a rank, but for the few of ir_measures that take a share; None
            where nothing does.
        options: what stands in brackets.
        name: the name as it was written, without white space.
    """

    family: MeasureFamily
    cutoff: int | float | None
    options: Mapping[str, Any]
    name: str

    @property
    def depth(self) -> int:
        """The cutoff as a rank, of a family that takes one."""
        return cast("int", self.cutoff)

    def option(self, key: str) -> Any:  # noqa: ANN401 - whatever type the option has
        """The value of an option, its default where the name does not give it."""
        return self.options.get(key, self.family.options[key].default)
