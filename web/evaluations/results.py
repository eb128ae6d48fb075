"""The page of evaluations: what lies in the results folder, compared and reported; replays are made by a command."""

import shlex
import stat
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Annotated, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.findings import compare_places, findings
from langshift.evaluate.compare.log_replays import is_logged
from langshift.evaluate.datasets.dataset import CORPUS, QRELS, QUERIES
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20
from langshift.evaluate.replay.journal import FOUND_DOCUMENTS, LOGGED_QUERIES, RESULT, UNFINISHED
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.report.report import build
from langshift.evaluate.report.tables import HITS
from langshift.evaluate.report.writers import html
from langshift.evaluate.runs import GROUP_SCORES, PER_QUERY
from langshift.retrieval.request import SearchSettings, format_settings
from langshift.web.context import LruCache, context_of, page
from langshift.web.evaluations.folder import REPORT, find_files, path_inside, stored_report
from langshift.web.security import REPORT_POLICY

_MOST_REPORTS = 8
_PATIENCE_SECONDS = 60.0
_FILES = (RESULT, RUN, GROUP_SCORES, PER_QUERY, LOGGED_QUERIES, FOUND_DOCUMENTS)


class Reports:
    """Makes one report at a time, for a large one takes seconds and much memory."""

    def __init__(self) -> None:
        self._build_lock = Lock()
        self._made: LruCache[str] = LruCache(_MOST_REPORTS)

    def html(self, places: Sequence[Path], dataset: Path | None) -> str:
        """The page of these runs.

        Args:
            places: their folders, first the one that the others are compared with.
            dataset: the folder that the runs name, whose files are watched, too.

        Raises:
            UsageError: the runs cannot be compared, with the reason.
            LangshiftError: another report is being made for so long.
        """
        if not self._build_lock.acquire(timeout=_PATIENCE_SECONDS):
            raise LangshiftError("Another report is being generated, one at a time: reload this page in a minute.")
        try:
            return self._made.of(
                files_state(places, dataset), lambda: html(build(findings(compare_places(places, None), HITS)))
            )
        finally:
            self._build_lock.release()


def files_state(places: Sequence[Path], dataset: Path | None) -> Hashable:
    """What is read of runs and their dataset: other files, other contents or another order are another state."""
    files = [place / name for place in places for name in _FILES]
    files += [dataset / name for name in (CORPUS, QUERIES, QRELS)] if dataset else []
    return tuple((str(path), *_stamp(path)) for path in files)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "own@1", "own@3", MOST_SHOWN_20, "LPR")
MOST_SHOWN = 200
_MOST_BYTES = 16 * 2**20


class _Dataset(msgspec.Struct):
    # Of a name with a zero in it no file can be asked for.
    folder: Annotated[str, msgspec.Meta(pattern=r"^[^\0]+\Z")]


class _Fingerprint(msgspec.Struct):
    alpha: float | None = None


class _MostShown(msgspec.Struct):
    language: str


class _Result(msgspec.Struct):
    """Of ``result.json`` what the table shows; of a replay that is not at its end only ``complete`` is there."""

    complete: bool
    index: str | None = None
    version: str | None = None
    mode: str | None = None
    method: str | None = None
    setting: SearchSettings | None = None
    measures: dict[str, float | None] = {}
    most_shown: dict[str, _MostShown] = {}
    queries: dict[str, int] = {}
    errors: int = 0
    dataset: _Dataset | None = None
    fingerprint: _Fingerprint | None = None


class _UnfinishedRun(msgspec.Struct):
    """Of ``unfinished.json``."""

    index: str
    setting: SearchSettings
    fingerprint: _Fingerprint


@dataclass(frozen=True)
class ListedRun:
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
        dataset: the name of its folder.
        measures: those of ``MEASURES`` that were measured.
        most_shown: measure -> the language that is shown most.
        queries: how many were asked, None where unknown.
        errors: how many of them failed.
        complete: whether it came to its end.
        dataset_folder: where that was when it was replayed, None where unknown.
        comparable: whether a report can be made of it.
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
    most_shown: Mapping[str, str] = field(default_factory=dict)
    queries: int | None = None
    errors: int = 0
    complete: bool = False
    dataset_folder: Path | None = None
    comparable: bool = False

    @property
    def cut(self) -> bool:
        """Whether it was cut off."""
        return not self.complete and not self.problem


class Results(NamedTuple):
    """What lies in the results folder, the newest first.

    Attributes:
        runs: the runs.
        reports: the reports: their paths below the results folder, and when they were written.
        left_out: how many older ones there are that are not shown.
    """

    runs: list[ListedRun]
    reports: list[tuple[str, datetime]]
    left_out: int


def results(root: Path) -> Results:
    """Look through the results folder; what is damaged is listed with a sentence.

    Args:
        root: the folder; that there is none is no error.
    """
    found = find_files(root, (RESULT, REPORT))
    # What lies in the root itself has no name.
    places = [(name, when) for name, when in found[RESULT] if name]
    runs = [_run(root / name, name, _time(when)) for name, when in places[:MOST_SHOWN]]
    reports = [(f"{name}/{REPORT}".lstrip("/"), _time(when)) for name, when in found[REPORT][:MOST_SHOWN]]
    return Results(runs, reports, len(places) - len(runs) + len(found[REPORT]) - len(reports))


def describe_run(folder: Path, name: str) -> ListedRun:
    """One run by its folder, as in ``results``."""
    try:
        found = (folder / RESULT).stat()
    except OSError:
        found = None
    # Who opens a pipe waits for ever.
    if found is None or not stat.S_ISREG(found.st_mode):
        return ListedRun(name, folder, _time(0), f"It contains no {RESULT}, so it is not a run.")
    return _run(folder, name, _time(found.st_mtime))


def _time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, ValueError, OSError):
        # A file system may hold any number.
        return datetime.fromtimestamp(0).astimezone()


def _run(folder: Path, name: str, when: datetime) -> ListedRun:
    run = ListedRun(name, folder, when)
    try:
        if (folder / RESULT).stat().st_size > _MOST_BYTES:
            return replace(run, problem=f"{RESULT} is larger than any that langshift writes: remove it.")
        found, begun = msgspec.json.decode((folder / RESULT).read_bytes(), type=_Result), None
        if (folder / UNFINISHED).is_file():
            begun = msgspec.json.decode((folder / UNFINISHED).read_bytes(), type=_UnfinishedRun)
        return _filled(run, found, begun)
    except OSError as error:
        return replace(run, problem=f"It cannot be read: {error.strerror}.")
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        return replace(run, problem=f"{RESULT} is not in langshift's format ({reason}): run the evaluation again.")


def _filled(run: ListedRun, found: _Result, begun: _UnfinishedRun | None) -> ListedRun:
    setting = found.setting or (begun.setting if begun else None)
    made = found.fingerprint or (begun.fingerprint if begun else None)
    dataset = Path(found.dataset.folder) if found.dataset else None
    return replace(
        run,
        index=found.index or (begun.index if begun else ""),
        version=found.version or (begun.index if begun else ""),
        alpha=made.alpha if made else None,
        how=format_settings(setting) if setting else " ".join(filter(None, (found.mode, found.method))),
        dataset=dataset.name if dataset else "",
        measures={name: value for name in MEASURES if (value := found.measures.get(name)) is not None},
        most_shown={name: most.language for name, most in found.most_shown.items()},
        queries=found.queries.get("asked"),
        errors=found.errors,
        complete=found.complete and begun is None,
        dataset_folder=dataset,
        comparable=(dataset is not None or is_logged(run.folder)) and (run.folder / RUN).is_file(),
    )


_HERE = "/evaluations"
# A report is one file without script; wherever it came from, it gets at nothing of the console.
_REPORT_HEADERS = {"content-security-policy": f"{REPORT_POLICY}; sandbox"}


def evaluations(request: Request) -> Response:
    """The page: runs to choose, reports, and the command that makes a run."""
    root = context_of(request).results
    replay = ["langshift", "evaluate", "replay", "DATASET", "--index", "NAME", "--output", str(root / "NAME")]
    return page(
        request, "evaluations.html", found=results(root), measures=MEASURES, folder=root, replay=shlex.join(replay)
    )


def comparison_report(request: Request) -> Response:
    """A report of the runs that the address names.

    The others are compared with the run whose index has the smallest alpha, and of several such the oldest.
    """
    console = context_of(request)
    names = list(dict.fromkeys(request.query_params.getlist("run")))
    if not names:
        raise UsageError("No run is selected: select one or more in the table.")
    runs = [describe_run(path_inside(console.results, name), name) for name in names]
    for run in runs:
        if run.problem:
            raise UsageError(f"{run.name}: {run.problem}")
    runs.sort(key=lambda run: (0.0 if run.alpha is None else run.alpha, run.when, run.name))
    made = console.shared(Reports, Reports).html([run.folder for run in runs], runs[0].dataset_folder)
    return HTMLResponse(made, headers=_REPORT_HEADERS)


def saved_report(request: Request) -> Response:
    """A report that lies in the results folder."""
    content = stored_report(context_of(request).results, request.path_params["path"])
    return HTMLResponse(content, headers=_REPORT_HEADERS)


ROUTES = [
    Route(_HERE, evaluations),
    Route(f"{_HERE}/report", comparison_report),
    Route(f"{_HERE}/report/{{path:path}}", saved_report),
]
