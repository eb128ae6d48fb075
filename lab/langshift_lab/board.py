"""Runs of many datasets and retrievers in one table, from what their ``result.json`` says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import read_result
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.most_shown import MOST_SHOWN
from langshift.evaluate.measures.preference import LPR
from langshift.evaluate.replay.journal import RESULT
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.runs import too_shallow, unlike_depths
from langshift.languages import primary
from langshift.retrieval.request import SearchSettings, format_settings
from langshift.wording import join_words

#: What a board shows where nobody says, if every run has it.
USUAL = "nDCG@10"


class BoardDataset(msgspec.Struct, frozen=True):
    """A dataset as ``result.json`` names it, see ``identity``.

    Attributes:
        folder: where it was.
        documents: how many.
        queries: how many.
        hash: of ids and judgements.
    """

    folder: str
    documents: int
    queries: int
    hash: str


class RunFigures(msgspec.Struct, frozen=True):
    """Means and numbers of queries, by measure."""

    measures: Mapping[str, float | None]
    queries: Mapping[str, int]


class RunSummary(RunFigures, frozen=True, kw_only=True):
    """What a board reads of a ``result.json``."""

    complete: bool
    dataset: BoardDataset
    by_language: Mapping[str, RunFigures]
    fingerprint: Fingerprint
    errors: int
    top_k: int
    setting: SearchSettings | None = None
    method: str | None = None
    shift_queries: bool = False
    language_from: str | None = None
    beta: float = 0.0

    @property
    def how(self) -> tuple[str, str, str]:
        """What makes the retriever: the encoder, how documents were moved, and how they were searched."""
        made = self.fingerprint
        encoder = ", ".join(filter(None, (made.encoder, made.pooling, made.query_prefix, made.document_prefix)))
        if self.setting is not None:
            return encoder, made.scales, format_settings(self.setting)
        sides = "both sides" if self.shift_queries else None
        words = (self.method, sides, self.language_from, f"beta {self.beta:g}" if self.beta else None)
        return encoder, made.scales, f"exact, {', '.join(filter(None, words))}"


class BoardRun(NamedTuple):
    """One cell.

    Attributes:
        place: the run's folder.
        result: what its ``result.json`` says.
    """

    place: Path
    result: RunSummary

    def mean(self, measure: str) -> float | None:
        """The mean over the queries that the measure counts; None where it counts none."""
        return self.result.measures.get(measure)


class LanguageMeans(NamedTuple):
    """Means over query languages, each language alike.

    Attributes:
        known: over those that are no surprise; None where there are none.
        surprise: over the surprise languages; None where there are none.
        every: over all.
        languages: language -> mean over the datasets that have queries in it.
    """

    known: float | None
    surprise: float | None
    every: float | None
    languages: Mapping[str, float]


@dataclass(frozen=True)
class Retriever:
    """One row.

    Attributes:
        name: what the row is called.
        how: encoder, scales and setting.
        runs: hash of a dataset -> its run.
    """

    name: str
    how: tuple[str, str, str]
    runs: Mapping[str, BoardRun] = field(repr=False)

    def macro(self, measure: str, datasets: Collection[str]) -> float | None:
        """The mean over datasets, each alike; None over none."""
        return _mean([self._figure(measure, one) for one in datasets])

    def weighted(self, measure: str, datasets: Collection[str]) -> float | None:
        """The mean over the queries of all datasets that the measure counts; None over none."""
        counts = [self.runs[one].result.queries.get(measure, 0) for one in datasets]
        if not sum(counts):
            return None
        return sum(n * self._figure(measure, one) for n, one in zip(counts, datasets, strict=True)) / sum(counts)

    def by_language(self, measure: str, datasets: Collection[str], surprise: Collection[str]) -> LanguageMeans:
        """Means by query language over some datasets."""
        found = defaultdict[str, list[float]](list)
        for one in datasets:
            for language, part in self.runs[one].result.by_language.items():
                if (mean := part.measures.get(measure)) is not None:
                    found[language].append(mean)
        means = {language: fmean(figures) for language, figures in sorted(found.items())}
        known = [mean for language, mean in means.items() if language not in surprise]
        others = [mean for language, mean in means.items() if language in surprise]
        return LanguageMeans(_mean(known), _mean(others), _mean([*means.values()]), means)

    def _figure(self, measure: str, dataset: str) -> float:
        mean = self.runs[dataset].mean(measure)
        assert mean is not None  # noqa: S101 - of datasets that all have
        return mean


def _mean(figures: Sequence[float]) -> float | None:
    return fmean(figures) if figures else None


@dataclass(frozen=True)
class Board:
    """The table.

    Attributes:
        measure: what its cells are the means of.
        datasets: name -> dataset, in the order of the runs.
        retrievers: the rows, the highest macro mean first.
        surprise: the surprise languages.
        nearby: measures that stand side by side, nDCG and LPR; empty where the runs do not have both.
    """

    measure: str
    datasets: Mapping[str, BoardDataset]
    retrievers: Sequence[Retriever]
    surprise: Sequence[str]
    nearby: Sequence[str]

    def shared(self, *measures: str) -> dict[str, str]:
        """Name -> hash of the datasets for which every retriever has the measures."""
        return {
            name: one.hash
            for name, one in self.datasets.items()
            if all(one.hash in row.runs for row in self.retrievers)
            and all(row.runs[one.hash].mean(measure) is not None for row in self.retrievers for measure in measures)
        }

    @property
    def remarks(self) -> list[str]:
        """What makes figures less comparable than they seem, in sentences."""
        said = []
        shared = self.shared(self.measure)
        if not shared:
            said.append("No dataset has a figure of every retriever, so their means cannot be compared: none is shown.")
        elif len(shared) < len(self.datasets):
            said.append(f"Means are over {join_words([*shared])} alone, which every retriever has.")
        places = {str(run.place): run.result.top_k for row in self.retrievers for run in row.runs.values()}
        said += unlike_depths([self.measure], places)
        for row in self.retrievers:
            shifts = {(run.result.fingerprint.pivot, run.result.fingerprint.vectors) for run in row.runs.values()}
            if len(shifts) > 1:
                said.append(f"{row.name}: the datasets were searched with different language vectors or pivots.")
            for run in row.runs.values():
                shallow = too_shallow([self.measure], run.result.top_k, run.result.dataset.documents)
                said += [f"{run.place}: {sentence}" for sentence in shallow]
                if run.result.errors:
                    said.append(f"{run.place} has {run.result.errors:,} failed queries, which count as 0.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        shared = self.shared(self.measure)
        return {
            "measure": self.measure,
            "datasets": {name: msgspec.structs.asdict(one) for name, one in self.datasets.items()},
            "means_over": [*shared],
            "surprise": [*self.surprise],
            "retrievers": [
                {
                    "name": row.name,
                    **dict(zip(("encoder", "scales", "setting"), row.how, strict=True)),
                    "runs": {name: self._run(row, one) for name, one in self.datasets.items() if one.hash in row.runs},
                    "macro_mean": row.macro(self.measure, shared.values()),
                    "weighted_mean": row.weighted(self.measure, shared.values()),
                    "by_language": row.by_language(self.measure, shared.values(), self.surprise)._asdict(),
                    "side_by_side": {name: row.macro(name, self.shared(*self.nearby).values()) for name in self.nearby},
                }
                for row in self.retrievers
            ],
            "remarks": self.remarks,
        }

    def _run(self, row: Retriever, dataset: BoardDataset) -> dict[str, Any]:
        run = row.runs[dataset.hash]
        counted = run.result.queries.get(self.measure, 0)
        return {"folder": str(run.place), "mean": run.mean(self.measure), "queries": counted}


def make_board(places: Sequence[Path], measure: str | None, surprise: Sequence[str]) -> Board:
    """Read runs, and make the table of them.

    A row is named after the folder of its runs; where that is the dataset's name, after the folder above. Runs of
    one name are one retriever where encoder, scales and setting are the same, too.

    Args:
        places: folders of runs, or folders that hold some, however deep.
        measure: what to show; None shows ``USUAL``, or the first that all runs have.
        surprise: languages whose mean stands apart.

    Raises:
        UsageError: no run, one that is not complete or names no dataset, two of one retriever and dataset, a data
            set that changed between runs, or a measure that a run lacks.
    """
    runs = [_read(place) for place in dict.fromkeys(one for place in places for one in _runs_in(place))]
    datasets = _datasets(runs)
    shown = _measure(runs, measure)
    common = _common(runs)
    gains = next((name for name in (shown, *common) if parse_measure(name).family.name == "nDCG"), None)
    rows = _retrievers(runs)
    unranked = Board(shown, datasets, rows, _surprise(runs, surprise), ())
    nearby = [gains, LPR.name] if gains else []
    over = unranked.shared(shown).values()
    ranked = sorted(rows, key=lambda row: (-round(row.macro(shown, over) or 0.0, 12), row.name))
    return Board(shown, datasets, ranked, unranked.surprise, nearby if nearby and unranked.shared(*nearby) else ())


def _runs_in(place: Path) -> list[Path]:
    if not place.is_dir():
        raise UsageError(f"There is no folder {place}: name what `langshift evaluate replay` or `offline` wrote.")
    if (place / RESULT).is_file() or (place / RUN).is_file():
        return [place]
    if not (found := sorted(path.parent for path in place.rglob(RESULT))):
        raise UsageError(
            f"{place} contains no {RESULT}, nor does a folder in it: name what `langshift evaluate replay` or "
            "`offline` wrote."
        )
    return found


def _read(place: Path) -> BoardRun:
    given = read_result(place)
    if not given.get("dataset"):
        raise UsageError(
            f"{place} does not record which dataset it is a run of: run the evaluation again, or leave it out."
        )
    try:
        result = msgspec.convert(given, RunSummary)
    except msgspec.ValidationError as error:
        path = place / RESULT
        raise UsageError(f"{path} is not in langshift's format ({error}): run the evaluation again.") from None
    if not result.complete:
        raise UsageError(f"{place} is an interrupted replay, so its figures are too low: resume it, or leave it out.")
    return BoardRun(place, result)


def _datasets(runs: Sequence[BoardRun]) -> dict[str, BoardDataset]:
    """Name -> dataset; a name is as much of the end of its path as tells it from the others."""
    found: dict[str, BoardDataset] = {}
    places: dict[str, BoardRun] = {}
    for run in runs:
        dataset = run.result.dataset
        found.setdefault(dataset.hash, dataset)
        other = places.setdefault(dataset.folder, run)
        if other.result.dataset.hash != dataset.hash:
            raise UsageError(
                f"{other.place} and {run.place} are runs of different datasets that are both {dataset.folder} "
                f"({other.result.dataset.hash}, {dataset.hash}): run the earlier evaluation again, or leave one out."
            )
    names = {key: PurePath(one.folder).parts for key, one in found.items()}
    shown = {}
    for key, parts in names.items():
        size = next(n for n in range(1, len(parts) + 1) if sum(one[-n:] == parts[-n:] for one in names.values()) == 1)
        shown["/".join(parts[-size:])] = found[key]
    return shown


def _surprise(runs: Sequence[BoardRun], given: Sequence[str]) -> list[str]:
    known = sorted({language for run in runs for language in run.result.by_language})
    found = [primary(tag) for tag in given]
    if absent := [tag for tag in found if tag not in known]:
        raise UsageError(f"--surprise names {absent[0]!r}, and no query is in it: the runs have {', '.join(known)}.")
    return found


def _retrievers(runs: Sequence[BoardRun]) -> list[Retriever]:
    rows = defaultdict[tuple[str, tuple[str, str, str]], dict[str, BoardRun]](dict)
    for run in runs:
        path = run.place.absolute()
        dataset = run.result.dataset
        name = path.parent.name if path.name == PurePath(dataset.folder).name else path.name
        row = rows[name, run.result.how]
        if dataset.hash in row:
            raise UsageError(
                f"{row[dataset.hash].place} and {run.place} are runs of one retriever, {name}, and one dataset, "
                f"{dataset.folder}: leave one out, or rename its folder."
            )
        row[dataset.hash] = run
    taken = Counter(name for name, _ in rows)
    return [
        Retriever(name if taken[name] == 1 else f"{name} ({_telling(name, how, [*rows])})", how, row)
        for (name, how), row in rows.items()
    ]


def _telling(name: str, how: tuple[str, str, str], rows: Sequence[tuple[str, tuple[str, str, str]]]) -> str:
    """What tells a retriever from others of the same name."""
    others = [one for other, one in rows if other == name]
    return ", ".join(part for place, part in enumerate(how) if len({one[place] for one in others}) > 1)


def _common(runs: Sequence[BoardRun]) -> list[str]:
    """The measures that all runs have, less those whose means say nothing together."""
    first, *others = runs
    names = (name for name in first.result.measures if all(name in run.result.measures for run in others))
    return [name for name in names if parse_measure(name).family is not MOST_SHOWN]


def _measure(runs: Sequence[BoardRun], given: str | None) -> str:
    common = _common(runs)
    if given is None:
        if not common:
            raise UsageError("The runs have no measure in common: run the evaluations again with the same --measures.")
        return USUAL if USUAL in common else common[0]
    name = parse_measure(given).name
    if name in common:
        return name
    lacking = next((run.place for run in runs if name not in run.result.measures), None)
    if lacking is None:
        raise UsageError(f"{name} is of another language in each run, so it has no mean: name another --measure.")
    has = f"choose from {', '.join(common)}" if common else "the runs have none in common"
    raise UsageError(f"{lacking} has no {name}: {has}, or run the evaluation again with --measures {name}.")
