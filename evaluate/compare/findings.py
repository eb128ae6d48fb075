"""All that runs say against each other: what `evaluate compare` prints, and what a report rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langshift.evaluate.compare import runs
from langshift.evaluate.compare.advice import advice
from langshift.evaluate.compare.compare_gate import Verdict
from langshift.evaluate.compare.comparing import Comparison, compare, sign
from langshift.evaluate.compare.document import document
from langshift.evaluate.compare.matrix import Matrix, matrices
from langshift.evaluate.compare.sections import across, columns
from langshift.evaluate.compare.winners import HITS, Extremes, extremes
from langshift.evaluate.datasets.clusters import clusters
from langshift.evaluate.datasets.texts import Languages, read_texts
from langshift.evaluate.scoring import parse_names


@dataclass(frozen=True)
class Findings:
    """All that was found.

    Attributes:
        compared: figures and tests.
        matrices: recall by query and document language, of every later run against the first.
        examples: who gains and loses most, of every later run against the first.
        advice: which run to use for whom, in sentences.
        warnings: what makes the figures less than they seem, in sentences.
    """

    compared: Comparison
    matrices: Sequence[Matrix]
    examples: Sequence[Extremes]
    advice: Sequence[str]
    warnings: Sequence[str]

    def to_dict(self, verdicts: Sequence[Verdict] = ()) -> dict[str, Any]:
        """One JSON document."""
        return document(self.compared, self.matrices, self.examples, self.advice, verdicts, self.warnings)


def compare_places(
    places: Sequence[Path], folder: Path | None, measures: str | None = None, also: Sequence[str] = ()
) -> Comparison:
    """Read runs, score them and test them against each other.

    Args:
        places: folders or TREC runs, as ``runs.load`` reads them.
        folder: the dataset; None takes what the runs name.
        measures: names; None takes the usual ones, LPR among them where every run has scores of whole groups.
        also: names of further measures.

    Raises:
        UsageError: a run, dataset or measure that cannot be used.
    """
    dataset, candidates = runs.load(places, folder)
    names = parse_names(measures, dataset)
    if measures is None and not all(candidate.group_scores for candidate in candidates):
        names = [name for name in names if name != "LPR"]
    names += parse_names(" ".join(also), dataset) if also else []
    unnamed = {name for name, document in dataset.documents.items() if document.language is None}
    languages = Languages.of(dataset, read_texts(dataset, unnamed) if unnamed else {})
    wanted = columns(list(dict.fromkeys(names)), cross=across(dataset))
    return compare(dataset, languages, clusters(dataset), candidates, wanted)


def findings(compared: Comparison, hits: int = HITS) -> Findings:
    """What follows from figures and tests.

    Args:
        compared: the runs.
        hits: how many documents of each run an example shows.
    """
    primary, several = compared.primary, len(compared.candidates) > 1
    found = matrices(compared) if several and across(compared.dataset) else []
    examples = extremes(compared, sign(primary), primary, hits=hits) if several and primary else []
    told = [*compared.languages.warnings, *runs.warnings(compared.dataset, compared.candidates), *_notes(compared)]
    return Findings(compared, found, examples, advice(compared), told)


def _notes(compared: Comparison) -> list[str]:
    """What measures say of their figures, each once."""
    return list(
        dict.fromkeys(
            f"{run.label}, {column.measure}: {found.note}"
            for run in compared.candidates
            for column, found in compared.scores[run.letter].items()
            if found.note
        )
    )
