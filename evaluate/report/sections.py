"""Which sections a report has, and the tables and pictures of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.compare.comparison import ALL, SECTIONS, Column, ComparedRun, sign
from langshift.evaluate.compare.findings import describe_test
from langshift.evaluate.measures.base import Material, RankedMaterial, Run
from langshift.evaluate.measures.distributions import mean, top_distributions
from langshift.evaluate.measures.preference import LPR
from langshift.evaluate.report import tables
from langshift.evaluate.report.report import Report, RunInfo, facts
from langshift.evaluate.report.scatter import scatter
from langshift.evaluate.report.tables import Cell, Head, Table, bar, examples, heatmap, tally
from langshift.languages import UNDETERMINED
from langshift.settings import VERSION
from langshift.wording import format_score

PERCENTILES = ("p50", "p90", "p95", "p99")
DEPTH = 20


class ReportPicture(NamedTuple):
    """What it shows, in words, and itself as ``<svg>``."""

    caption: str
    svg: str


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


def language_shares(report: Report) -> list[Table]:
    """The languages of the first documents, a table a run, all of one scale.

    By rank for the queries in one language, the paper's Figure 2; then by query language.
    """
    compared = report.found.compared
    language, languages = main_query_language(report), compared.languages
    ranked: dict[str, Shares] = {}
    asked: dict[str, Shares] = {}
    for run in compared.candidates:
        shares = by_rank(run.run, languages.queries, languages.documents, language)
        of = f"{run.label}: languages of the first {DEPTH} documents"
        ranked[f"{of} (rows) by rank, {shares.queries:,} queries in {language}"] = shares
        asked[f"{of} by query language (rows)"] = by_language(run.run, languages.queries, languages.documents)
    return [*_heatmaps(ranked, "document language"), *_heatmaps(asked, "query language")]


def _heatmaps(found: Mapping[str, Shares], row_title: str) -> list[Table]:
    known = [float(np.nanmax(one.values)) for one in found.values() if not np.isnan(one.values).all()]
    highest = max(known, default=1.0)
    return [heatmap(caption, row_title, one.columns, one.rows, one.values, highest) for caption, one in found.items()]


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


def main_query_language(report: Report) -> str:
    """The pivot's language where queries are in it, else the one that most are in."""
    parts = report.found.compared.by_language
    pivots = [(info.fingerprint or {}).get("pivot") for info in report.run_info.values()]
    known = [pivot for pivot in pivots if isinstance(pivot, str) and pivot in parts]
    return known[-1] if known else max(parts, key=lambda language: len(parts[language].queries))


def alpha_tables(report: Report) -> list[Table]:
    """Measures by alpha, from runs that differ in alpha only: the paper's Figure 3."""
    compared, made = report.found.compared, []
    columns = [column for column in compared.named if sign(column) > 0]
    for alphas in _by_alpha(report):
        rows = []
        for alpha, run in alphas:
            means = [compared.mean(run.letter, column) for column in columns]
            rows.append([Cell(f"{alpha:g}"), Cell(run.label), *(bar(format_score(mean), mean) for mean in means)])
        heads = [Head("alpha"), Head("run"), *(Head(column.measure) for column in columns)]
        made.append(Table("Measures by alpha, of runs that differ in nothing else", heads, rows))
    return made


def _by_alpha(report: Report) -> list[list[tuple[float, ComparedRun]]]:
    """Runs that differ in alpha only, by alpha; two at least of different alphas."""
    found: dict[str, dict[float, ComparedRun]] = {}
    for run in report.found.compared.candidates:
        info = report.run_info[run.letter]
        made = dict(info.fingerprint or {})
        alpha = made.pop("alpha", None)
        if isinstance(alpha, int | float) and not made.get("alphas"):
            of_queries = (info.mode, info.method, info.shift_queries, info.beta, info.gamma)
            key = repr((sorted(made.items()), run.how, run.result.get("within"), of_queries))
            found.setdefault(key, {}).setdefault(float(alpha), run)
    return [sorted(runs.items(), key=lambda item: item[0]) for runs in found.values() if len(runs) > 1]


def frontier(report: Report) -> list[ReportPicture]:
    """Ranking against LPR, a point a run: what preferring a language costs.

    Empty where LPR was not measured twice at least.
    """
    compared, fair = report.found.compared, Column(ALL, LPR.name)
    column = next((found for found in compared.columns if found.measure.startswith("nDCG")), compared.primary)
    if column is None or fair not in compared.columns:
        return []
    known = [
        (run.label, compared.mean(run.letter, fair), compared.mean(run.letter, column)) for run in compared.candidates
    ]
    points = {label: (x, y) for label, x, y in known if x is not None and y is not None}
    if len(points) < 2:
        return []
    caption = (
        f"{column.measure} against LPR: points further up rank better; further right, the best document is more often "
        "in the query's language"
    )
    titles = {"x_title": LPR.name, "y_title": column.measure}
    return [ReportPicture(caption, scatter(points, title=caption, description="One point per run.", **titles))]


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
        pictures: above the tables.
    """

    key: str
    title: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    pictures: Sequence[ReportPicture] = ()


def sections(report: Report) -> list[Section]:
    """All parts that have something to show."""
    return [part for part in _sections(report) if part.tables or part.notes or part.pictures]


def _sections(report: Report) -> Iterator[Section]:
    if report.found.changes:
        yield _overlap(report)
    if report.found.compared.columns:
        yield _before_and_after(report)
        yield _by_language(report)
    yield from _of_languages(report)
    yield from _of_positions(report)
    yield Section("alpha", "By alpha", alpha_tables(report))
    yield Section("frontier", "Ranking against language preference", pictures=frontier(report))
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
    parts = [(letter, section) for letter in later or [first] for section in compared.sections]
    made = [tables.by_language(compared, section, letter) for letter, section in parts]
    if compared.slices:
        made += [tables.by_slice(compared, letter) for letter in later]
    if compared.by_value:
        made += [tables.by_value(compared, section, letter) for letter, section in parts]
    return Section("languages", "By query language", made)


def _of_languages(report: Report) -> Iterator[Section]:
    compared = report.found.compared
    most = tables.most_shown_table(report.found.most_shown)
    shares = language_shares(report)
    yield Section("shares", "Languages of the hits", [most, *shares] if most else shares)
    if report.outcomes:
        named = [(compared.candidate(letter).label, scores) for letter, scores in report.outcomes.items()]
        meaning = (
            "perfect: relevant and in the query's language. lang_fail: relevant, in another language. sem_fail: not "
            "relevant, in the query's language. both_fail: neither."
        )
        yield Section("first", "The first document", [tables.outcomes_table(named)], [meaning])
    if matrices := report.found.matrices:
        made = [table for matrix in matrices for table in tables.recalls(matrix)]
        yield Section("matrix", "Query language by document language", made)


def _of_positions(report: Report) -> Iterator[Section]:
    positions = report.found.positions
    found = {report.found.compared.candidate(letter).label: scores for letter, scores in positions.items()}
    if found:
        note = (
            "PSI is 0 where the place in the document does not matter; its floor is what chance alone makes of it, on "
            "average and at its 95th percentile. EvidenceHit counts queries for which a passage shows the evidence."
        )
        shown = [tables.positions_table(found), tables.fifths_table(found)]
        yield Section("positions", "Place of the evidence", shown, [note])


def _latency(report: Report) -> Section:
    known = {
        run.label: {name: found for name in _TIMED if (found := _percentiles(report.run_info[run.letter], name))}
        for run in report.found.compared.candidates
    }
    present = [name for name in _TIMED if any(name in timed for timed in known.values())]
    if not present:
        return Section("latency", "Latency")
    heads = [Head("run"), *(Head(place, name.replace("_", " ")) for name in present for place in PERCENTILES)]
    greatest = max(value for timed in known.values() for times in timed.values() for value in times.values())
    rows = [
        [
            Cell(label),
            *(_milliseconds(timed.get(name, {}).get(place), greatest) for name in present for place in PERCENTILES),
        ]
        for label, timed in known.items()
        if timed
    ]
    notes = ["; ".join(_TIMED[name] for name in present) + "."]
    table = Table("Milliseconds per query", heads, rows)
    return Section("latency", "Latency", [table], notes)


def _percentiles(info: RunInfo, name: str) -> dict[str, float]:
    found = info.latency_ms.get(name, {})
    return {place: value for place in PERCENTILES if (value := found.get(place)) is not None}


def _milliseconds(value: float | None, greatest: float) -> Cell:
    return bar("-" if value is None else f"{value:,.1f}", value, greatest)


def _overlap(report: Report) -> Section:
    made = [tables.overlap_table(change.overlap) for change in report.found.changes.values()]
    notes = [
        "Nobody has judged the answers: this says what changes, not what is better.",
        "RBO: rank-biased overlap, which weighs the first ranks most; 1 is the same ranking. "
        f"Jaccard@{DEPTH}: the share of the documents in either first {DEPTH} that is in both.",
    ]
    return Section("overlap", "How alike the answers are", made, notes)


def _examples(report: Report) -> Iterator[Section]:
    for letter, change in report.found.changes.items():
        labels = report.found.compared.labels(change.pair)
        title = f"What changes most: {labels[1]} against {labels[0]}"
        yield Section(f"examples-{letter}", title, tables.changed_queries(change.most, labels))
    for extreme in report.found.examples:
        labels = report.found.compared.labels(extreme.pair)
        title = f"Queries that gain and lose most: {labels[1]} against {labels[0]}"
        yield Section(f"examples-{extreme.pair[1]}", title, examples(extreme, labels), [tally(extreme)])


def _run(report: Report) -> Section:
    found = {run.label: facts(run, report.run_info[run.letter]) for run in report.found.compared.candidates}
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    rows = [[Cell(name), *(Cell(known.get(name, "-")) for known in found.values())] for name in names]
    table = Table("The runs", [Head(""), *map(Head, found)], rows, words=True)
    made = f"Generated by langshift {VERSION}{f' with: {report.command}' if report.command else '.'}"
    return Section("run", "What was run", [table], [made])
