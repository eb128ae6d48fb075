"""Tables of single runs in the terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from langshift import output
from langshift.evaluate.compare.verdict import Verdict
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import LanguageShare
from langshift.evaluate.measures.positions import EVIDENCE_HIT, PSI
from langshift.evaluate.replay.overlap import DEPTH, Drifts
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.report.tables import MACRO, Table, overlap_table, plain_table, positions_table
from langshift.output import heading, line
from langshift.retrieval.request import format_settings
from langshift.wording import format_score


def terminal_rows(table: Table) -> list[list[str]]:
    """Fields with their stars; those of a column that has stars are as wide where they have none."""
    starred = [any(cell.star is not None for cell in column) for column in zip(*table.rows, strict=True)]
    return [
        [cell.text + ("*" if cell.star else " " if wide else "") for cell, wide in zip(row, starred, strict=True)]
        for row in table.rows
    ]


def show_table(table: Table) -> None:
    """Print a table in the terminal, figures aligned to the right; what stands over its heads is left out."""
    heads = [head.text for head in table.heads]
    output.table(
        None,
        heads,
        terminal_rows(table),
        right=set() if table.words else set(heads[1:]),
        prose=heads if table.words else (),
    )


def show_measures(result: Mapping[str, Any]) -> None:
    """Print the means of ``result.json``, and by query language where there are several."""
    measures, languages, values = result["measures"], result["by_language"], result.get("by_value", {})
    rows = [[name, shown_figure(result, name), f"{result['queries'][name]:,}"] for name in measures]
    show_table(plain_table(["measure", "mean", "queries"], rows))
    for name, most in result.get("most_shown", {}).items():
        line(f"{name}: {LanguageShare(**most).sentence}.")
    if len(languages) > 1:
        heading("\nBy query language")
        _show_parts("language", measures, languages)
    if len(values) > 1:
        field = result["within"]
        heading(f"\nBy what is searched, {field}, and the mean over its values")
        _show_parts(field, measures, {**values, MACRO: {"measures": result["macro"], "queries": result["queries"]}})


def _show_parts(head: str, measures: Iterable[str], parts: Mapping[str, Mapping[str, Any]]) -> None:
    names = list(measures)
    rows = [
        [part, *(shown_figure(its, name) for name in names), f"{its['queries'][names[0]]:,}"]
        for part, its in parts.items()
    ]
    show_table(plain_table([head, *names, "queries"], rows))


def shown_figure(result: Mapping[str, Any], name: str) -> str:
    """A mean of ``result.json`` as tables have it; that of MostShown with its language."""
    figure, most = format_score(result["measures"][name]), result.get("most_shown", {}).get(name)
    return f"{most['language']} {figure}" if most else figure


def show_replay(found: ReplayResult, document: Mapping[str, Any]) -> None:
    """Print measures, by query language where there are several, and times."""
    partial = "" if found.complete else ", incomplete"
    setting = format_settings(found.setting)
    if found.chosen is not None and found.chosen.origin != "asked":
        setting = f"{setting} ({format_settings(found.chosen.setting)})"
    heading(f"{found.index}: {len(found.answers):,} queries, {setting}, {found.fingerprint.scales}{partial}")
    if found.scores:
        show_measures(document)
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


def show_verdict(verdict: Verdict) -> None:
    """Print a verdict, and what to do where it cannot say."""
    for text in verdict.lines:
        line(text)


def show_drifts(compared: Drifts) -> None:
    """Print how alike the answers of two indices are, and which languages come up more."""
    for one in compared:
        found = overlap_table(one)
        heading(f"\n{found.caption}")
        # The share of the query's own language is one column here: the terminal has less room than a report.
        rows = [
            [*alike, before if before == "-" else f"{before} → {after}", changes]
            for *alike, before, after, changes in terminal_rows(found)
        ]
        columns = ["language", "queries", "RBO", f"Jaccard@{DEPTH}", "own language", "largest changes"]
        output.table(None, columns, rows, right=set(columns[1:5]), prose={"largest changes"})


def milliseconds(value: float | None) -> str:
    """A time in milliseconds as ``12.3``."""
    return "-" if value is None else f"{value:.1f}"
