"""A report: everything that is known of some runs, before it is written in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.compare.findings import Findings, compare_places, findings
from langshift.evaluate.compare.sections import across
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.report.checkout import commit
from langshift.evaluate.report.examples import HITS
from langshift.evaluate.report.sweeps import Sweep, is_sweep, read_sweep
from langshift.evaluate.report.told import Told, told
from langshift.evaluate.scoring import scored

TOP1 = "Top1"


@dataclass(frozen=True)
class Report:
    """What the pages and tables show.

    Attributes:
        found: figures, tests, examples and advice: what `evaluate compare` says.
        outcomes: letter -> what the first document is; empty where documents were judged per language.
        sweeps: name -> sweep to draw.
        told: letter -> how the run was made.
        command: the command that makes the report, None where there is none.
        version: of langshift, which makes it.
        commit: of langshift, None where it does not run from a checkout.
    """

    found: Findings
    outcomes: Mapping[str, Scores]
    sweeps: Mapping[str, Sweep]
    told: Mapping[str, Told]
    command: str | None
    version: str
    commit: str | None

    def to_dict(self) -> dict[str, Any]:
        """The comparison as one JSON document, and what the first documents are."""
        return {
            **self.found.to_dict(),
            "top1": {letter: _cells(scores) for letter, scores in self.outcomes.items()},
            "made_by": {"langshift": self.version, "commit": self.commit, "command": self.command},
        }


def _cells(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Query language, or ``all`` -> outcome -> share."""
    return {row: {outcome: cell.mean for outcome, cell in found.items()} for row, found in scores.cells.items()}


def build(places: Sequence[Path], dataset: Path | None = None, command: str | None = None) -> Report:
    """Read runs and sweeps, score and compare.

    Args:
        places: folders or TREC runs as `evaluate compare` takes them, and documents of `evaluate sweep --json`.
        dataset: the dataset; None takes what the runs name.
        command: what to name as the command that makes the report.

    Raises:
        UsageError: something given cannot be used.
    """
    runs = [place for place in places if not is_sweep(place)]
    if not runs:
        raise UsageError("There is no run: give a folder that `langshift evaluate replay` or `offline` wrote.")
    compared = compare_places(runs, dataset)
    known = identity(compared.dataset)["hash"]
    # By their whole path where two have one name.
    sweeps = {str(place): read_sweep(place, known) for place in places if place not in runs}
    how = {run.letter: told(run) for run in compared.candidates}
    outcomes = {
        run.letter: scored([TOP1], compared.dataset, compared.languages, run.run)[TOP1]
        for run in compared.candidates
        if across(compared.dataset)
    }
    return Report(findings(compared, HITS), outcomes, sweeps, how, command, version("langshift"), commit())
