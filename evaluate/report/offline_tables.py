"""An offline evaluation as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langshift import console
from langshift.evaluate.offline.setting import BOTH_SIDES, NOTHING, Setting
from langshift.evaluate.offline.sources import GIVEN, Source
from langshift.shown import figure, heading


def show(folder: Path, setting: Setting, result: Mapping[str, Any]) -> None:
    """Print the measures of one setting, and by query language where there are several.

    Args:
        folder: the dataset, as it was named.
        setting: what was done to the vectors.
        result: what ``result.json`` holds.
    """
    _headline(folder, result, _described(setting))
    rows = [[name, figure(mean), f"{result['queries'][name]:,}"] for name, mean in result["measures"].items()]
    console.table(None, ["measure", "mean", "queries"], rows, right={"mean", "queries"})
    languages, names = result["by_language"], list(result["measures"])
    if len(languages) > 1:
        rows = [
            [tag, *(figure(part["measures"][name]) for name in names), f"{part['queries'][names[0]]:,}"]
            for tag, part in languages.items()
        ]
        heading("\nBy query language")
        console.table(None, ["language", *names, "queries"], rows, right={*names, "queries"})


def _headline(folder: Path, result: Mapping[str, Any], words: Sequence[str]) -> None:
    beta = [f"beta {result['beta']:g}"] if result["beta"] else []
    told = ", ".join(["exact search", *words, *beta])
    heading(f"{folder}: {result['queries']['asked']:,} queries, {told}")


def _described(setting: Setting) -> list[str]:
    debias = setting.debias
    if setting.changes == NOTHING:
        return ["alpha 0" if debias.method == "shift" else "method none"]
    words = [] if debias.method == "shift" else [f"method {debias.method}"]
    if setting.alpha is not None and debias.vectors is not None:
        words += [f"alpha {setting.alpha}", f"pivot {debias.vectors.pivot}"]
    words += [f"{setting.changes} changed"] if setting.changes == BOTH_SIDES else []
    return words + ([f"languages {_read(setting.source)}"] if setting.source != GIVEN else [])


def _read(source: Source) -> str:
    words = "detected softly" if source.soft else "detected"
    return words if source.characters is None else f"{words} from the first {source.characters:,} characters"


def show_rows(folder: Path, rows: Sequence[tuple[Setting, Mapping[str, Any]]]) -> None:
    """Print one line for each of several settings of one dataset.

    Args:
        folder: the dataset, as it was named.
        rows: settings, and what ``result.json`` holds of each.
    """
    names = list(rows[0][1]["measures"])
    pivots = {setting.debias.vectors.pivot for setting, _ in rows if setting.debias.vectors is not None}
    alphas = sorted({setting.alpha for setting, _ in rows if setting.alpha is not None})
    told = [f"alpha {alphas[0]}"] if len(alphas) == 1 else []
    _headline(folder, rows[0][1], [*told, *(f"pivot {pivot}" for pivot in pivots)])
    # Columns that say nothing here are left out.
    columns: dict[str, Callable[[Setting, Mapping[str, Any]], str]] = {
        "method": lambda setting, _: setting.debias.method
    }
    if len(alphas) > 1:
        columns["alpha"] = lambda setting, _: setting.alpha or "-"
    if any(setting.changes == BOTH_SIDES for setting, _ in rows):
        columns["changes"] = lambda setting, _: setting.changes
    if any(setting.source != GIVEN for setting, _ in rows):
        columns |= {"languages": _source, "LID": _accuracy, "und": _unknown}
    shown = [
        [*(cell(setting, result) for cell in columns.values()), *(figure(result["measures"][name]) for name in names)]
        for setting, result in rows
    ]
    console.table(None, [*columns, *names], shown, right={"alpha", "LID", "und", *names})


def _source(setting: Setting, _: Mapping[str, Any]) -> str:
    return "-" if setting.changes == NOTHING else str(setting.source)


def _accuracy(_: Setting, result: Mapping[str, Any]) -> str:
    return figure(result["detection"]["accuracy"]) if result["detection"] else "-"


def _unknown(_: Setting, result: Mapping[str, Any]) -> str:
    unknown = result["detection"] and result["detection"]["unknown"]
    return "-" if unknown is None else f"{unknown:,}"
