"""A sweep as tables and curves of text."""

from __future__ import annotations

from collections.abc import Sequence

from langshift import console
from langshift.evaluate.offline.sweep import Sweep
from langshift.shown import figure, heading

_BAR = 30


def show(found: Sweep, names: Sequence[str]) -> None:
    """Print the curve of alpha, what the settings give on the other half, each language's curve, and the betas."""
    halves, select = found.halves, found.select
    heading(f"Development half ({halves.units[0]:,} by {halves.by}, {len(halves.development):,} queries)")
    means = [point.mean(select, halves.development) for point in found.alphas]
    rows = [
        [f"{point.alpha:g}", figure(mean), bar]
        for point, mean, bar in zip(found.alphas, means, bars(means), strict=True)
    ]
    console.table(None, ["alpha", select, ""], rows, right={"alpha", select})
    heading(f"\nThe other half ({halves.units[1]:,} by {halves.by}, {len(halves.test):,} queries)")
    settings = [(f"{point.alpha:g}{' (best)' if point is found.best else ''}", point) for point in found.alphas]
    settings += [("own", found.own)] if found.own.alphas else []
    rows = [[words, *(figure(point.mean(name, halves.test)) for name in names)] for words, point in settings]
    console.table(None, ["alpha", *names], rows, right=set(names))
    if found.languages:
        heading(f"\nOne language's alpha at a time, the others at {found.best.alpha:g}: {select}, development half")
        _show_languages(found)
    if found.betas:
        heading("\nLanguage preference, over all queries")
        _show_betas(found, names)


def _show_languages(found: Sweep) -> None:
    keys = list(found.languages)
    rows = [
        [
            f"{point.alpha:g}",
            *(figure(found.languages[key][row].mean(found.select, found.halves.development)) for key in keys),
        ]
        for row, point in enumerate(found.alphas)
    ]
    rows.append(["best", *(f"{found.own.alphas.get(key, found.best.alpha):g}" for key in keys)])
    console.table(None, ["alpha", *keys], rows, right={"alpha", *keys})


def _show_betas(found: Sweep, names: Sequence[str]) -> None:
    rows = [
        [f"{beta:g}", f"{point.alpha:g}", *(figure(point.scores[name].mean) for name in names)]
        for beta, points in found.betas.items()
        for point in points
    ]
    console.table(None, ["beta", "alpha", *names], rows, right={"beta", "alpha", *names})


def bars(values: Sequence[float | None]) -> list[str]:
    """A bar for each value, from one character for the lowest to ``_BAR`` for the highest."""
    known = [value for value in values if value is not None]
    if not known:
        return ["" for _ in values]
    low, span = min(known), max(known) - min(known)
    return ["" if v is None else "█" * (1 + round((v - low) / span * (_BAR - 1)) if span else _BAR) for v in values]
