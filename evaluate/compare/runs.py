"""The runs to compare: folders that a replay or an offline evaluation wrote, or TREC runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.group_scores import GROUP_SCORES, read_group_scores
from langshift.evaluate.measures.material import Run
from langshift.evaluate.replay.journal import RESULT, unfinished
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.run import read_run
from langshift.retrieval.options import written
from langshift.retrieval.wanted import Setting

# Those that have a superscript.
LETTERS = "abcdefghijklmnoprstuvwxyz"
_WRITTEN_BY = "a folder that `langshift evaluate replay` or `offline` wrote with --output, or a TREC run with --dataset"


@dataclass(frozen=True)
class Candidate:
    """One of the runs.

    Attributes:
        letter: what tables call it.
        name: its folder's or file's name.
        place: that folder or file.
        run: the answers.
        group_scores: scores of whole target groups, empty where there are none.
        result: the content of ``result.json``, empty where there is none.
        how: the setting that a replay searched in, as options; None where that is not known.
    """

    letter: str
    name: str
    place: Path
    run: Run = field(repr=False)
    group_scores: Run = field(repr=False)
    result: Mapping[str, Any] = field(repr=False)
    how: str | None = None

    @property
    def label(self) -> str:
        """``b (shifted)``."""
        return f"{self.letter} ({self.name})"


def load(places: Sequence[Path], folder: Path | None) -> tuple[Dataset, list[Candidate]]:
    """Read runs and the dataset that they are runs of.

    Args:
        places: folders or TREC runs.
        folder: the dataset; None takes what ``result.json`` names.

    Raises:
        UsageError: no such run, runs of different datasets, or a dataset that cannot be told.
    """
    if len(places) > len(LETTERS):
        raise UsageError(f"{len(places)} runs are too many for one table: give {len(LETTERS)} at most.")
    results = [_result(place) for place in places]
    dataset = load_dataset(folder or _folder(places, results))
    ours = identity(dataset)
    for place, result in zip(places, results, strict=True):
        theirs = result.get("dataset") or ours
        if theirs["hash"] != ours["hash"]:
            raise UsageError(
                f"{place} is a run of {theirs['folder']} as it was then ({theirs['documents']:,} documents, "
                f"{theirs['queries']:,} queries, {theirs['hash']}), which differs from {dataset.folder} "
                f"({ours['documents']:,}, {ours['queries']:,}, {ours['hash']}): name the same dataset, or run it again."
            )
    return dataset, [
        _candidate(letter, name, place, result, dataset)
        for letter, name, place, result in zip(LETTERS, _names(places), places, results, strict=False)
    ]


def _result(place: Path) -> dict[str, Any]:
    """The content of a run's ``result.json``; empty for a TREC run.

    Raises:
        UsageError: there is no such run, or the file is damaged.
    """
    if place.is_file():
        return {}
    if not place.is_dir():
        raise UsageError(f"There is no run {place}: name {_WRITTEN_BY}.")
    if not (place / RUN).is_file():
        cut = ", for it is a replay that was cut off" if unfinished(place) else ""
        raise UsageError(f"{place} holds no {RUN}{cut}: name {_WRITTEN_BY}.")
    path = place / RESULT
    if not path.is_file():
        return {}
    try:
        result = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is not valid JSON ({error.msg}): run the evaluation again.") from None
    if not isinstance(result, dict) or not _is_identity(result.get("dataset")):
        raise UsageError(f"{path} is not what langshift writes: run the evaluation again.")
    return result


def _is_identity(known: object) -> bool:
    """Whether that is what ``identity`` says of a dataset; None where nothing is known of it."""
    if known is None:
        return True
    kinds = {"folder": str, "hash": str, "documents": int, "queries": int}
    return isinstance(known, dict) and all(isinstance(known.get(name), kind) for name, kind in kinds.items())


def _folder(places: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> Path:
    """The dataset that the results name.

    Raises:
        UsageError: none of them names one, or they name different ones.
    """
    named = [(place, result["dataset"]) for place, result in zip(places, results, strict=True) if result.get("dataset")]
    if not named:
        raise UsageError(f"{places[0]} does not say which dataset it is a run of: name it with --dataset.")
    place, first = named[0]
    for other, known in named[1:]:
        if known["hash"] != first["hash"]:
            raise UsageError(
                f"{place} and {other} are runs of different datasets, {first['folder']} ({first['queries']:,} queries, "
                f"{first['hash']}) and {known['folder']} ({known['queries']:,} queries, {known['hash']}): "
                "compare runs of one dataset."
            )
    folder = Path(first["folder"])
    if not folder.is_dir():
        raise UsageError(f"{place} is a run of {folder}, which is not there any more: name the dataset with --dataset.")
    return folder


def _names(places: Sequence[Path]) -> list[str]:
    """What to call each run: the last part of its path, or the whole of it where that is not enough."""
    short = [_short(place.absolute()) for place in places]
    taken = Counter(short)
    return [name if taken[name] == 1 else str(place) for name, place in zip(short, places, strict=True)]


def _short(place: Path) -> str:
    if not place.is_file():
        return place.name
    return place.parent.name if place.name == RUN else place.stem


def _candidate(letter: str, name: str, place: Path, result: Mapping[str, Any], dataset: Dataset) -> Candidate:
    path = place / RUN if place.is_dir() else place
    run = read_run(path)
    strange = run.keys() - {query.id for query in dataset.queries}
    if strange:
        raise UsageError(
            f"{path} answers {len(strange):,} queries that {dataset.folder} lacks, {min(strange)!r} first: "
            "it is a run of another dataset."
        )
    groups = path.with_name(GROUP_SCORES)
    scores = read_group_scores(groups) if groups.is_file() else {}
    return Candidate(letter, name, place, run, scores, result, _how(place, result))


def _how(place: Path, result: Mapping[str, Any]) -> str | None:
    """The setting that a replay searched in, as options.

    Raises:
        UsageError: what stands there is none.
    """
    if "setting" not in result:
        return None
    try:
        return written(Setting(**result["setting"]))
    except TypeError:
        raise UsageError(f"{place / RESULT} is not what langshift writes: run the evaluation again.") from None


def warnings(dataset: Dataset, candidates: Sequence[Candidate]) -> list[str]:
    """Where runs and dataset do not fit, in sentences."""
    told = []
    for candidate in candidates:
        if candidate.result.get("complete") is False:
            told.append(f"{candidate.label} is a replay that was cut off: its figures are too low; run it to its end.")
        if failed := candidate.result.get("errors"):
            told.append(f"{candidate.label} met {failed:,} failed queries, which count as 0.")
        unanswered = sum(not candidate.run.get(query.id) for query in dataset.queries)
        if unanswered:
            told.append(f"{candidate.label} has no answer for {unanswered:,} queries, which count as 0.")
        strange = {name for hits in candidate.run.values() for name in hits} - dataset.documents.keys()
        if strange:
            told.append(
                f"{candidate.label} finds {len(strange):,} documents that are not in the dataset "
                f"({min(strange)}, say), which count as not relevant."
            )
    return told
