"""Start the server's process, watch it until it is healthy, stop it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from langshift.console import err, note
from langshift.embedded.account import Account, popen_options
from langshift.embedded.java import Java
from langshift.embedded.node import Node
from langshift.embedded.state import State, is_alive
from langshift.errors import ClusterError

START_SECONDS = 180
STOP_SECONDS = 30
LOG_LINES = 20


def launch(node: Node, java: Java, account: Account | None, console: Path) -> psutil.Process:
    """Start the node in the background; it outlives this process and holds nothing of its terminal.

    Args:
        node: a node that was laid out.
        java: the runtime.
        account: the user to run as; None for the present one.
        console: file for what is printed before the log is open.

    Raises:
        ClusterError: the program could not be started at all.
    """
    for name in ("http.ports", "transport.ports"):
        (node.logs / name).unlink(missing_ok=True)
    # An empty log: what it holds after a failure is about this start.
    if node.log.exists():
        node.log.replace(node.logs / "server-previous.log")
    with console.open("wb") as output:
        try:
            child = subprocess.Popen(
                node.command(java),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A locale in which any path is readable, and nothing like JAVA_TOOL_OPTIONS.
                env={
                    "LC_ALL": "C.UTF-8",
                    **{name: os.environ[name] for name in ("TZ",) if name in os.environ},
                },
                cwd=node.folder,
                start_new_session=True,
                umask=0o022,
                **popen_options(account),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ClusterError(f"OpenSearch could not be started with {java.program}: {error}.") from None
    process = psutil.Process(child.pid)
    # It is left to itself on purpose; without this Python would warn of a forgotten child.
    child.returncode = 0
    return process


def wait_until_healthy(node: Node, state: State, process: psutil.Process, console: Path) -> State:
    """Wait until the server answers and its health is at least yellow.

    Returns:
        The state with the server's ports.

    Raises:
        ClusterError: the process died, with the end of its log, or did not become healthy in time.
    """
    deadline = time.monotonic() + START_SECONDS
    with _spinner(f"Starting OpenSearch {state.version} ..."):
        while time.monotonic() < deadline:
            if not is_alive(process):
                raise ClusterError(f"OpenSearch died while starting; the end of its log:\n{log_end(node, console)}")
            port, transport = _port(node.logs / "http.ports"), _port(node.logs / "transport.ports")
            if port and transport and _healthy(port):
                return replace(state, ready=True, port=port, transport=transport)
            time.sleep(0.2)
    raise ClusterError(
        f"OpenSearch did not become healthy within {START_SECONDS} seconds; the end of its log:\n"
        f"{log_end(node, console)}"
    )


def answers(url: str) -> bool:
    """Whether a server answers at the address."""
    return _get(int(url.rpartition(":")[2]), "/") is not None


def terminate(process: psutil.Process, patience: float = STOP_SECONDS) -> None:
    """Ask the process to stop; after ``patience`` seconds, kill it."""
    try:
        process.terminate()
        if not _gone(process, patience):
            process.kill()
            _gone(process, STOP_SECONDS)
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied:
        raise ClusterError(f"OpenSearch (process {process.pid}) is another user's: stop it as that user.") from None


def log_end(node: Node, console: Path, lines: int = LOG_LINES) -> str:
    """The last lines of the server's log, or of what it printed where the log is empty.

    Stack frames are left out: twenty of them would hide what went wrong.
    """
    for file in (node.log, console):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace").splitlines()
            telling = [line for line in text if line.strip() and not line.startswith(("\tat ", "\t... "))]
            if telling:
                return "\n".join(telling[-lines:])
    return "(the log is empty)"


def _gone(process: psutil.Process, seconds: float) -> bool:
    """Wait until the process is dead; a zombie is, though its parent has not collected it yet."""
    deadline = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _healthy(port: int) -> bool:
    health = _get(port, "/_cluster/health?wait_for_status=yellow&timeout=2s")
    return health is not None and health.get("status") in ("yellow", "green")


def _get(port: int, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Ask the server on this machine, past any proxy; None where there is no good answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        return json.loads(body) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _port(file: Path) -> int | None:
    """The port in a file that the server wrote, one address a line; None while it is not there."""
    try:
        first = file.read_text(encoding="utf-8").split()[0]
        return int(first.rpartition(":")[2])
    except (OSError, IndexError, ValueError):
        return None


@contextmanager
def _spinner(message: str) -> Iterator[None]:
    if err.is_terminal:
        with err.status(message):
            yield
    else:
        note(message)
        yield
