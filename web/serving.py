"""What ``langshift serve`` does: checks what it was given, listens, and serves until it is stopped."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langshift.console import emit_json, note, out
from langshift.errors import LangshiftError, UsageError
from langshift.settings import Settings
from langshift.terminated import terminated_like_interrupted

if TYPE_CHECKING:
    from langshift.web.access import Access
    from langshift.web.context import Console

_NEEDED: Final = ("jinja2", "matplotlib", "psutil", "python_multipart", "starlette", "tabulate", "uvicorn")
_DEMO: Final = "demo"
# An address of 1 MiB, in which every byte may be written as three, is read whole and refused with a page.
_MOST_HEAD: Final = 1 << 22
# More than a few browsers need; what is silent on them is closed after some seconds.
_CONNECTIONS: Final = 500
# Seconds that requests under way have left once the console is stopped.
_PATIENCE: Final = 2


def run(host: str, port: int, results: Path | None, datasets: Sequence[Path], *, as_json: bool) -> None:
    """Serve the console until it is stopped.

    Args:
        host: where to listen.
        port: likewise; 0 for any.
        results: the folder of replays; None for the usual one.
        datasets: folders that may be replayed, beside the bundled one.
        as_json: whether the address is printed as JSON.

    Raises:
        UsageError: a folder cannot be used, or there is no such host.
        LangshiftError: the extra is not installed, the port is taken, or the embedded OpenSearch does not start.
    """
    if not all(find_spec(module) for module in _NEEDED):
        raise LangshiftError("`langshift serve` needs an extra: pip install 'langshift[console]'.")
    settings = Settings.from_env()
    folder = _writable(settings.home / "results" if results is None else results)
    named = _by_name(datasets)
    with _listening(host, port) as listener:
        from langshift.web.access import access
        from langshift.web.context import Console

        bound, port = listener.getsockname()[:2]
        console = Console(settings, folder.absolute(), named)
        if settings.url is None:
            # As with every command; a cluster of the user's own may come later.
            _ = console.client
        _serve(listener, console, access(host, port, bound=bound), as_json=as_json)


def _writable(folder: Path) -> Path:
    from langshift.evaluate.replay.result import check_output

    check_output(folder, "--results")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder} cannot be written to: name another --results.")
    return folder


def _by_name(folders: Sequence[Path]) -> dict[str, Path]:
    """Datasets by the names of their folders, the bundled one first."""
    from langshift.evaluate.datasets.dataset import CORPUS, HOLDS, QRELS, QUERIES
    from langshift.evaluate.demo import FOLDER

    found = {_DEMO: FOLDER}
    for folder in folders:
        path = folder.resolve()
        if not all((path / name).is_file() for name in (CORPUS, QUERIES, QRELS)):
            raise UsageError(f"--dataset {folder} is no dataset folder: {HOLDS}.")
        if found.setdefault(path.name, path) != path:
            raise UsageError(f"--dataset {folder}: another dataset is called {path.name} too; rename one of the two.")
    return found


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    if not host.strip():
        raise UsageError("--host is empty: name an address of this machine.")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(where[:2], family=family)
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"--host {host}: there is no such name or address.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LangshiftError(f"Port {port} of {host} is taken: name another --port, or 0 for any.") from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"--host {host} is no address of this machine.") from error
        raise LangshiftError(f"{host}, port {port}, cannot be listened to: {error.strerror}.") from error
    with listener:
        yield listener


def _serve(listener: socket.socket, console: Console, access: Access, *, as_json: bool) -> None:
    import uvicorn

    from langshift.web.app import make_app
    from langshift.web.patience import Patient

    config = uvicorn.Config(
        make_app(console, access),
        http=Patient,
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

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # Only from here on it is stopped in order.
            _tell(access, as_json=as_json)

    try:
        with terminated_like_interrupted():
            Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # It is how it is meant to end.
        note("The console is stopped.")
    finally:
        _leave_soon()


def _tell(access: Access, *, as_json: bool) -> None:
    url = access.url if access.token is None else f"{access.url}?token={access.token}"
    if as_json:
        emit_json({"url": url} | ({} if access.token is None else {"token": access.token}))
    else:
        out.print(f"The console is at {url} (Ctrl-C stops it)", soft_wrap=True, markup=False)
    sys.stdout.flush()


def _leave_soon() -> None:
    """End the process also where a request to a silent cluster still has a thread."""

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    timer = threading.Timer(_PATIENCE, leave)
    timer.daemon = True
    timer.start()
