"""The figures of a run in a small file, for a later run to be held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from langshift.errors import UsageError
from langshift.evaluate.compare.comparing import Comparison
from langshift.evaluate.compare.sections import Column, column_of
from langshift.evaluate.datasets.identity import identity
from langshift.settings import VERSION
from langshift.whole import whole


@dataclass(frozen=True)
class Baseline:
    """Means of one run.

    Attributes:
        name: the run's.
        dataset: hash of the dataset.
        measures: measure -> mean over all queries, None where it has none.
        by_language: query language -> the same over its queries.
    """

    name: str
    dataset: str
    measures: Mapping[str, float | None]
    by_language: Mapping[str, Mapping[str, float | None]]

    def mean(self, measure: str, language: str | None) -> float | None:
        """A figure, None where the run had none."""
        known = self.measures if language is None else self.by_language.get(language, {})
        return known.get(measure)


def of(compared: Comparison, letter: str) -> Baseline:
    """The figures of one of the compared runs, by the names that measures are asked for."""
    wanted = {column.measure: column for column in reversed(compared.columns) if _asked_for(column)}

    def means(language: str | None) -> dict[str, float | None]:
        return {name: compared.mean(letter, column, language) for name, column in sorted(wanted.items())}

    by_language = {language: means(language) for language in compared.asked}
    return Baseline(compared.candidate(letter).name, identity(compared.dataset)["hash"], means(None), by_language)


def _asked_for(column: Column) -> bool:
    return column_of(column.measure) == column


def save(path: Path, baseline: Baseline) -> None:
    """Write the file; it appears whole or not at all."""
    content = {"langshift": VERSION, **asdict(baseline)}
    with whole(path) as partial:
        partial.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read(path: Path, dataset: str) -> Baseline:
    """Read a baseline and check that it is one of the dataset.

    Args:
        path: the file.
        dataset: hash of the dataset.

    Raises:
        UsageError: no such file, one that is no baseline, or one of another dataset.
    """
    how = "write one with `langshift evaluate compare RUN --save-baseline FILE`"
    if not path.is_file():
        raise UsageError(f"There is no baseline {path}: {how}.")
    try:
        content: dict[str, Any] = orjson.loads(path.read_bytes())
        del content["langshift"]
        baseline = Baseline(**content)
        sound = all(_means(means) for means in (baseline.measures, *baseline.by_language.values()))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise UsageError(f"{path} is no baseline, or is damaged: {how}.")
    if baseline.dataset != dataset:
        raise UsageError(
            f"{path} is a baseline of another dataset ({baseline.dataset}, not {dataset}): "
            "compare with the dataset that it was made from, or save it again."
        )
    return baseline


def _means(means: Mapping[str, object]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in means.values())
