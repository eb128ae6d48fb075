"""Sweeps to draw: the JSON documents of ``langshift evaluate sweep --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from langshift.errors import UsageError


class Point(msgspec.Struct, frozen=True):
    """One setting of a sweep.

    Attributes:
        alpha: the scale of the shift.
        beta: the language preference.
        all: measure -> mean over all queries.
    """

    alpha: float
    beta: float
    all: Mapping[str, float | None]


class Searched(msgspec.Struct, frozen=True):
    """The dataset of a sweep: its folder, and the hash of its ids and judgements."""

    folder: str
    hash: str


class Sweep(msgspec.Struct, frozen=True):
    """What a report reads of a sweep.

    Attributes:
        dataset: what was searched.
        select: the measure that the best alpha was chosen by.
        alpha: a point for each alpha, ascending, without language preference.
        best: the point that was chosen.
        beta: a point for each language preference tried, empty where none was.
    """

    dataset: Searched
    select: str
    alpha: Sequence[Point]
    best: Point
    beta: Sequence[Point]


def is_sweep(place: Path) -> bool:
    """Whether a file is a JSON document and no TREC run."""
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return place.suffix.lower() == ".json" or file.read(64).lstrip().startswith(b"{")


def read_sweep(path: Path, dataset: str) -> Sweep:
    """Read one.

    Args:
        path: the document.
        dataset: the hash of the dataset that it must be of.

    Raises:
        UsageError: the file is something else, or a sweep of another dataset.
    """
    try:
        sweep = msgspec.json.decode(path.read_bytes(), type=Sweep)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no document of `langshift evaluate sweep --json` ({error}).") from None
    if sweep.dataset.hash != dataset:
        raise UsageError(
            f"{path} is a sweep of {sweep.dataset.folder} ({sweep.dataset.hash}), the runs are of another dataset "
            f"({dataset}): give a sweep of the same one."
        )
    return sweep
