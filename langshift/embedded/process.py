"""Start a server's process, and stop it."""

import os
import subprocess
import time

import psutil

from langshift.embedded.java import Java
from langshift.embedded.node import Node
from langshift.embedded.state import Account, is_alive, popen_options
from langshift.errors import ClusterError
from langshift.files import private_file

STOP_SECONDS = 30
LOG_LINES = 20


def launch(node: Node, java: Java, account: Account | None) -> psutil.Process:
    """Start the node in the background; it outlives this process and holds nothing of its terminal.

    Args:
        node: a node that was laid out.
        java: the runtime.
        account: the user to run as; None for the present one.

    Raises:
        ClusterError: the program could not be started at all.
    """
    (node.logs / "http.ports").unlink(missing_ok=True)
    # An empty log: what it holds after a failure is about this start.
    if node.log.exists():
        node.log.replace(node.logs / "server-previous.log")
    with private_file(node.console) as output:
        try:
            child = subprocess.Popen(
                node.command(java),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A locale in which any path is readable, and nothing like JAVA_TOOL_OPTIONS.
                env={"LC_ALL": "C.UTF-8", **{name: os.environ[name] for name in ("TZ",) if name in os.environ}},
                cwd=node.folder,
                start_new_session=True,
                umask=0o077,
                **popen_options(account),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ClusterError(f"OpenSearch could not be started with {java.program}: {error}.") from None
    process = psutil.Process(child.pid)
    # It is left to itself on purpose; without this Python would warn of a forgotten child.
    child.returncode = 0
    return process


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
        raise ClusterError(
            f"OpenSearch (process {process.pid}) belongs to another user: stop it as that user."
        ) from None


def log_end(node: Node) -> list[str]:
    """The last lines of the server's log, or of what it printed where the log is empty.

    Stack frames are left out: twenty of them would hide what went wrong.
    """
    for file in (node.log, node.console):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace").splitlines()
            telling = [line for line in text if line.strip() and not line.lstrip("\t").startswith(("at ", "... "))]
            if telling:
                return telling[-LOG_LINES:]
    return ["(the log is empty)"]


def _gone(process: psutil.Process, seconds: float) -> bool:
    """Wait until the process is dead; a zombie is, though its parent has not collected it yet."""
    deadline = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
