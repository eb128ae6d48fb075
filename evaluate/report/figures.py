"""Which figures and sections a report has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.compare.breakdowns import RecallMatrix
from langshift.evaluate.compare.comparison import ALL, SECTIONS, Column, ComparedRun, Comparison, sign
from langshift.evaluate.compare.findings import describe_test
from langshift.evaluate.figures.charts import (
    PERCENTILES,
    FrontierPoint,
    Line,
    bars,
    curves,
    frontier,
    grouped_bars,
    percentiles,
)
from langshift.evaluate.figures.heatmap import DEPTH, by_language, by_rank, heatmap
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.fairness import FIFTHS, LPR, OUTCOMES
from langshift.evaluate.report import tables
from langshift.evaluate.report.report import Report, RunInfo, SavedSweep, facts
from langshift.evaluate.report.tables import Cell, Head, Table, examples, tally
from langshift.wording import format_score

# Beyond these, numbers in a heatmap's cells cannot be read.
_ANNOTATED = 14


#: A figure: what it shows, in words, and itself as ``<svg>``.
ReportFigure = tuple[str, str]


def rank_shares(report: Report) -> list[ReportFigure]:
    """Share of each document language at each of the first ranks, a heatmap a run: the paper's Figure 2."""
    compared = report.found.compared
    language, languages = main_query_language(report), compared.languages
    found: dict[str, _Grid] = {}
    for run in compared.candidates:
        shares = by_rank(run.run, languages.queries, languages.documents, language)
        caption = f"{run.label}: languages of the first {DEPTH} documents, {shares.queries:,} queries in {language}"
        found[caption] = shares.rows, shares.columns, shares.values
    return _heatmaps(found, "shares", "share", ("document language", "rank"))


def main_query_language(report: Report) -> str:
    """The pivot's language where queries are in it, else the one that most are in."""
    parts = report.found.compared.by_language
    pivots = [(info.fingerprint or {}).get("pivot") for info in report.run_info.values()]
    known = [pivot for pivot in pivots if isinstance(pivot, str) and pivot in parts]
    return known[-1] if known else max(parts, key=lambda language: len(parts[language].queries))


def language_shares(report: Report) -> list[ReportFigure]:
    """Share of each document language among the first documents, by query language, a heatmap a run."""
    languages = report.found.compared.languages
    found: dict[str, _Grid] = {}
    for run in report.found.compared.candidates:
        shares = by_language(run.run, languages.queries, languages.documents)
        caption = f"{run.label}: languages of the first {DEPTH} documents by query language"
        found[caption] = shares.rows, shares.columns, shares.values
    return _heatmaps(found, "shares", "share", ("query language", "document language"))


def recalls(found: RecallMatrix, labels: Sequence[str]) -> list[ReportFigure]:
    """Recall by query and document language, before and after."""
    titles = ("query language", "document language")
    grids: dict[str, _Grid] = {}
    for label, side in zip(labels, ("before", "after"), strict=True):
        caption = f"{label}: {found.measure} by {titles[0]} and {titles[1]}"
        rows = [[getattr(cells.get(head), side, math.nan) for head in found.heads] for cells in found.cells.values()]
        grids[caption] = list(found.cells), found.heads, np.array(rows)
    return _heatmaps(grids, "recall", found.measure, titles, highest=1.0)


#: Labels of rows, those of columns, and the figures, rows x columns.
_Grid = tuple[Sequence[str], Sequence[str], NDArray[np.float64]]


def _heatmaps(
    grids: Mapping[str, _Grid], kind: str, scale_title: str, titles: tuple[str, str], highest: float | None = None
) -> list[ReportFigure]:
    """Draw heatmaps of one scale, which are looked at side by side.

    Args:
        grids: caption -> what to draw.
        kind: what the figures are, for those who do not see them.
        scale_title: likewise, beside the scale.
        titles: what rows and columns are.
        highest: the figure of full colour; the greatest of all if not given.
    """
    known = [float(np.nanmax(values)) for *_, values in grids.values() if values.size and not np.isnan(values).all()]
    return [
        _drawn(
            caption,
            f"A heatmap of {kind}: {titles[0]} in rows, {titles[1]} in columns.",
            partial(heatmap, rows, columns, values),
            row_title=titles[0],
            column_title=titles[1],
            scale_title=scale_title,
            annotate=len(columns) <= _ANNOTATED,
            vmin=0.0,
            vmax=max([*known, 1e-9]) if highest is None else highest,
        )
        for caption, (rows, columns, values) in grids.items()
    ]


def _drawn(caption: str, description: str, draw: Callable[..., str], **options: object) -> ReportFigure:
    return caption, draw(title=caption, description=description, **options)


def first_documents(report: Report) -> list[ReportFigure]:
    """The four outcomes of the first document, a bar a run."""
    compared, found = report.found.compared, report.outcomes.items()
    shown = {compared.candidate(letter).label: cells for letter, scores in found if (cells := scores.cells.get(ALL))}
    if not shown:
        return []
    shares = np.array([[cells[outcome].mean or 0.0 for outcome in OUTCOMES] for cells in shown.values()])
    caption = "The first document: relevant and in the query's language (perfect), or how it fails"
    parts = [outcome.replace("_", " ") for outcome in OUTCOMES]
    description = f"One bar per run, divided into {', '.join(OUTCOMES)}; the table has the figures."
    return [_drawn(caption, description, partial(bars, list(shown), parts, shares))]


def latencies(timed: Mapping[str, Mapping[str, float]]) -> list[ReportFigure]:
    """Percentiles of the time that a query took, a row a run."""
    if not timed:
        return []
    draw = partial(percentiles, list(timed), np.array([[row[name] for name in PERCENTILES] for row in timed.values()]))
    return [_drawn("Time until the client received the whole response", "Latency percentiles, one row per run.", draw)]


def alpha_curves(report: Report) -> list[ReportFigure]:
    """Measures by alpha, from each sweep and from runs that differ in alpha only: the paper's Figure 3."""
    drawings = [_swept(name, sweep) for name, sweep in report.sweeps.items() if sweep.alpha]
    for alphas in _by_alpha(report):
        compared = report.found.compared
        lines = [
            _line(column.measure, [(alpha, compared.mean(run.letter, column)) for alpha, run in alphas])
            for column in _directed(compared)
        ]
        letters = ", ".join(run.letter for _, run in alphas)
        drawings.append(_curves(f"Measures by alpha, from runs {letters}", lines, None))
    return drawings


def _swept(name: str, sweep: SavedSweep) -> ReportFigure:
    # LPR is of another scale; it is in the frontier.
    measures = [name for name in dict.fromkeys(name for point in sweep.alpha for name in point.all) if name != LPR.name]
    lines = [_line(measure, [(point.alpha, point.all.get(measure)) for point in sweep.alpha]) for measure in measures]
    return _curves(f"Measures by alpha, from {name}; best alpha chosen by {sweep.select}", lines, sweep.best.alpha)


def _line(measure: str, points: Sequence[tuple[float, float | None]]) -> Line:
    return Line(measure, [x for x, _ in points], [math.nan if y is None else y for _, y in points])


def _curves(caption: str, lines: Sequence[Line], best: float | None) -> ReportFigure:
    return _drawn(
        caption,
        f"One curve over alpha for each of {', '.join(line.name for line in lines)}.",
        partial(curves, lines),
        y_title="mean over all queries",
        marked=None if best is None else (best, "best"),
    )


def _by_alpha(report: Report) -> list[list[tuple[float, ComparedRun]]]:
    """Runs that differ in alpha only, by alpha; two at least of different alphas."""
    found: dict[str, dict[float, ComparedRun]] = {}
    for run in report.found.compared.candidates:
        info = report.run_info[run.letter]
        made = dict(info.fingerprint or {})
        alpha = made.pop("alpha", None)
        if isinstance(alpha, int | float) and not made.get("alphas"):
            key = repr(
                (sorted(made.items()), run.how, info.mode, info.method, info.shift_queries, info.beta, info.gamma)
            )
            found.setdefault(key, {}).setdefault(float(alpha), run)
    return [sorted(runs.items(), key=lambda item: item[0]) for runs in found.values() if len(runs) > 1]


def _directed(compared: Comparison) -> list[Column]:
    """One column for each measure of which more is better."""
    found: dict[str, Column] = {}
    for column in compared.columns:
        if sign(column) > 0 and column.measure != LPR.name:
            found.setdefault(column.measure, column)
    return list(found.values())


def frontiers(report: Report) -> list[ReportFigure]:
    """Ranking against LPR, a point a run, and sweeps' language preferences: what preferring a language costs.

    Empty where LPR was not measured twice at least.
    """
    column, points = _ranking(report.found.compared), points_of(report)
    if column is None or len(points) < 2:
        return []
    caption = (
        f"{column.measure} against LPR: points further up rank better; further right, the best document is more often "
        "in the query's language"
    )
    description = "One point per run; the points of a sweep are connected."
    return [_drawn(caption, description, partial(frontier, points), x_title=LPR.name, y_title=column.measure)]


def points_of(report: Report) -> list[FrontierPoint]:
    """The points to draw: LPR and how well is ranked."""
    compared = report.found.compared
    column, fair = _ranking(compared), Column(ALL, LPR.name)
    if column is None:
        return []
    runs = compared.candidates if fair in compared.columns else ()
    known = [(run.label, compared.mean(run.letter, fair), compared.mean(run.letter, column), "") for run in runs]
    for sweep in report.sweeps.values():
        # Those without a preference are among the others where any was tried.
        for point in sweep.beta or sweep.alpha:
            name, path = f"{point.alpha:g}", "alpha"
            if sweep.beta:
                name, path = f"beta {point.beta:g}", f"alpha {point.alpha:g}"
            known.append((name, point.all.get(LPR.name), point.all.get(column.measure), path))
    return [FrontierPoint(name, x, y, path) for name, x, y, path in known if x is not None and y is not None]


def _ranking(compared: Comparison) -> Column | None:
    return next((found for found in compared.columns if found.measure.startswith("nDCG")), compared.primary)


_TIMED = {
    "took": "took: as reported by the server",
    "service": "service: from sending a query until the client received the whole response",
    "wall": "wall: until the client received the whole response",
    "wall_corrected": "wall corrected: including the queries that would have arrived during a slow response",
}


class Section(NamedTuple):
    """A part of the report.

    Attributes:
        key: names it in addresses within the page.
        title: its heading.
        tables: in order.
        notes: sentences below the heading.
        draw: draws its figures.
    """

    key: str
    title: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    draw: Callable[[], list[ReportFigure]] = list


def sections(report: Report) -> list[Section]:
    """All parts that have something to show."""
    return [part for part in _sections(report) if part.tables or part.notes or part.draw is not list]


def _sections(report: Report) -> Iterator[Section]:
    yield _before_and_after(report)
    yield _by_language(report)
    yield from _of_languages(report)
    yield from _of_positions(report)
    yield from _of_alpha(report)
    yield _latency(report)
    yield from _examples(report)
    yield _run(report)


def _before_and_after(report: Report) -> Section:
    compared = report.found.compared
    made = [tables.figures(compared, section, SECTIONS[section]) for section in compared.sections]
    if len(compared.candidates) < 2:
        return Section("figures", "Figures", made)
    note = f"A star (*) marks a significant change. {describe_test(compared.clusters)}"
    return Section("figures", "Before and after", made, [note])


def _by_language(report: Report) -> Section:
    compared = report.found.compared
    first, *later = compared.letters
    parts = ((letter, section) for letter in later or [first] for section in compared.sections)
    made = [tables.by_language(compared, section, letter) for letter, section in parts]
    if compared.slices:
        made += [tables.by_slice(compared, letter) for letter in later]
    return Section("languages", "By query language", made)


def _of_languages(report: Report) -> Iterator[Section]:
    compared = report.found.compared
    most = tables.most_shown_table(report.found.most_shown)
    yield Section(
        "shares",
        "Languages of the hits",
        [most] if most else [],
        draw=lambda: [*rank_shares(report), *language_shares(report)],
    )
    if report.outcomes:
        named = [(compared.candidate(letter).label, scores) for letter, scores in report.outcomes.items()]
        meaning = (
            "perfect: relevant and in the query's language. lang_fail: relevant, in another language. sem_fail: not "
            "relevant, in the query's language. both_fail: neither."
        )
        first = [tables.outcomes_table(named)]
        yield Section("first", "The first document", first, [meaning], lambda: first_documents(report))
    if matrices := report.found.matrices:
        yield Section(
            "matrix",
            "Query language by document language",
            [table for matrix in matrices for table in tables.recalls(matrix)],
            draw=lambda: [one for matrix in matrices for one in recalls(matrix, compared.labels(matrix.pair))],
        )


def _of_positions(report: Report) -> Iterator[Section]:
    positions = report.found.positions
    found = {report.found.compared.candidate(letter).label: scores for letter, scores in positions.items()}
    if found:
        note = (
            "PSI is 0 where the place in the document does not matter; its floor is what chance alone makes of it, on "
            "average and at its 95th percentile. EvidenceHit counts queries for which a passage shows the evidence."
        )
        shown = [tables.positions_table(found), tables.fifths_table(found)]
        yield Section("positions", "Place of the evidence", shown, [note], lambda: by_fifth(found))


def by_fifth(found: Mapping[str, Mapping[str, Scores]]) -> list[ReportFigure]:
    """NDCG by fifth of the document, a group of bars a run; ``found`` has each run's measures, PSI the first."""
    cells = [next(iter(scores.values())).cells for scores in found.values()]
    means = [[cell.mean if (cell := of.get(name, {}).get(ALL)) else None for name in FIFTHS] for of in cells]
    draw = partial(grouped_bars, list(found), FIFTHS, np.array(means, dtype=np.float64), figure=format_score)
    caption = tables.fifths_table(found).caption
    return [_drawn(caption, "A group of bars per run, one for each fifth of the document, its beginning first.", draw)]


def _of_alpha(report: Report) -> Iterator[Section]:
    dataset = report.found.compared.dataset.folder
    note = (
        "For the curve between the alphas of the runs, also give a sweep: "
        f"langshift evaluate sweep {dataset} --prefer-language 0,.02,.05,.1 --json > sweep.json"
    )
    yield Section("alpha", "By alpha", notes=[] if report.sweeps else [note], draw=lambda: alpha_curves(report))
    if len(points_of(report)) > 1:
        yield Section("frontier", "Ranking against language preference", draw=lambda: frontiers(report))


def _latency(report: Report) -> Section:
    known = {
        run.label: {name: found for name in _TIMED if (found := _percentiles(report.run_info[run.letter], name))}
        for run in report.found.compared.candidates
    }
    present = [name for name in _TIMED if any(name in timed for timed in known.values())]
    if not present:
        return Section("latency", "Latency")
    heads = [Head("run"), *(Head(place, name.replace("_", " ")) for name in present for place in PERCENTILES)]
    rows = [
        [Cell(label), *(_milliseconds(timed.get(name, {}).get(place)) for name in present for place in PERCENTILES)]
        for label, timed in known.items()
        if timed
    ]
    walls = {label: timed["wall"] for label, timed in known.items() if len(timed.get("wall", {})) == len(PERCENTILES)}
    notes = ["; ".join(_TIMED[name] for name in present) + "."]
    table = Table("Milliseconds per query", heads, rows)
    return Section("latency", "Latency", [table], notes, lambda: latencies(walls))


def _percentiles(info: RunInfo, name: str) -> dict[str, float]:
    found = info.latency_ms.get(name, {})
    return {place: value for place in PERCENTILES if (value := found.get(place)) is not None}


def _milliseconds(value: float | None) -> Cell:
    return Cell("-" if value is None else f"{value:,.1f}")


def _examples(report: Report) -> Iterator[Section]:
    for extreme in report.found.examples:
        labels = report.found.compared.labels(extreme.pair)
        title = f"Queries that gain and lose most: {labels[1]} against {labels[0]}"
        yield Section(f"examples-{extreme.pair[1]}", title, examples(extreme, labels), [tally(extreme)])


def _run(report: Report) -> Section:
    found = {run.label: facts(run, report.run_info[run.letter]) for run in report.found.compared.candidates}
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    rows = [[Cell(name), *(Cell(known.get(name, "-")) for known in found.values())] for name in names]
    table = Table("The runs", [Head(""), *map(Head, found)], rows, words=True)
    made = f"Generated by langshift {report.version}" + (f" (commit {report.commit})" if report.commit else "")
    return Section("run", "What was run", [table], [made + (f" with: {report.command}" if report.command else ".")])
