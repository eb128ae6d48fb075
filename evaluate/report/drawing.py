"""The report's figures: which arrays and labels each of them is drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from langshift.evaluate.compare.matrix import Matrix
from langshift.evaluate.figures.bars import bars
from langshift.evaluate.figures.heatmap import heatmap
from langshift.evaluate.figures.percentiles import percentiles
from langshift.evaluate.figures.shares import Shares, by_language, by_rank
from langshift.evaluate.measures.top1 import ALL as EVERY
from langshift.evaluate.measures.top1 import OUTCOMES
from langshift.evaluate.report.building import Report

DEPTH = 20
# Beyond these, numbers in a heatmap's cells cannot be read.
_ANNOTATED = 14


class Drawing(NamedTuple):
    """A figure: what it shows, in words, and itself as ``<svg>``."""

    caption: str
    svg: str


def rank_shares(report: Report) -> list[Drawing]:
    """Share of each document language at each of the first ranks, a heatmap a run: the paper's Figure 2."""
    compared = report.found.compared
    language = asked_language(report)
    found = {
        run.label: by_rank(run.run, compared.languages.queries, compared.languages.documents, language, depth=DEPTH)
        for run in compared.candidates
    }
    captions = {
        label: f"{label}: languages of the first {DEPTH} documents, {shares.queries:,} queries in {language}"
        for label, shares in found.items()
    }
    return _side_by_side(found, captions, ("document language", "rank"), annotated=0)


def asked_language(report: Report) -> str:
    """The pivot's language where queries are in it, else the one that most are in."""
    asked = report.found.compared.asked
    for told in reversed(list(report.told.values())):
        pivot = (told.fingerprint or {}).get("pivot")
        if isinstance(pivot, str) and pivot in asked:
            return pivot
    return max(asked, key=lambda language: len(asked[language]))


def language_shares(report: Report) -> list[Drawing]:
    """Share of each document language among the first documents, by query language, a heatmap a run."""
    compared = report.found.compared
    found = {
        run.label: by_language(run.run, compared.languages.queries, compared.languages.documents, depth=DEPTH)
        for run in compared.candidates
    }
    captions = {label: f"{label}: languages of the first {DEPTH} documents by query language" for label in found}
    return _side_by_side(found, captions, ("query language", "document language"), annotated=_ANNOTATED)


def _side_by_side(
    found: Mapping[str, Shares], captions: Mapping[str, str], titles: tuple[str, str], *, annotated: int
) -> list[Drawing]:
    """A heatmap a run, of one scale; with figures in its cells where it has no more columns than ``annotated``."""
    highest = _highest([shares.values for shares in found.values()])
    return [
        Drawing(
            captions[label],
            heatmap(
                shares.rows,
                shares.columns,
                shares.values,
                title=captions[label],
                description=f"A heatmap of shares: {titles[0]} in rows, {titles[1]} in columns.",
                row_title=titles[0],
                column_title=titles[1],
                scale_title="share",
                annotate=len(shares.columns) <= annotated,
                vmin=0.0,
                vmax=highest,
            ),
        )
        for label, shares in found.items()
    ]


def recalls(found: Matrix, labels: Sequence[str]) -> list[Drawing]:
    """Recall by query and document language, before and after."""
    drawings = []
    for label, side in zip(labels, ("before", "after"), strict=True):
        values = np.array(
            [
                [getattr(cells[head], side) if head in cells else math.nan for head in found.heads]
                for cells in found.cells.values()
            ]
        )
        caption = f"{label}: {found.measure} by query language and document language"
        drawn = heatmap(
            list(found.cells),
            found.heads,
            values,
            title=caption,
            description="A heatmap of recall: query language in rows, document language in columns.",
            row_title="query language",
            column_title="document language",
            scale_title=found.measure,
            annotate=len(found.heads) <= _ANNOTATED,
            vmin=0.0,
            vmax=1.0,
        )
        drawings.append(Drawing(caption, drawn))
    return drawings


def first_documents(report: Report) -> list[Drawing]:
    """The four outcomes of the first document, a bar a run."""
    rows, shares = [], []
    for letter, scores in report.outcomes.items():
        cells = scores.cells.get(EVERY)
        if cells:
            rows.append(report.found.compared.candidate(letter).label)
            shares.append([cells[outcome].mean or 0.0 for outcome in OUTCOMES])
    if not rows:
        return []
    caption = "The first document: relevant and in the query's language (perfect), or what it lacks"
    drawn = bars(
        rows,
        [outcome.replace("_", " ") for outcome in OUTCOMES],
        np.array(shares),
        title=caption,
        description=f"A bar for each run, parted into {', '.join(OUTCOMES)}; the table has the figures.",
    )
    return [Drawing(caption, drawn)]


def latencies(timed: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> list[Drawing]:
    """Percentiles of the time that a query took, a row a run."""
    if not timed:
        return []
    caption = "Time until the client had the whole answer"
    values = np.array([[row[name] for name in names] for row in timed.values()])
    drawn = percentiles(
        list(timed), values, title=caption, description="Percentiles of the latency, a row a run.", names=tuple(names)
    )
    return [Drawing(caption, drawn)]


def _highest(values: Sequence[np.ndarray]) -> float:
    """One scale for figures that are looked at side by side."""
    found = [float(np.nanmax(part)) for part in values if part.size and not np.isnan(part).all()]
    return max([*found, 1e-9])
