"""The pages of evaluations: what lies in the results folder, compared and reported."""

import os
import stat
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, cast

import msgspec
from anyio import from_thread
from opensearchpy.exceptions import OpenSearchException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import CORPUS, QRELS, QUERIES
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20
from langshift.evaluate.replay.journal import RESULT, UNFINISHED
from langshift.evaluate.replay.result import RUN
from langshift.evaluate.report.report import build
from langshift.evaluate.report.writers import html
from langshift.evaluate.runs import GROUP_SCORES, PER_QUERY
from langshift.files import is_text
from langshift.plugin.inventory import all_versions
from langshift.retrieval import settings
from langshift.web.context import AppContext, LruCache, context_of, page
from langshift.web.evaluations.jobs import FORBIDDEN, REPORT, Job, Jobs, path_inside, read_job, stored_report
from langshift.web.security import REPORT_POLICY

_LABELS = {
    "mode": "Mode",
    "prefer_language": "Language preference",
    "spread": "Language preference",
    "fusion": "Fusion",
    "lexical_weight": "Lexical weight",
}
MOST_FIELDS = 20


def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent; files are left out. Only for functions that run in a thread."""

    async def read() -> dict[str, str]:
        async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
            return {name: value.strip() for name, value in form.items() if isinstance(value, str)}

    return from_thread.run(read)


def settings_from_form(form: Mapping[str, str]) -> settings.SearchSettings:
    """How to search: ``mode``, ``prefer`` (below 0 spreads), ``fusion``, ``weight``, ``one``; empty is what is usual.

    Raises:
        UsageError: a number is none or out of range, or things do not belong together.
    """
    hybrid = form.get("mode") == "hybrid"
    preference = form.get("prefer") or None
    away = preference is not None and preference.startswith("-")
    return settings.setting_of(
        mode=cast(settings.Mode, form.get("mode") or "dense"),
        prefer_language=None if away else cast(Any, preference),
        spread=cast(Any, preference.removeprefix("-")) if preference is not None and away else None,
        # The form shows both for every mode.
        fusion=cast(settings.Fusion, form.get("fusion") or None) if hybrid else None,
        lexical_weight=cast(Any, form.get("weight") or None) if hybrid else None,
        one_per_group=bool(form.get("one")),
        spelt=_label,
    )


def _label(name: str, value: object = None) -> str:
    return _LABELS[name] if value is None else f"{_LABELS[name]} {value}"


_MOST_REPORTS = 8
_PATIENCE_SECONDS = 60.0
_FILES = (RESULT, RUN, GROUP_SCORES, PER_QUERY)


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
            return self._made.of(_state(places, dataset), lambda: html(build(places)))
        finally:
            self._build_lock.release()


def _state(places: Sequence[Path], dataset: Path | None) -> Hashable:
    """What a report was made of: other files, other contents or another order are another report."""
    files = [place / name for place in places for name in _FILES]
    files += [dataset / name for name in (CORPUS, QUERIES, QRELS)] if dataset else []
    return tuple((str(path), *_stamp(path)) for path in files)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


DEPTH, MOST_FOLDERS = 4, 5_000


def find_files(root: Path, files: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """Look for files of these names.

    Args:
        root: where to begin; that there is no such folder is no error.
        files: names without a folder.

    Returns:
        Of each name the folders below the root that hold it, parts joined by ``/`` and empty for the root itself, and
        when it was written, seconds since 1970; the newest first.
    """
    whole = Path(os.path.realpath(root))
    found: dict[str, list[tuple[str, float]]] = {file: [] for file in files}
    for name in _folders(root, whole):
        for file in files:
            when = _written(root / name / file, whole)
            if when is not None:
                found[file].append((name, when))
    return {file: sorted(places, key=lambda one: (-one[1], one[0])) for file, places in found.items()}


def _folders(root: Path, whole: Path) -> Iterator[str]:
    """Breadth first, so that what is left out of a very large folder is deep in it."""
    waiting = deque([("", 0)])
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        name, depth = waiting.popleft()
        yield name
        if depth < DEPTH:
            waiting += [(f"{name}/{one}".lstrip("/"), depth + 1) for one in _within(root / name, whole)]


def _within(folder: Path, whole: Path) -> list[str]:
    """The folders in it that can be named in an address."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if _enters(entry, whole))
    except OSError:
        return []


def _enters(entry: os.DirEntry[str], whole: Path) -> bool:
    name = entry.name
    if name.startswith(".") or any(mark in name for mark in FORBIDDEN) or not is_text(name):
        return False
    try:
        return entry.is_dir() and (not entry.is_symlink() or _inside(Path(entry.path), whole))
    except OSError:
        return False


def _inside(path: Path, whole: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(whole)


def _written(path: Path, whole: Path) -> float | None:
    try:
        if not path.is_file() or (path.is_symlink() and not _inside(path, whole)):
            return None
        return path.stat().st_mtime
    except OSError:
        return None


MEASURES = ("nDCG@20", "TLR@20", "SLR@20", MOST_SHOWN_20, "LPR")
MOST_SHOWN = 200
_MOST_BYTES = 16 * 2**20


class _Dataset(msgspec.Struct):
    folder: str


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
    setting: settings.SearchSettings | None = None
    measures: dict[str, float | None] = {}
    most_shown: dict[str, _MostShown] = {}
    queries: dict[str, int] = {}
    errors: int = 0
    dataset: _Dataset | None = None
    fingerprint: _Fingerprint | None = None


class _UnfinishedRun(msgspec.Struct):
    """Of ``unfinished.json``."""

    index: str
    setting: settings.SearchSettings
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
        dataset: its name, as the console calls it, else its folder's.
        measures: those of ``MEASURES`` that were measured.
        most_shown: measure -> the language that is shown most.
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
    most_shown: Mapping[str, str] = field(default_factory=dict)
    queries: int | None = None
    errors: int = 0
    complete: bool = False
    dataset_folder: Path | None = None
    comparable: bool = False
    job: Job | None = None

    @property
    def cut(self) -> bool:
        """Whether it was cut off."""
        return not self.complete and not self.problem

    @property
    def resumable(self) -> bool:
        """Whether the console can go on with it."""
        return self.cut and self.job is not None and "/" not in self.name


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


def results(root: Path, datasets: Mapping[str, Path]) -> Results:
    """Look through the results folder; what is damaged is listed with a sentence.

    Args:
        root: the folder; that there is none is no error.
        datasets: name -> folder, as the console calls them.
    """
    names = _names(datasets)
    found = find_files(root, (RESULT, REPORT))
    # What lies in the root itself has no name.
    places = [(name, when) for name, when in found[RESULT] if name]
    runs = [_run(root / name, name, _time(when), names) for name, when in places[:MOST_SHOWN]]
    reports = [(f"{name}/{REPORT}".lstrip("/"), _time(when)) for name, when in found[REPORT][:MOST_SHOWN]]
    return Results(runs, reports, len(places) - len(runs) + len(found[REPORT]) - len(reports))


def describe_run(folder: Path, name: str, datasets: Mapping[str, Path]) -> ListedRun:
    """One run by its folder, as in ``results``."""
    try:
        found = (folder / RESULT).stat()
    except OSError:
        found = None
    # Who opens a pipe waits for ever.
    if found is None or not stat.S_ISREG(found.st_mode):
        return ListedRun(name, folder, _time(0), f"It contains no {RESULT}, so it is not a run.")
    return _run(folder, name, _time(found.st_mtime), _names(datasets))


def _names(datasets: Mapping[str, Path]) -> dict[str, str]:
    return {os.path.realpath(folder): name for name, folder in datasets.items()}


def _time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, ValueError, OSError):
        # A file system may hold any number.
        return datetime.fromtimestamp(0).astimezone()


def _run(folder: Path, name: str, when: datetime, names: Mapping[str, str]) -> ListedRun:
    run = ListedRun(name, folder, when)
    try:
        if (folder / RESULT).stat().st_size > _MOST_BYTES:
            return replace(run, problem=f"{RESULT} is larger than any that langshift writes: remove it.")
        found, begun = msgspec.json.decode((folder / RESULT).read_bytes(), type=_Result), None
        if (folder / UNFINISHED).is_file():
            begun = msgspec.json.decode((folder / UNFINISHED).read_bytes(), type=_UnfinishedRun)
        return _filled(run, found, begun, names)
    except OSError as error:
        return replace(run, problem=f"It cannot be read: {error.strerror}.")
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        return replace(run, problem=f"{RESULT} is not in langshift's format ({reason}): run the evaluation again.")


def _filled(run: ListedRun, found: _Result, begun: _UnfinishedRun | None, names: Mapping[str, str]) -> ListedRun:
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
        how=settings.format_settings(setting) if setting else " ".join(filter(None, (found.mode, found.method))),
        dataset=dataset,
        measures={name: value for name in MEASURES if (value := found.measures.get(name)) is not None},
        most_shown={name: most.language for name, most in found.most_shown.items()},
        queries=found.queries.get("asked", job.queries if job else None),
        errors=found.errors,
        complete=found.complete and begun is None,
        dataset_folder=Path(found.dataset.folder) if found.dataset else None,
        comparable=found.dataset is not None and (run.folder / RUN).is_file(),
        job=job,
    )


_HERE = "/evaluations"
# A report is one file without script; wherever it came from, it gets at nothing of the console.
_REPORT_HEADERS = {"content-security-policy": f"{REPORT_POLICY}; sandbox"}


def evaluations(request: Request) -> Response:
    """The page: the replay that is running, a form to start one, runs to choose, and reports."""
    console = context_of(request)
    jobs = jobs_of(console)
    running = jobs.running()
    found = results(console.results, console.datasets)
    names, away = ([], "") if running else _indices(console)
    return page(
        request,
        "evaluations.html",
        running=running,
        jobs=jobs,
        # The one that is running stands above the table.
        runs=[run for run in found.runs if running is None or run.name != running.name],
        found=found,
        measures=MEASURES,
        datasets=list(console.datasets),
        indices=names,
        away=away,
        settings=settings,
    )


def _indices(console: AppContext) -> tuple[list[str], str]:
    """The live indices, or why they are not known: the results are there all the same."""
    try:
        return sorted(one.name for one in all_versions(console.client) if one.state == "live"), ""
    except (LangshiftError, OpenSearchException) as error:
        return [], str(console.failure(error))


def comparison_report(request: Request) -> Response:
    """A report of the runs that the address names.

    The others are compared with the run whose index has the smallest alpha, and of several such the oldest.
    """
    console = context_of(request)
    names = list(dict.fromkeys(request.query_params.getlist("run")))
    if not names:
        raise UsageError("No run is selected: select one or more in the table.")
    runs = [describe_run(path_inside(console.results, name), name, console.datasets) for name in names]
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


def start(request: Request) -> Response:
    """Start a replay."""
    console, form = context_of(request), fields(request)
    how, index = settings_from_form(form), form.get("index", "")
    names, away = _indices(console)
    if away:
        raise HTTPException(503, f"No replay can be started now. {away}")
    if index not in names:
        raise UsageError(f"There is no index {index!r} on the cluster: choose one from the form.")
    jobs_of(console).start(form.get("dataset", ""), index, how)
    return back(request)


def resume(request: Request) -> Response:
    """Go on with a replay that was cut off."""
    jobs_of(context_of(request)).resume(fields(request).get("run", ""))
    return RedirectResponse(_HERE, 303)


def cancel(request: Request) -> Response:
    """End the replay that is running."""
    jobs_of(context_of(request)).cancel(fields(request).get("run", ""))
    return RedirectResponse(_HERE, 303)


def back(_: Request) -> Response:
    """Who loads the address of a form again gets the page."""
    return RedirectResponse(_HERE, 303)


def jobs_of(console: AppContext) -> Jobs:
    """The console's replays."""
    return console.shared(Jobs, lambda: Jobs(console.results, console.datasets))


_FORMS = {"start": start, "resume": resume, "cancel": cancel}
ROUTES = [
    Route(_HERE, evaluations),
    Route(f"{_HERE}/report", comparison_report),
    Route(f"{_HERE}/report/{{path:path}}", saved_report),
    *(Route(f"{_HERE}/{name}", send, methods=["POST"]) for name, send in _FORMS.items()),
    *(Route(f"{_HERE}/{name}", back) for name in _FORMS),
]
