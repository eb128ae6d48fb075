"""A sweep as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.offline.encoding import Encoded
from langshift.evaluate.offline.sweep import Point, Sweep
from langshift.ingest.making import Making


def document(found: Sweep, encoded: Encoded, making: Making, names: Sequence[str]) -> dict[str, Any]:
    """All that was found, and what it was found with."""
    halves = found.halves
    own = replace(making.debias, alpha=found.best.alpha, alphas=found.own.alphas)
    fingerprint = replace(making, debias=own).fingerprint()
    return {
        "dataset": identity(encoded.dataset),
        "fingerprint": fingerprint.to_dict(),
        "halves": {
            "by": halves.by,
            "development": {"units": halves.units[0], "queries": len(halves.development)},
            "test": {"units": halves.units[1], "queries": len(halves.test)},
        },
        "select": found.select,
        "alpha": [_point(point, found, names) for point in found.alphas],
        "best": _point(found.best, found, names),
        "languages": {
            key: {
                "alpha": [
                    {"alpha": point.alphas.get(key, point.alpha), **_point(point, found, names, short=True)}
                    for point in points
                ],
                "best": found.own.alphas.get(key, found.best.alpha),
            }
            for key, points in found.languages.items()
        },
        "own_alphas": _point(found.own, found, names),
        "beta": [_point(point, found, names) for points in found.betas.values() for point in points],
        "warnings": list(encoded.languages.warnings),
    }


def _point(point: Point, found: Sweep, names: Sequence[str], *, short: bool = False) -> dict[str, Any]:
    """A setting and its means on both halves and over all queries; ``short`` leaves the setting out."""
    halves = found.halves
    parts = {"development": halves.development, "test": halves.test}
    setting = {} if short else {"alpha": point.alpha, "alphas": dict(point.alphas), "beta": point.beta}
    return {
        **setting,
        **{half: {name: point.mean(name, queries) for name in names} for half, queries in parts.items()},
        "all": {name: point.scores[name].mean for name in names},
    }
