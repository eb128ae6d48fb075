"""How a query's scores were put together, as a journal keeps it: only what is not the usual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langshift.retrieval.found import Anchor, How

USUAL = How()


def to_dict(how: How) -> dict[str, Any]:
    """The same as JSON; empty where there is nothing to know."""
    anchors = [
        {"id": one.id, "trust": float(one.trust), "weight": float(one.weight), "evidence": _numbers(one.evidence)}
        for one in how.anchors
    ]
    found = {
        "bonus": float(how.bonus),
        "ranges": {leg: [float(end) for end in ends] for leg, ends in how.ranges.items()},
        "anchors": anchors,
        "kept": _numbers(how.kept),
        "depth": how.depth,
        "given": _numbers(how.given),
    }
    return {name: value for name, value in found.items() if value}


def from_dict(given: Mapping[str, Any]) -> How:
    """Read it again.

    Raises:
        KeyError, TypeError, ValueError: it is of another form.
    """
    if not given:
        return USUAL
    return How(
        bonus=float(given.get("bonus", 0.0)),
        ranges={leg: (float(low), float(high)) for leg, (low, high) in given.get("ranges", {}).items()},
        anchors=tuple(
            Anchor(str(one["id"]), float(one["trust"]), float(one["weight"]), _numbers(one["evidence"]))
            for one in given.get("anchors", ())
        ),
        kept=_numbers(given.get("kept", {})),
        depth=int(given.get("depth", 0)),
        given=_numbers(given.get("given", {})),
    )


def _numbers(given: Mapping[str, float]) -> dict[str, float]:
    return {name: float(number) for name, number in given.items()}
