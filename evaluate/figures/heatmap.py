"""Figures of a table: a cell of stronger colour is a greater figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from langshift.evaluate.figures.theme import LINE, MORE, PAPER, SMALL, SvgFigure, drawing, letters_on, plain, wide
from langshift.evaluate.measures.base import Material, RankedMaterial, Run
from langshift.evaluate.measures.fairness import mean, top_distributions
from langshift.languages import UNDETERMINED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HEIGHT = 26
_LABEL, _TITLE = 24, 40
_STEPS = 24


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: ArrayLike,
    *,
    title: str,
    description: str,
    row_title: str = "",
    column_title: str = "",
    scale_title: str = "",
    annotate: bool = True,
    form: str = "{:.2f}",
    vmin: float | None = None,
    vmax: float | None = None,
) -> str:
    """Draw a table as coloured cells.

    Args:
        rows: their labels.
        columns: theirs.
        values: rows x columns; NaN is a cell without a figure, which is hatched.
        title: its name for screen readers; it is not drawn.
        description: what it shows, in words; how many cells are missing is said after it.
        row_title: what the rows are.
        column_title: what the columns are.
        scale_title: what the figures are.
        annotate: write each figure into its cell.
        form: how to write a figure, as ``str.format``.
        vmin: the figure of the paper's own colour; 0 unless there is a smaller one.
        vmax: the figure of full colour; the greatest unless given.

    Returns:
        SVG.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(rows), len(columns))
    low, high = _limits(table, vmin, vmax)
    texts = [_written(value, form) for value in table[np.isfinite(table)]] if annotate else []
    cell = max([32.0, *(wide(text, SMALL) + 8 for text in texts)])
    # Few columns are given more room, up to a width that still reads as a table.
    cell = max(cell, min(64.0, 560 / max(len(columns), 1)))
    tilted = any(wide(name) > cell for name in columns)
    around = 54 + _widest(rows) + 24 * bool(row_title) + wide(form.format(high)) + 20 * bool(scale_title)
    above = 38 + 20 * bool(column_title) + tilted * 0.7 * _widest(columns)
    # As high as its rows, and as the longest of what is written beside them from the bottom to the top.
    side = max(_HEIGHT * len(rows), 78.0, wide(scale_title[:_TITLE]), wide(row_title[:_TITLE]))
    with drawing(cell * len(columns) + around, above + side) as drawn:
        ratios = {"width_ratios": [max(cell * len(columns), 1), 12]}
        axes, bar = drawn.figure.subplots(1, 2, gridspec_kw=ratios)
        _cells(axes, table, low, high, form if annotate else None)
        _labels(drawn, axes, rows, columns, tilted=tilted)
        axes.set(xlabel=drawn.label(column_title), ylabel=drawn.label(row_title))
        _scale(bar, low, high, form)
        bar.set_ylabel(drawn.label(scale_title))
        return drawn.svg(title, f"{description} {_missing(table)}".strip())


def _limits(table: NDArray[np.float64], low: float | None, high: float | None) -> tuple[float, float]:
    known = table[np.isfinite(table)]
    low = low if low is not None else float(known.min(initial=0.0))
    high = high if high is not None else float(known.max(initial=low))
    return low, high if high > low else low + 1


def _written(value: float, form: str) -> str:
    """The figure; one that is written as nought has no minus."""
    text = form.format(value)
    return form.format(0.0) if text == form.format(-0.0) else text


def _opacity(value: float, low: float, high: float) -> float:
    """How much of the full colour a figure has."""
    return round(min(max((value - low) / (high - low), 0.0), 1.0), 2)


def _cells(axes: Axes, table: NDArray[np.float64], low: float, high: float, form: str | None) -> None:
    opacities, missing = {}, []
    for (row, column), value in np.ndenumerate(table):
        if not np.isfinite(value):
            missing.append((column, row))
            continue
        opacity = opacities[column, row] = _opacity(value, low, high)
        if form is not None:
            axes.text(
                column + 0.5, row + 0.5, _written(float(value), form), ha="center", va="center", size=SMALL,
                color=letters_on(MORE, opacity),
            )  # fmt: skip
    _fill(axes, opacities, 1, {"edgecolors": PAPER, "linewidths": 1})
    if missing:
        look = {"facecolors": "none", "edgecolors": LINE, "linewidths": 0, "hatch": "////"}
        _fill(axes, dict.fromkeys(missing, 0.0), 1, look)
    axes.set(xlim=(0, max(table.shape[1], 1)), ylim=(max(table.shape[0], 1), 0))


def _fill(axes: Axes, opacities: Mapping[tuple[float, float], float], height: float, look: Mapping[str, Any]) -> None:
    """Rectangles of width 1 in the colour of greater figures: lower left corner -> opacity."""
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    places = [Rectangle(corner, 1, height) for corner in opacities]
    colours = [to_rgba(MORE, opacity) for opacity in opacities.values()]
    axes.add_collection(PatchCollection(places, **{"facecolors": colours, **look}))


def _widest(labels: Sequence[str]) -> float:
    return max((wide(label[:_LABEL]) for label in labels), default=0.0)


def _labels(drawn: SvgFigure, axes: Axes, rows: Sequence[str], columns: Sequence[str], *, tilted: bool) -> None:
    plain(axes)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.xaxis.labelpad = 8
    lean: dict[str, Any] = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if tilted else {}
    axes.set_xticks(np.arange(len(columns)) + 0.5, [drawn.label(name, _LABEL) for name in columns], **lean)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [drawn.label(name, _LABEL) for name in rows])


def _scale(bar: Axes, low: float, high: float, form: str) -> None:
    step = (high - low) / _STEPS
    steps = [low + (number + 0.5) * step for number in range(_STEPS)]
    _fill(bar, {(0, middle - step / 2): _opacity(middle, low, high) for middle in steps}, step, {"linewidths": 0})
    bar.set(xlim=(0, 1), ylim=(low, high), xticks=[])
    plain(bar)
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    ticks = [low, (low + high) / 2, high]
    bar.set_yticks(ticks, [_written(tick, form) for tick in ticks])


def _missing(table: NDArray[np.float64]) -> str:
    count = int((~np.isfinite(table)).sum())
    return f"{count:,} of {table.size:,} cells have no value and are hatched." if count else ""


DEPTH = 20


class Shares(NamedTuple):
    """A table of shares.

    Attributes:
        rows: their labels.
        columns: theirs.
        values: rows x columns, 0 to 1; NaN where nothing could be counted.
        queries: how many queries with an answer were counted.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: NDArray[np.float64]
    queries: int


def by_rank(
    run: Run, queries: Mapping[str, str | None], documents: Mapping[str, str | None], language: str, depth: int = DEPTH
) -> Shares:
    """Document languages by rank, for the queries in one language: the paper's Figure 2 (section 5.2).

    A cell is the share of that language among the documents at that rank, over the queries that have a
    document there: a column adds to 1, and is NaN where no query has so long an answer.

    Args:
        run: query id -> document id -> score; ranked as trec_eval ranks.
        queries: query id -> language, None where unknown, which counts as ``und``.
        documents: document id -> language, None likewise, of all documents: a language that is never found
            has a row of zeros. A document that is not in it counts as ``und``.
        language: whose queries to count.
        depth: how many ranks.
    """
    ranked = _ranked(run, {query: tag for query, tag in _known(queries).items() if tag == language}, documents)
    tops = [top for query in ranked.queries if (top := ranked.top(query, depth))]
    found = [[ranked.language(document) or UNDETERMINED for document in top] for top in tops]
    rows = _languages(documents, (tag for tags in found for tag in tags))
    place = {tag: number for number, tag in enumerate(rows)}
    counts = np.zeros((len(rows), depth))
    for tags in found:
        for rank, tag in enumerate(tags):
            counts[place[tag], rank] += 1
    totals = counts.sum(axis=0)
    values = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return Shares(rows, [str(rank) for rank in range(1, depth + 1)], values, len(tops))


def by_language(
    run: Run, queries: Mapping[str, str | None], documents: Mapping[str, str | None], depth: int = DEPTH
) -> Shares:
    """Document languages among the first documents, by query language: the table of the measure Share@20.

    A cell is the mean, over the queries of that language that have an answer, of that document language's
    share of the first ``depth``: a row adds to 1, and is NaN where no query has an answer.

    Args:
        run: as in `by_rank`; so are ``queries`` and ``documents``.
        queries: rows are their languages.
        documents: columns are their languages.
        depth: how many of the first documents.
    """
    known = _known(queries)
    found = top_distributions(_ranked(run, known, documents), depth)
    rows = _languages(known, ())
    columns = _languages(documents, (tag for pairs in found.values() for _, tags in pairs for tag in tags))
    values = np.full((len(rows), len(columns)), np.nan)
    for row, pairs in found.items():
        shares = mean([tags for _, tags in pairs])
        values[rows.index(row)] = [shares.get(column, 0.0) for column in columns]
    return Shares(rows, columns, values, sum(len(pairs) for pairs in found.values()))


def _known(languages: Mapping[str, str | None]) -> dict[str, str]:
    return {name: tag or UNDETERMINED for name, tag in languages.items()}


def _ranked(run: Run, queries: Mapping[str, str], documents: Mapping[str, str | None]) -> RankedMaterial:
    return RankedMaterial(Material(qrels={}, run=run, queries=dict(queries), documents=documents))


def _languages(given: Mapping[str, str | None], found: Iterable[str]) -> list[str]:
    """Sorted, ``und`` last."""
    tags = {tag or UNDETERMINED for tag in given.values()} | set(found)
    return sorted(tags, key=lambda tag: (tag == UNDETERMINED, tag))
