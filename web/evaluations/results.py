"""What lies in the results folder: runs, and reports of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from langshift.evaluate.replay.journal import RESULT, UNFINISHED
from langshift.evaluate.replay.result import RUN
from langshift.retrieval.options import written
from langshift.retrieval.wanted import Setting
from langshift.web.evaluations.job import Job, read_job
from langshift.web.evaluations.looking import look
from langshift.web.evaluations.places import REPORT

MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "LPR")
MOST_SHOWN = 200
_MOST_BYTES = 16 * 2**20
_Kind = TypeVar("_Kind")


class _Dataset(msgspec.Struct):
    folder: str


class _Fingerprint(msgspec.Struct):
    alpha: float | None = None


class _Result(msgspec.Struct):
    """Of ``result.json`` what the table shows; of a replay that is not at its end only ``complete`` is there."""

    complete: bool
    index: str | None = None
    version: str | None = None
    mode: str | None = None
    method: str | None = None
    setting: Setting | None = None
    measures: dict[str, float | None] = {}
    queries: dict[str, int] = {}
    errors: int = 0
    dataset: _Dataset | None = None
    fingerprint: _Fingerprint | None = None


class _Begun(msgspec.Struct):
    """Of ``unfinished.json``."""

    index: str
    setting: Setting
    fingerprint: _Fingerprint


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        name: its folder, as an address names it.
        folder: that folder.
        when: when its ``result.json`` was written.
        problem: why it cannot be shown, in a sentence; empty where it can.
        index: what was searched; empty where no index was.
        version: the version of it.
        alpha: the index's alpha, None where unknown.
        how: the setting, as options; of an evaluation without a cluster mode and method.
        dataset: its name, as the console calls it, else its folder's.
        measures: those of ``MEASURES`` that were measured.
        queries: how many were asked, None where unknown.
        errors: how many of them failed.
        complete: whether it came to its end.
        dataset_folder: where that was when it was replayed, None where unknown.
        comparable: whether a report can be made of it.
        job: what a console asked for, where one began it.
    """

    name: str
    folder: Path
    when: datetime
    problem: str = ""
    index: str = ""
    version: str = ""
    alpha: float | None = None
    how: str = ""
    dataset: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)
    queries: int | None = None
    errors: int = 0
    complete: bool = False
    dataset_folder: Path | None = None
    comparable: bool = False
    job: Job | None = None


@dataclass(frozen=True)
class StoredReport:
    """A ``report.html``: its path below the results folder, and when it was written."""

    name: str
    when: datetime


@dataclass(frozen=True)
class Results:
    """What lies in the results folder, the newest first.

    Attributes:
        runs: the runs.
        reports: the reports.
        left_out: how many older ones there are that are not shown.
    """

    runs: list[Run]
    reports: list[StoredReport]
    left_out: int


def results(root: Path, datasets: Mapping[str, Path]) -> Results:
    """Look through the results folder; what is damaged is listed with a sentence.

    Args:
        root: the folder; that there is none is no error.
        datasets: name -> folder, as the console calls them.
    """
    names = _names(datasets)
    found = look(root, (RESULT, REPORT))
    # What lies in the root itself has no name.
    places = [one for one in found[RESULT] if one.name]
    runs = [_run(one.folder, one.name, _time(one.when), names) for one in places[:MOST_SHOWN]]
    reports = [
        StoredReport(f"{one.name}/{REPORT}" if one.name else REPORT, _time(one.when))
        for one in found[REPORT][:MOST_SHOWN]
    ]
    return Results(runs, reports, len(places) - len(runs) + len(found[REPORT]) - len(reports))


def described(folder: Path, name: str, datasets: Mapping[str, Path]) -> Run:
    """One run by its folder, as in ``results``."""
    try:
        found = (folder / RESULT).stat()
    except OSError:
        found = None
    # Who opens a pipe waits for ever.
    if found is None or not stat.S_ISREG(found.st_mode):
        return Run(name, folder, _time(0), f"It holds no {RESULT}, so it is no run.")
    return _run(folder, name, _time(found.st_mtime), _names(datasets))


def _names(datasets: Mapping[str, Path]) -> dict[str, str]:
    return {os.path.realpath(folder): name for name, folder in datasets.items()}


def _time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, ValueError, OSError):
        # A file system may hold any number.
        return datetime.fromtimestamp(0).astimezone()


def _run(folder: Path, name: str, when: datetime, names: Mapping[str, str]) -> Run:
    run = Run(name, folder, when)
    try:
        if (folder / RESULT).stat().st_size > _MOST_BYTES:
            return replace(run, problem=f"{RESULT} is larger than any that langshift writes: remove it.")
        found = _decoded(folder / RESULT, _Result)
        begun = _decoded(folder / UNFINISHED, _Begun) if (folder / UNFINISHED).is_file() else None
        return _filled(run, found, begun, names)
    except OSError as error:
        return replace(run, problem=f"It cannot be read: {error.strerror}.")
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        return replace(run, problem=f"{RESULT} is not what langshift writes ({reason}): run the evaluation again.")


def _decoded(path: Path, kind: type[_Kind]) -> _Kind:
    return msgspec.json.decode(path.read_bytes(), type=kind)


def _filled(run: Run, found: _Result, begun: _Begun | None, names: Mapping[str, str]) -> Run:
    job = read_job(run.folder)
    setting = found.setting or (begun.setting if begun else None)
    made = found.fingerprint or (begun.fingerprint if begun else None)
    dataset = job.dataset if job else ""
    if found.dataset is not None:
        dataset = names.get(os.path.realpath(found.dataset.folder)) or Path(found.dataset.folder).name
    return replace(
        run,
        index=found.index or (job.index if job else begun.index if begun else ""),
        version=found.version or (begun.index if begun else ""),
        alpha=made.alpha if made else None,
        how=written(setting) if setting else " ".join(filter(None, (found.mode, found.method))),
        dataset=dataset,
        measures={name: value for name in MEASURES if (value := found.measures.get(name)) is not None},
        queries=found.queries.get("asked", job.queries if job else None),
        errors=found.errors,
        complete=found.complete and begun is None,
        dataset_folder=Path(found.dataset.folder) if found.dataset else None,
        comparable=found.dataset is not None and (run.folder / RUN).is_file(),
        job=job,
    )
