"""The addresses of evaluations: results, reports of some of them, and a replay that is started and cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy.exceptions import OpenSearchException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from langshift.errors import LangshiftError, UsageError
from langshift.plugin.listing import all_versions
from langshift.retrieval.settings import MOST_PREFERENCE
from langshift.retrieval.wanted import FUSIONS, MODES, USUAL
from langshift.web.context import Console, console_of
from langshift.web.evaluations.asking import fields, setting
from langshift.web.evaluations.comparing import Reports
from langshift.web.evaluations.jobs import Jobs
from langshift.web.evaluations.places import inside, stored_report
from langshift.web.evaluations.results import MEASURES, Run, described, results
from langshift.web.pages import page
from langshift.web.security import REPORT_POLICY

_HERE = "/evaluations"
# A report is one file without script; wherever it came from, it gets at nothing of the console.
_REPORT_HEADERS = {"content-security-policy": f"{REPORT_POLICY}; sandbox"}


def evaluations(request: Request) -> Response:
    """The page: the replay that is running, a form to start one, runs to choose, and reports."""
    console = console_of(request)
    jobs = jobs_of(console)
    running = jobs.running()
    found = results(console.results, console.datasets)
    names, away = ([], "") if running else _indices(console)
    here = None if running is None else running.name
    # The one that is running stands above the table.
    runs = [_row(run, jobs) for run in found.runs if run.name != here]
    return page(
        request,
        "evaluations.html",
        running=running,
        told=jobs.told,
        runs=runs,
        reports=found.reports,
        left_out=found.left_out,
        measures=MEASURES,
        datasets=list(console.datasets),
        indices=names,
        away=away,
        modes=MODES,
        fusions=FUSIONS,
        usual=USUAL,
        most=MOST_PREFERENCE,
    )


def _indices(console: Console) -> tuple[list[str], str]:
    """The live indices, or why they are not known: the results are there all the same."""
    try:
        return sorted(one.name for one in all_versions(console.client) if one.state == "live"), ""
    except (LangshiftError, OpenSearchException) as error:
        return [], str(console.failure(error))


def _row(run: Run, jobs: Jobs) -> Mapping[str, Any]:
    """A run, and of one that was cut off how far it came, why, and whether the console can go on with it."""
    cut = not run.complete and not run.problem
    return {
        "run": run,
        "cut": cut,
        "answered": jobs.answered(run.folder) if cut else None,
        "why": jobs.why(run.folder) if cut else "",
        "resumable": cut and run.job is not None and "/" not in run.name,
    }


def compared(request: Request) -> Response:
    """A report of the runs that the address names.

    The others are compared with the run whose index has the smallest alpha, and of several such the oldest.
    """
    console = console_of(request)
    names = list(dict.fromkeys(request.query_params.getlist("run")))
    if not names:
        raise UsageError("Choose one run or more in the table: none is named.")
    runs = [described(inside(console.results, name), name, console.datasets) for name in names]
    for run in runs:
        if run.problem:
            raise UsageError(f"{run.name}: {run.problem}")
    runs.sort(key=lambda run: (0.0 if run.alpha is None else run.alpha, run.when, run.name))
    made = console.kept(Reports, Reports).html([run.folder for run in runs], runs[0].dataset_folder)
    return HTMLResponse(made, headers=_REPORT_HEADERS)


def stored(request: Request) -> Response:
    """A report that lies in the results folder."""
    content = stored_report(console_of(request).results, request.path_params["path"])
    return HTMLResponse(content, headers=_REPORT_HEADERS)


def start(request: Request) -> Response:
    """Start a replay."""
    console, form = console_of(request), fields(request)
    how, index = setting(form), form.get("index", "")
    names, away = _indices(console)
    if away:
        raise HTTPException(503, f"No replay can be started now. {away}")
    if index not in names:
        raise UsageError(f"There is no index {index!r} on the cluster: choose one of those in the form.")
    jobs_of(console).start(form.get("dataset", ""), index, how)
    return RedirectResponse(_HERE, 303)


def resume(request: Request) -> Response:
    """Go on with a replay that was cut off."""
    jobs_of(console_of(request)).resume(fields(request).get("run", ""))
    return RedirectResponse(_HERE, 303)


def cancel(request: Request) -> Response:
    """End the replay that is running."""
    jobs_of(console_of(request)).cancel(fields(request).get("run", ""))
    return RedirectResponse(_HERE, 303)


def back(_: Request) -> Response:
    """Who loads the address of a form again gets the page."""
    return RedirectResponse(_HERE, 303)


def jobs_of(console: Console) -> Jobs:
    """The console's replays."""
    return console.kept(Jobs, lambda: Jobs(console.results, console.datasets))


_FORMS = {"start": start, "resume": resume, "cancel": cancel}
ROUTES = [
    Route(_HERE, evaluations),
    Route(f"{_HERE}/report", compared),
    Route(f"{_HERE}/report/{{path:path}}", stored),
    *(Route(f"{_HERE}/{name}", send, methods=["POST"]) for name, send in _FORMS.items()),
    *(Route(f"{_HERE}/{name}", back) for name in _FORMS),
]
