"""What ``langshift evaluate replay`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langshift import console
from langshift.evaluate.replay.drift import DEPTH, Drift, Drifts
from langshift.evaluate.replay.replayed import Replay
from langshift.retrieval.options import written
from langshift.shown import figure, heading, signed

_SHOWN_LANGUAGES = 3


def show(found: Replay, document: Mapping[str, Any]) -> None:
    """Print measures, by query language where there are several, and times."""
    names = list(found.scores)
    partial = "" if found.complete else ", not complete"
    heading(f"{found.index}: {len(found.answers):,} queries, {written(found.setting)}, {_making(found)}{partial}")
    if names:
        rows = [[name, figure(scores.mean), f"{scores.queries:,}"] for name, scores in found.scores.items()]
        console.table(None, ["measure", "mean", "queries"], rows, right={"mean", "queries"})
        _show_by_language(found, names)
    _show_times(found, document)


def _making(found: Replay) -> str:
    """How documents and queries were moved: ``alpha 1``, and what is not the usual."""
    made = found.fingerprint
    method = "soft shift, " if made.soft else "" if made.method == "shift" else f"{made.method}, "
    return f"{method}alpha {made.alpha:g}{', queries shifted' if found.shift_queries else ''}"


def _show_by_language(found: Replay, names: Sequence[str]) -> None:
    languages = found.by_language()
    if len(languages) > 1:
        rows = [
            [language, *(figure(measures[name].mean) for name in names), f"{measures[names[0]].queries:,}"]
            for language, measures in languages.items()
        ]
        heading("\nBy query language")
        console.table(None, ["language", *names, "queries"], rows, right={*names, "queries"})


def _show_times(found: Replay, document: Mapping[str, Any]) -> None:
    load, times = document["load"], document["latency_ms"]
    if found.load.open_loop:
        pace = "by the log's times" if found.load.rate is None else f"{found.load.rate:g} a second due"
        how = f"{pace}, at most {found.load.concurrency} at once"
    else:
        how = "one at a time" if found.load.concurrency == 1 else f"{found.load.concurrency} at a time"
    heading(f"\nMilliseconds a query, {how}")
    percentiles = ("p50", "p90", "p95", "p99")
    rows = [[clock, *(milliseconds(times[clock][p]) for p in percentiles)] for clock in times]
    console.table(None, ["", *percentiles], rows, right=set(percentiles))
    if load["throughput"] is not None:
        late = f"; {load['sent_late']:,} were sent late" if load["sent_late"] else ""
        console.out.print(f"{load['throughput']:,.1f} answers a second{late}.", markup=False)


def show_drifts(compared: Drifts) -> None:
    """Print how alike the answers of two indices are, and which languages come up more."""
    for one in compared:
        heading(f"\nFrom {one.before} to {one.after}: overlap, and languages among the first {DEPTH}")
        parts = {**one.by_language, "all": one.whole}
        if len(one.by_language) == 1:
            del parts["all"]
        rows = [_row(language, part) for language, part in parts.items()]
        columns = ["language", "queries", "RBO", f"Jaccard@{DEPTH}", "own", "changes most"]
        console.table(None, columns, rows, right=set(columns[1:4]))


def _row(language: str, part: Drift) -> list[str]:
    changes = {tag: part.after.get(tag, 0.0) - part.before.get(tag, 0.0) for tag in {**part.before, **part.after}}
    most = sorted(changes, key=lambda tag: (-abs(changes[tag]), tag))[:_SHOWN_LANGUAGES]
    own = "-" if language == "all" else f"{_share(part.before, language)} → {_share(part.after, language)}"
    shifts = ", ".join(f"{tag} {signed(changes[tag], 3)}" for tag in most if signed(changes[tag], 3) != "=")
    return [language, f"{part.queries:,}", figure(part.rbo, 3), figure(part.jaccard, 3), own, shifts or "-"]


def _share(shares: Mapping[str, float], language: str) -> str:
    return figure(shares.get(language, 0.0), 3)


def milliseconds(value: float | None) -> str:
    """A time in milliseconds as ``12.3``."""
    return "-" if value is None else f"{value:.1f}"
