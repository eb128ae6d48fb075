"""The console as an application: its addresses, and what becomes of errors."""

from __future__ import annotations

import os
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from opensearchpy.exceptions import OpenSearchException
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from langshift.console import note
from langshift.errors import ClusterError, FingerprintError, LangshiftError, UnavailableError, UsageError
from langshift.hidden import hide
from langshift.web.access import Access
from langshift.web.context import Console, console_of
from langshift.web.pages import FOLDER, trouble
from langshift.web.security import Guard

# Starlette's own words, which say too little.
_SAID: Final = {
    "Not Found": "There is no such page here.",
    "Method Not Allowed": "This address does not take that kind of request.",
}


def make_app(console: Console, access: Access) -> Starlette:
    """The application.

    Args:
        console: what its pages share; closed at the end.
        access: who may ask.
    """
    from langshift.web.evaluations.routes import ROUTES as EVALUATIONS
    from langshift.web.language_map.routes import ROUTES as LANGUAGES
    from langshift.web.routes import ROUTES as INDICES
    from langshift.web.search.routes import ROUTES as SEARCH

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(console.close)

    app = Starlette(
        routes=[
            Route("/", home),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            *(*SEARCH, *INDICES, *LANGUAGES, *EVALUATIONS),
        ],
        middleware=[Middleware(Guard, access=access, unforeseen=unforeseen)],
        exception_handlers={
            HTTPException: refused,
            LangshiftError: failed,
            OpenSearchException: failed,
        },
        lifespan=lifespan,
    )
    app.state.console = console
    return app


def home(_: Request) -> Response:
    """The search page is where everything begins."""
    return RedirectResponse("/search", 303)


def refused(request: Request, error: Exception) -> Response:
    """The page for what Starlette or a page refuses."""
    assert isinstance(error, HTTPException)  # noqa: S101
    said = _SAID.get(error.detail, f"{error.detail.rstrip('.')}.")
    return trouble(request, error.status_code, said)


def failed(request: Request, error: Exception) -> Response:
    """The page for what failed, in langshift's or in the client library's words."""
    assert isinstance(error, LangshiftError | OpenSearchException)  # noqa: S101
    console = console_of(request)
    told = console.failure(error)
    if isinstance(told, UnavailableError):
        console.lost()
        return trouble(request, 503, str(told), heading="The cluster is away", again=request.method == "GET")
    return trouble(request, _status(told), str(told))


def _status(error: Exception) -> int:
    if isinstance(error, UsageError):
        return 400
    return 502 if isinstance(error, ClusterError | FingerprintError) else 500


def unforeseen(request: Request, error: Exception) -> Response:
    """The page for what nobody thought of; where the console runs, one line tells of it."""
    kind = type(error).__name__
    note(hide(f"Error: {request.method} {request.url.path[:200]}: {kind}: {' '.join(str(error).split())[:300]}"))
    if os.environ.get("LANGSHIFT_DEBUG"):
        note(hide("".join(traceback.format_exception(error))))
    return trouble(
        request,
        500,
        f"langshift met something unforeseen ({kind}); where `langshift serve` runs, a line says more, "
        "and LANGSHIFT_DEBUG=1 shows where.",
    )
