"""Tables of single runs in the terminal: replays, settings side by side, offline evaluations, sweeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from langshift import output
from langshift.evaluate.compare.comparison import ALL, SLICES, Column, ComparedQueries, SettingRow, SettingsComparison
from langshift.evaluate.compare.findings import describe_test, first_document_shares
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.fairness import EVIDENCE_HIT, OUTCOMES, PSI, TOP1
from langshift.evaluate.measures.most_shown import LanguageShare, format_figure
from langshift.evaluate.offline.encoding import GIVEN, LanguageSource
from langshift.evaluate.offline.ranking import BOTH_SIDES, NOTHING, OfflineSettings
from langshift.evaluate.offline.sweep import SweepPoint, SweepResult
from langshift.evaluate.replay.overlap import DEPTH, Drift, Drifts
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.result import latency
from langshift.evaluate.report.tables import (
    Cell,
    Head,
    Table,
    plain_table,
    positions_table,
    probability,
    show_table,
    terminal_rows,
)
from langshift.output import heading, line
from langshift.retrieval.settings import format_settings
from langshift.wording import format_change, format_score

_BAR = 30


def show_sweep(found: SweepResult, names: Sequence[str]) -> None:
    """Print the curve of alpha, what it gives on the other half, each language's curve, the betas and the gammas."""
    halves, select = found.halves, found.select
    heading(f"Development half ({len(halves.development):,} queries, {halves.units[0]:,} clusters by {halves.by})")
    means = [point.mean(select, halves.development) for point in found.alphas]
    rows = [
        [f"{point.alpha:g}", format_score(mean), bar]
        for point, mean, bar in zip(found.alphas, means, bars(means), strict=True)
    ]
    output.table(None, ["alpha", select, ""], rows, right={"alpha", select})
    heading(f"\nThe other half ({len(halves.test):,} queries, {halves.units[1]:,} clusters by {halves.by})")
    settings = [(f"{point.alpha:g}{' (best)' if point is found.best else ''}", point) for point in found.alphas]
    settings += [("per language", found.own)] if found.own.alphas else []
    rows = [[words, *(format_score(point.mean(name, halves.test)) for name in names)] for words, point in settings]
    output.table(None, ["alpha", *names], rows, right=set(names))
    if found.languages:
        heading(f"\nAlpha of one language at a time, the others at {found.best.alpha:g}: {select}, development half")
        _show_languages(found)
    if found.betas:
        heading("\nLanguage preference, over all queries")
        _show_betas(found, names)
    if found.grid:
        heading(f"\nAlpha by gamma: {select}, over all queries")
        _show_gammas(found.grid, select)


def _show_languages(found: SweepResult) -> None:
    half = found.halves.development
    curves = [[format_score(point.mean(found.select, half)) for point in points] for points in found.languages.values()]
    rows = [[f"{point.alpha:g}", *means] for point, *means in zip(found.alphas, *curves, strict=True)]
    heads = ["alpha", *found.languages]
    rows.append(["best", *(f"{found.own.alphas.get(key, found.best.alpha):g}" for key in found.languages)])
    output.table(None, heads, rows, right=set(heads))


def _show_betas(found: SweepResult, names: Sequence[str]) -> None:
    rows = [
        [f"{beta:g}", f"{point.alpha:g}", *(format_score(point.scores[name].mean) for name in names)]
        for beta, points in found.betas.items()
        for point in points
    ]
    output.table(None, ["beta", "alpha", *names], rows, right={"beta", "alpha", *names})


def _show_gammas(points: Sequence[SweepPoint], select: str) -> None:
    alphas, gammas = (list(dict.fromkeys(scales)) for scales in zip(*((p.alpha, p.gamma) for p in points), strict=True))
    means = {(point.alpha, point.gamma): format_score(point.scores[select].mean, 3) for point in points}
    rows = [[f"{alpha:g}", *(means[alpha, gamma] for gamma in gammas)] for alpha in alphas]
    heads = ["alpha", *(f"{gamma:g}" for gamma in gammas)]
    output.table(None, heads, rows, right=set(heads))


def bars(values: Sequence[float | None]) -> list[str]:
    """A bar for each value, from one character for the lowest to ``_BAR`` for the highest."""
    known = [value for value in values if value is not None]
    if not known:
        return ["" for _ in values]
    low, span = min(known), max(known) - min(known)
    return ["" if v is None else "█" * (1 + round((v - low) / span * (_BAR - 1)) if span else _BAR) for v in values]


def show_offline(folder: Path, setting: OfflineSettings, result: Mapping[str, Any]) -> None:
    """Print the measures of one setting, and by query language where there are several.

    Args:
        folder: the dataset, as it was named.
        setting: what was done to the vectors.
        result: what ``result.json`` holds.
    """
    _headline(folder, result, _described(setting))
    _show_measures(result)


def _show_measures(result: Mapping[str, Any]) -> None:
    """Print the means of ``result.json``, and by query language where there are several."""
    measures, languages = result["measures"], result["by_language"]
    rows = [[name, shown_figure(result, name), f"{result['queries'][name]:,}"] for name in measures]
    show_table(plain_table(["measure", "mean", "queries"], rows))
    for name, most in result.get("most_shown", {}).items():
        line(f"{name}: {LanguageShare(**most).sentence}.")
    if len(languages) > 1:
        first = next(iter(measures))
        rows = [
            [tag, *(shown_figure(part, name) for name in measures), f"{part['queries'][first]:,}"]
            for tag, part in languages.items()
        ]
        heading("\nBy query language")
        show_table(plain_table(["language", *measures, "queries"], rows))


def shown_figure(result: Mapping[str, Any], name: str) -> str:
    """A mean of ``result.json`` as tables have it; that of MostShown with its language."""
    figure, most = format_score(result["measures"][name]), result.get("most_shown", {}).get(name)
    return f"{most['language']} {figure}" if most else figure


def _headline(folder: Path, result: Mapping[str, Any], words: Sequence[str]) -> None:
    beta = [f"beta {result['beta']:g}"] if result["beta"] else []
    details = ", ".join(["exact search", *words, *beta])
    heading(f"{folder}: {result['queries']['asked']:,} queries, {details}")


def _described(setting: OfflineSettings) -> list[str]:
    debias = setting.debias
    if setting.changes == NOTHING:
        return ["alpha 0" if debias.method == "shift" else "method none"]
    words = [] if debias.method == "shift" else [f"method {debias.method}"]
    if setting.alpha is not None and debias.vectors is not None:
        words += [f"alpha {setting.alpha}", f"pivot {debias.vectors.pivot}"]
    words += [f"gamma {debias.gamma:g}"] if debias.gamma else []
    words += [f"{setting.changes} changed"] if setting.changes == BOTH_SIDES else []
    return words + ([f"languages {_read(setting.source)}"] if setting.source != GIVEN else [])


def _read(source: LanguageSource) -> str:
    words = "detected softly" if source.soft else "detected"
    return words if source.characters is None else f"{words} from the first {source.characters:,} characters"


def show_rows(folder: Path, rows: Sequence[tuple[OfflineSettings, Mapping[str, Any]]]) -> None:
    """Print one line for each of several settings of one dataset.

    Args:
        folder: the dataset, as it was named.
        rows: settings, and what ``result.json`` holds of each.
    """
    pivots = {setting.debias.vectors.pivot for setting, _ in rows if setting.debias.vectors is not None}
    alphas = sorted({setting.alpha for setting, _ in rows if setting.alpha is not None})
    words = [f"alpha {alphas[0]}"] if len(alphas) == 1 else []
    _headline(folder, rows[0][1], [*words, *(f"pivot {pivot}" for pivot in pivots)])
    # Columns that say nothing here are left out.
    said = {
        "alpha": len(alphas) > 1,
        "gamma": any(setting.debias.gamma for setting, _ in rows),
        "changes": any(setting.changes == BOTH_SIDES for setting, _ in rows),
        **dict.fromkeys(("languages", "LID", "und"), any(setting.source != GIVEN for setting, _ in rows)),
    }
    shown = [_setting_cells(setting, result) for setting, result in rows]
    heads = [head for head in shown[0] if said.get(head, True)]
    cells = [[row[head] for head in heads] for row in shown]
    output.table(None, heads, cells, right=set(heads) - {"method", "changes", "languages"}, prose={"alpha"})


def _setting_cells(setting: OfflineSettings, result: Mapping[str, Any]) -> dict[str, str]:
    """Head -> field."""
    detection = result["detection"] or {"accuracy": None, "unknown": None}
    return {
        "method": setting.debias.method,
        "alpha": setting.alpha or "-",
        "gamma": f"{setting.debias.gamma:g}" if setting.debias.gamma else "-",
        "changes": setting.changes,
        "languages": "-" if setting.changes == NOTHING else str(setting.source),
        "LID": format_score(detection["accuracy"]),
        "und": "-" if detection["unknown"] is None else f"{detection['unknown']:,}",
        **{name: shown_figure(result, name) for name in result["measures"]},
    }


_SHOWN_LANGUAGES = 3


def show_replay(found: ReplayResult, document: Mapping[str, Any]) -> None:
    """Print measures, by query language where there are several, and times."""
    partial = "" if found.complete else ", incomplete"
    setting = format_settings(found.setting)
    if found.chosen is not None and found.chosen.origin != "asked":
        setting = f"{setting} ({format_settings(found.chosen.setting)})"
    heading(f"{found.index}: {len(found.answers):,} queries, {setting}, {found.fingerprint.scales}{partial}")
    if found.scores:
        _show_measures(document)
    _show_times(found, document)


def _show_times(found: ReplayResult, document: Mapping[str, Any]) -> None:
    load, times = document["load"], document["latency_ms"]
    how = "one at a time" if found.load.concurrency == 1 else f"{found.load.concurrency} at a time"
    if found.load.open_loop:
        pace = "at the log's times" if found.load.rate is None else f"{found.load.rate:g} due per second"
        how = f"{pace}, at most {found.load.concurrency} at a time"
    heading(f"\nMilliseconds per query, {how}")
    percentiles = ("p50", "p90", "p95", "p99")
    rows = [[clock, *(milliseconds(times[clock][p]) for p in percentiles)] for clock in times]
    show_table(plain_table(["", *percentiles], rows))
    if load["throughput"] is not None:
        late = f"; {load['sent_late']:,} queries were sent late" if load["sent_late"] else ""
        output.out.print(f"{load['throughput']:,.1f} answers per second{late}.")


def show_positions(found: Mapping[str, Mapping[str, Scores]]) -> None:
    """Print how much the place of the evidence matters by the first PSI that was measured; ``found`` is by index."""
    families = {name: parse_measure(name).family for name in next(iter(found.values()))}
    psi, hits = ([name for name in families if families[name] is family] for family in (PSI, EVIDENCE_HIT))
    if psi:
        names = [psi[0], *hits]
        table = positions_table({index: {name: scores[name] for name in names} for index, scores in found.items()})
        heading(f"\n{table.caption}")
        show_table(table)


def show_drifts(compared: Drifts) -> None:
    """Print how alike the answers of two indices are, and which languages come up more."""
    for one in compared:
        heading(f"\nFrom {one.before} to {one.after}: overlap, and languages among the first {DEPTH}")
        parts = {**one.by_language, **({"all": one.whole} if len(one.by_language) != 1 else {})}
        rows = [_row(language, part) for language, part in parts.items()]
        columns = ["language", "queries", "RBO", f"Jaccard@{DEPTH}", "own language", "largest changes"]
        output.table(None, columns, rows, right=set(columns[1:5]), prose={"largest changes"})


def _row(language: str, part: Drift) -> list[str]:
    changes = {tag: part.after.get(tag, 0.0) - part.before.get(tag, 0.0) for tag in {**part.before, **part.after}}
    most = sorted(changes, key=lambda tag: (-abs(changes[tag]), tag))[:_SHOWN_LANGUAGES]
    own = " → ".join(format_score(shares.get(language, 0.0), 3) for shares in (part.before, part.after))
    moved = [(tag, format_change(changes[tag], 3, same="")) for tag in most]
    shifts = ", ".join(f"{tag} {change}" for tag, change in moved if change)
    own = "-" if language == "all" else own
    return [language, f"{part.queries:,}", format_score(part.rbo, 3), format_score(part.jaccard, 3), own, shifts or "-"]


def milliseconds(value: float | None) -> str:
    """A time in milliseconds as ``12.3``."""
    return "-" if value is None else f"{value:.1f}"


_CLOCKS = tuple((clock, part) for clock in ("wall", "took") for part in ("p50", "p95"))
#: Blanks between two columns.
_BETWEEN = 2


def show_settings(compared: SettingsComparison) -> None:
    """Print the table of all rows, and the tests against the first: by slice, where there is anything to tell apart."""
    first = compared.rows[0]
    heading(f"{compared.dataset.folder}: {len(first.replay.answers):,} queries in {len(compared.rows)} rows")
    parts = [part for part in (_figures(compared), _first_documents(compared), _times(compared)) if part]
    whole = _table(compared, *parts)
    for table in [whole] if _width(whole) <= output.out.width else [_table(compared, part) for part in parts]:
        show_table(table)
    line("wall: milliseconds until the client had the response; took: as reported by the server; one query at a time.")
    if len(compared.rows) > 1:
        line(f"* differs significantly from the first row, {first.name}. " + describe_test(compared.clusters))
    for name, part in compared.slices.items():
        _show_tests(SLICES[name], compared, part, compared.columns)
    if len(compared.rows) > 1 and compared.directed:
        if not compared.slices:
            _show_tests("All queries", compared, compared.whole, compared.directed)
        line(_how_to_judge(compared))


#: Head -> a cell for each row.
_Columns = dict[str, list[Cell]]


def _table(compared: SettingsComparison, *parts: _Columns) -> Table:
    """Some columns as one table."""
    columns = {"setting": [Cell(row.name) for row in compared.rows]}
    for part in parts:
        columns |= part
    return Table("", list(map(Head, columns)), list(zip(*columns.values(), strict=True)))


def _figures(compared: SettingsComparison) -> _Columns:
    return {
        column.measure: [
            Cell(format_figure(compared.whole.scores[row.name][column]), _differs(compared, row, column))
            for row in compared.rows
        ]
        for column in compared.columns
        if column.measure != TOP1.name
    }


def _differs(compared: SettingsComparison, row: SettingRow, column: Column) -> bool:
    test = compared.whole.tested(column, compared.pair(row))
    return test is not None and test.significant


def _first_documents(compared: SettingsComparison) -> _Columns:
    """What the first document is, four ways, which add to 1; the test is of those that are perfect, the first way."""
    column = Column(ALL, TOP1.name)
    if column not in compared.columns:
        return {}
    shares = [first_document_shares(row) for row in compared.rows]
    stars = [_differs(compared, row, column) for row in compared.rows]
    found = {name: [Cell(format_score(one.get(name))) for one in shares] for name in OUTCOMES}
    perfect = OUTCOMES[0]
    return found | {perfect: [cell._replace(star=star) for cell, star in zip(found[perfect], stars, strict=True)]}


def _times(compared: SettingsComparison) -> _Columns:
    times = [latency(row.replay) for row in compared.rows]
    return {f"{clock} {part}": [Cell(milliseconds(one[clock][part])) for one in times] for clock, part in _CLOCKS}


def _width(table: Table) -> int:
    """How many cells of a terminal its columns take side by side."""
    columns = zip([head.text for head in table.heads], *terminal_rows(table), strict=True)
    return sum(max(map(cell_len, column)) + _BETWEEN for column in columns) - _BETWEEN


def _show_tests(title: str, compared: SettingsComparison, part: ComparedQueries, columns: Sequence[Column]) -> None:
    """Print measures of every row, and what is known of their differences from the first row."""
    heading(f"\n{title}: {len(part.queries):,} queries")
    rows = []
    for column in columns:
        means = [part.mean(row.name, column) for row in compared.rows]
        # Not a query of a slice may have a figure: without an answer in its language none has an SLR.
        if all(mean is None for mean in means):
            rows.append([column.measure, "every setting", "undefined", *_difference(None)])
            continue
        names = [column.measure, *[""] * len(means)]
        rows += [
            [name, row.name, format_score(mean), *_difference(part.tested(column, compared.pair(row)))]
            for name, row, mean in zip(names, compared.rows, means, strict=False)
        ]
    heads = ["measure", "setting", "mean", "difference", "95 % interval", "p", "corrected p"]
    output.table(None, heads, rows, right=set(heads[2:]))


def _difference(test: TestResult | None) -> list[str]:
    if test is None:
        return ["-", "-", "-", "-"]
    between = "-" if test.interval is None else " to ".join(map(format_change, test.interval))
    return [format_change(test.difference), between, probability(test.randomisation), probability(test.corrected)]


def _how_to_judge(compared: SettingsComparison) -> str:
    """What interval and p are of, and what the correction takes together."""
    family = "measures times slices" if compared.slices else "all measures"
    count = sum(len(part.tests) for part in compared.slices.values() or [compared.whole])
    return (
        "The interval and p are for that one comparison alone: judge a loss by these, because a correction could hide "
        f"it. The corrected p takes account of all {count:,} tests, {family} times rows after the first: judge a gain "
        "by it."
    )
