"""The parts of a report, in the order in which its forms show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from langshift.evaluate.compare.document import in_words
from langshift.evaluate.compare.sections import SECTIONS
from langshift.evaluate.report import tables
from langshift.evaluate.report.building import Report
from langshift.evaluate.report.compare_tables import tally
from langshift.evaluate.report.drawing import Drawing
from langshift.evaluate.report.examples import examples
from langshift.evaluate.report.tables import Cell, Head, Table
from langshift.evaluate.report.told import Told, facts

PERCENTILES = ("p50", "p90", "p95", "p99")
_TIMED = {
    "took": "took: the server's own figure",
    "service": "service: from sending a query until the client had the whole answer",
    "wall": "wall: until the client had the whole answer",
    "wall_corrected": "wall corrected: with the queries that would have come while one was waited for",
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
    draw: Callable[[], list[Drawing]] = list


def sections(report: Report) -> list[Section]:
    """All parts that have something to show."""
    return [part for part in _sections(report) if part.tables or part.notes or part.draw is not list]


def _sections(report: Report) -> Iterator[Section]:
    yield _before_and_after(report)
    yield Section("advice", "Which to use", notes=report.found.advice)
    yield _by_language(report)
    yield from _of_languages(report)
    yield from _of_alpha(report)
    yield _latency(report)
    yield from _examples(report)
    yield _run(report)


def _before_and_after(report: Report) -> Section:
    compared = report.found.compared
    present = dict.fromkeys(column.section for column in compared.columns)
    made = [tables.figures(compared, section, SECTIONS[section]) for section in present]
    if len(compared.candidates) < 2:
        return Section("figures", "Figures", made)
    note = f"A star (*) marks a change that is significant. {in_words(compared.clusters)}"
    return Section("figures", "Before and after", made, [note])


def _by_language(report: Report) -> Section:
    compared = report.found.compared
    letters = [run.letter for run in compared.candidates]
    made = [
        tables.by_language(compared, section, letter)
        for letter in letters[1:] or letters
        for section in dict.fromkeys(column.section for column in compared.columns)
    ]
    if compared.slices:
        made += [tables.by_slice(compared, letter) for letter in letters[1:]]
    return Section("languages", "By query language", made)


def _of_languages(report: Report) -> Iterator[Section]:
    from langshift.evaluate.report import drawing

    compared = report.found.compared
    yield Section(
        "shares",
        "Languages of what is found",
        draw=lambda: [*drawing.rank_shares(report), *drawing.language_shares(report)],
    )
    if report.outcomes:
        named = [(compared.candidate(letter).label, scores) for letter, scores in report.outcomes.items()]
        meaning = (
            "perfect: relevant and in the query's language. lang_fail: relevant, in another language. sem_fail: not "
            "relevant, in the query's language. both_fail: neither."
        )
        yield Section(
            "first", "The first document", [tables.outcomes(named)], [meaning], lambda: drawing.first_documents(report)
        )
    if report.found.matrices:
        yield Section(
            "matrix",
            "Query language by document language",
            [table for matrix in report.found.matrices for table in tables.recalls(matrix)],
            draw=lambda: [
                one
                for matrix in report.found.matrices
                for one in drawing.recalls(matrix, [compared.candidate(letter).label for letter in matrix.pair])
            ],
        )


def _of_alpha(report: Report) -> Iterator[Section]:
    from langshift.evaluate.report import over_alpha

    notes = []
    if not report.sweeps:
        dataset = report.found.compared.dataset.folder
        notes.append(
            "For the curve between the alphas of the runs, give a sweep, too: "
            f"langshift evaluate sweep {dataset} --beta 0,.02,.05,.1 --json > sweep.json"
        )
    yield Section("alpha", "By alpha", notes=notes, draw=lambda: over_alpha.alpha_curves(report))
    if len(over_alpha.points_of(report)) > 1:
        yield Section("frontier", "Ranking against language preference", draw=lambda: over_alpha.frontiers(report))


def _latency(report: Report) -> Section:
    from langshift.evaluate.report import drawing

    known = {
        run.label: {name: found for name in _TIMED if (found := _percentiles(report.told[run.letter], name))}
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
    table = Table("Milliseconds a query", heads, rows)
    return Section("latency", "Latency", [table], notes, lambda: drawing.latencies(walls, PERCENTILES))


def _percentiles(told: Told, name: str) -> dict[str, float]:
    found = told.latency_ms.get(name, {})
    return {place: value for place in PERCENTILES if (value := found.get(place)) is not None}


def _milliseconds(value: float | None) -> Cell:
    return Cell("-" if value is None else f"{value:,.1f}")


def _examples(report: Report) -> Iterator[Section]:
    compared = report.found.compared
    for extreme in report.found.examples:
        labels = [compared.candidate(letter).label for letter in extreme.pair]
        yield Section(
            f"examples-{extreme.pair[1]}",
            f"Who gains and loses most: {labels[1]} against {labels[0]}",
            examples(extreme, labels),
            [tally(extreme)],
        )


def _run(report: Report) -> Section:
    found = {run.label: facts(run, report.told[run.letter]) for run in report.found.compared.candidates}
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    rows = [[Cell(name), *(Cell(known.get(name, "-")) for known in found.values())] for name in names]
    table = Table("The runs", [Head(""), *map(Head, found)], rows, words=True)
    made = f"Made by langshift {report.version}" + (f" (commit {report.commit})" if report.commit else "")
    return Section("run", "What was run", [table], [made + (f" as: {report.command}" if report.command else ".")])
