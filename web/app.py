"""The console as an application: its addresses, its server, and what becomes of errors."""

import asyncio
import errno
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
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
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from langshift.errors import LangshiftError, UsageError
from langshift.model_server import trusted_origins
from langshift.reporting import Reporter, note, report_to, reporter
from langshift.settings import Settings
from langshift.web.api.app import Divided, make_api
from langshift.web.api.errors import STATUS, as_api_error
from langshift.web.api.options import ApiOptions
from langshift.web.context import FOLDER, AppContext, context_of, error_page, note_unexpected
from langshift.web.security import Access, SecurityMiddleware, access
from langshift.web.workers import serve_together

# Starlette's own words, which say too little.
_SAID: Final = {
    "Not Found": "This page does not exist.",
    "Method Not Allowed": "This address does not accept requests of this kind.",
}


def make_app(console: AppContext, access: Access, api: ApiOptions | None = None) -> ASGIApp:
    """The application.

    Args:
        console: what its pages share; closed at the end.
        access: who may ask.
        api: how the interface for programs is served; None for none.
    """
    from langshift.web.evaluations.judging import ROUTES as JUDGING
    from langshift.web.evaluations.results import ROUTES as EVALUATIONS
    from langshift.web.indices import ROUTES as INDICES
    from langshift.web.search.routes import ROUTES as SEARCH

    made = None if api is None else make_api(console, access, api)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with nullcontext() if made is None else made.running():
            yield
        await run_in_threadpool(console.close)

    app = Starlette(
        routes=[
            # The search page is where everything begins.
            Route("/", lambda _: RedirectResponse("/search", 303)),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            *(*SEARCH, *INDICES, *EVALUATIONS, *JUDGING),
        ],
        middleware=[Middleware(SecurityMiddleware, access=access, unforeseen=unexpected_error_page)],
        exception_handlers={
            HTTPException: http_error_page,
            LangshiftError: langshift_error_page,
            OpenSearchException: langshift_error_page,
        },
        lifespan=lifespan,
    )
    app.state.console = console
    return app if made is None else Divided(made.app, app)


def http_error_page(request: Request, error: Exception) -> Response:
    """The page for what Starlette or a page refuses."""
    assert isinstance(error, HTTPException)  # noqa: S101
    said = _SAID.get(error.detail, f"{error.detail.rstrip('.')}.")
    return error_page(request, error.status_code, said)


def langshift_error_page(request: Request, error: Exception) -> Response:
    """The page for what failed, in langshift's or in the client library's words."""
    made = as_api_error(context_of(request), error)
    if made.code == "unavailable":
        return error_page(request, 503, made.message, heading="The cluster is not available", again=True)
    # To who looks at pages, encoders and rerankers are a part of the console.
    return error_page(request, 500 if made.code == "model_failed" else STATUS[made.code], made.message)


def unexpected_error_page(request: Request, error: Exception) -> Response:
    """The page for what nobody thought of; where the console runs, one line tells of it."""
    kind = type(error).__name__
    note_unexpected(error, f"{request.method} {request.scope['path'][:200]}: ")
    return error_page(
        request,
        500,
        f"An unexpected error occurred ({kind}). The output of `langshift serve` has the details; "
        "with LANGSHIFT_DEBUG=1 it also shows where the error occurred.",
    )


# Seconds from when a connection is opened, or a request on it was answered, until the head of the next one is there.
# A browser opens some ahead of its requests, and opens them again.
_LONGEST: Final = 20.0
# Seconds that its body has from then on; the largest is 8 MiB.
_LONGEST_BODY: Final = 60.0


class IdleTimeoutProtocol(H11Protocol):
    """Uvicorn's own protocol, which waits for a request, and for its body, no longer than so long."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was opened."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """A request was answered; the next may be there already."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It was closed."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(_LONGEST, self._end_idle)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _end_idle(self, receiving: RequestResponseCycle | None = None) -> None:
        # A request that is there is answered, however long that takes; its answer begins the wait anew.
        cycle = self.cycle
        if cycle is None or cycle.response_complete or (cycle.more_body and cycle is receiving):
            self.transport.close()
        elif cycle.more_body:
            self._waiting = self.loop.call_later(_LONGEST_BODY, self._end_idle, cycle)


# An address of 1 MiB, in which every byte may be written as three, is read whole and refused with a page.
_MOST_HEAD: Final = 1 << 22
# More than a few browsers need; what is silent on them is closed after some seconds.
_CONNECTIONS: Final = 500
# Seconds that requests under way have left once the console is stopped.
_PATIENCE: Final = 2


def run(
    host: str,
    port: int,
    results: Path | None,
    on_start: Callable[[str, str | None], None],
    api: ApiOptions | None = None,
    workers: int = 1,
) -> None:
    """Serve the console until it is stopped.

    Args:
        host: where to listen.
        port: likewise; 0 for any.
        results: the folder of replays, which may come later; None for the usual one.
        on_start: called once the console can be reached, with its whole address and the token, if there is one.
        api: how the interface for programs is served; None for none.
        workers: how many processes serve.

    Raises:
        UsageError: the folder cannot be read, or there is no such host.
        LangshiftError: the port is taken, or the embedded OpenSearch does not start.
    """
    settings = Settings.from_env()
    # Told now, and not only by a page that asks an embedding server.
    trusted_origins()
    folder = settings.home / "results" if results is None else results
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        raise UsageError(f"{folder} is not a folder that you may read: name another for --results.")
    with _listening(host, port) as listener:
        bound, port = listener.getsockname()[:2]
        console = AppContext(settings, folder.absolute())
        if settings.url is None:
            # As with every command; a cluster of the user's own may come later.
            _ = console.client
        allowed = access(host, port, bound=bound, guarded=api is not None and bool(api.tokens))
        url = allowed.url if allowed.token is None else f"{allowed.url}?token={allowed.token}"
        if workers == 1:
            _serve(listener, console, allowed, api, lambda: on_start(url, allowed.token))
        else:
            console.close()
            arguments = (reporter(), folder.absolute(), allowed, api)
            serve_together(listener, _serve_one, arguments, workers, lambda: on_start(url, allowed.token))
        note("The console has stopped.")


def _listening(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise UsageError("--host is empty: give an address of this machine.")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(where[:2], family=family)
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"--host {host}: there is no host with that name or address.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LangshiftError(f"Port {port} of {host} is in use: choose another --port, or 0 for any.") from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {host} is not an address of this machine.") from error
        raise LangshiftError(f"langshift cannot listen on {host}, port {port}: {error.strerror}.") from error


def _serve_one(
    listener: socket.socket, reporter: Reporter, results: Path, access: Access, api: ApiOptions | None
) -> None:
    """Serve as one of several processes."""
    with report_to(reporter):
        _serve(listener, AppContext(Settings.from_env(), results), access, api, lambda: None)


def _serve(
    listener: socket.socket, console: AppContext, access: Access, api: ApiOptions | None, on_start: Callable[[], None]
) -> None:
    """Serve in this process until it is stopped."""
    import uvicorn

    config = uvicorn.Config(
        make_app(console, access, api),
        http=IdleTimeoutProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_MOST_HEAD,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_PATIENCE,
    )

    class WebServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # Only from here on it is stopped in order.
            on_start()

    try:
        WebServer(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # It is how it is meant to end.
        return
    finally:
        _leave_soon()


def _leave_soon() -> None:
    """End the process also where a request to a silent cluster still has a thread."""

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    timer = threading.Timer(_PATIENCE, leave)
    timer.daemon = True
    timer.start()
