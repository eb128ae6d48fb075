"""Up, down and status: one cluster per home, whatever state the last one was left in."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import urllib3

from langshift.embedded.artifacts import assemble, is_assembled, read_lock
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import Node, Server, ServerHome, check_folder, node_settings, read_settings, refused
from langshift.embedded.state import Account, ServerState, find_server, is_alive, popen_options
from langshift.errors import ClusterError
from langshift.files import ensure_folder, private_file
from langshift.reporting import note, wait

START_SECONDS = 180
STOP_SECONDS = 30
LOG_LINES = 20


class NodeRecord(NamedTuple):
    """A server as a command finds or starts it: what is remembered of it, and its process where it runs."""

    node: Node
    state: ServerState
    process: psutil.Process | None


def wait_until_ready(record: NodeRecord) -> ServerState:
    """Wait until the server answers and has a cluster manager, whatever the state of its indices.

    Returns:
        Its state with its port.

    Raises:
        ClusterError: its process died, with the end of its log, or it stands still before it is ready.
    """
    deadline, said = time.monotonic() + START_SECONDS, 0
    while time.monotonic() < deadline:
        # On a busy machine a start may take minutes, and tells of each step.
        if record.node.log.exists() and (size := record.node.log.stat().st_size) != said:
            deadline, said = time.monotonic() + START_SECONDS, size
        if record.process is None or not is_alive(record.process):
            raise ClusterError("OpenSearch exited while starting; the end of its log:", log=log_end(record.node))
        if (port := _port(record)) and _is_ready(port):
            return replace(record.state, ready=True, port=port)
        time.sleep(0.2)
    message = f"OpenSearch is not ready, and has logged nothing for {START_SECONDS} seconds; the end of its log:"
    raise ClusterError(message, log=log_end(record.node))


def serves(url: str) -> bool:
    """Whether the server at the address answers and can work."""
    return _is_ready(int(url.rpartition(":")[2]))


def _is_ready(port: int) -> bool:
    state = _get(port, "/_cluster/state/cluster_manager_node,blocks?local=true")
    # Until the manager has read the cluster's state from its disk, it knows no index, and says so by this block.
    unread = state and "1" in state.get("blocks", {}).get("global", {})
    return state is not None and bool(state.get("cluster_manager_node")) and not unread


def _get(port: int, path: str) -> dict[str, Any] | None:
    """Ask the server on this machine, past any proxy; None where there is no good answer."""
    try:
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}{path}", timeout=10, retries=False)
        document = answer.json() if answer.status == 200 else None
    except (urllib3.exceptions.HTTPError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _port(record: NodeRecord) -> int | None:
    """The port in the file that the server wrote, one address a line; None while it is not there."""
    try:
        first = (record.node.logs / "http.ports").read_text(encoding="utf-8").split()[0]
        return int(first.rpartition(":")[2])
    except (OSError, IndexError, ValueError):
        return None


def start(place: ServerHome, found: NodeRecord, settings: Mapping[str, Any]) -> None:
    """Start the server where it does not run, and wait until it is ready; one that never answers is stopped again.

    Args:
        place: the home.
        found: its server.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError, LangshiftError: as ``up``.
    """
    record = found
    # Downloads show themselves how far they are: no spinner is around them.
    java = _lay_out(place, found, settings) if found.process is None else None
    try:
        with wait(f"Starting OpenSearch {read_lock().version} ..."):
            if java is not None:
                record = _launch(place, found, java)
                record.state.write(record.node.state_file)
            state = wait_until_ready(record)
    except BaseException:  # Ctrl-C included
        # One that answers is at work on its indices, which it would begin anew.
        if record is not found and ((port := _port(record)) is None or _get(port, "/") is None):
            _stop(record)
        raise
    state.write(record.node.state_file)


def prepared(place: ServerHome) -> Path:
    """The assembled distribution, where the server's user can read it."""
    lock, folder = read_lock(), _distribution(place)
    reachable = place.account is None or (folder.exists() and place.account.reaches(folder))
    if not (reachable and is_assembled(lock, folder)):
        # Slow to load, and needed once in a home's life.
        from langshift.embedded.artifacts import download

        downloads = place.home / "downloads"
        ensure_folder(downloads)
        assemble(lock, download(lock, downloads), folder)
    return folder.resolve()


def _distribution(place: ServerHome) -> Path:
    return place.base / f"opensearch-{read_lock().version}"


def _lay_out(place: ServerHome, record: NodeRecord, settings: Mapping[str, Any]) -> Java:
    """Make the server's folders, with all that it runs; returns the Java for it."""
    check_folder(record.node.folder)
    if place.account and place.base != place.home.resolve():
        note(
            f"OpenSearch cannot run as root, and the user {place.account.name} cannot access {place.home}: "
            f"its files, including the data, are in {place.base}."
        )
    distribution, java = prepared(place), choose_java(place.account)
    record.node.lay_out(distribution, {**node_settings(record.state.port), **settings}, place.account)
    return java


def _launch(place: ServerHome, record: NodeRecord, java: Java) -> NodeRecord:
    """Start the server's process."""
    process = launch(record.node, java, place.account)
    runtime, version = str(java.program), read_lock().version
    begun = process.create_time()
    state = replace(record.state, pid=process.pid, created=begun, ready=False, java=runtime, version=version)
    return NodeRecord(record.node, state, process)


def up(home: Path, settings: Mapping[str, Any] | None = None) -> Server:
    """Return the OpenSearch of ``home``, started and ready; download and assemble it first if need be.

    Args:
        home: langshift's folder.
        settings: settings of OpenSearch beside our own; they win.

    Raises:
        ClusterError: the server died, or stood still before it was ready; the end of its log follows, or it refused a
            setting of the user's.
        LangshiftError: a download or the home's folder failed, or the user's settings cannot be used.
    """
    place = ServerHome.of(home)
    outdated = not is_assembled(read_lock(), _distribution(place))
    if not outdated and (server := place.server()) is not None and serves(server.url):
        return server
    with place.alone():
        own = read_settings(place.home)
        # Another langshift may have been at work.
        outdated = outdated and not is_assembled(read_lock(), _distribution(place))
        if outdated and _stop(_find(place.node)):
            note("Restarting OpenSearch because this langshift brings another one; its data is preserved.")
        try:
            start(place, _find(place.node), {**own, **(settings or {})})
        except ClusterError as error:
            raise refused(place.home, own, error) from None
        server = place.server()
        if server is None:
            raise ClusterError(why_not_running(home))
        return server


def running_or_up(home: Path) -> Server:
    """Return the OpenSearch of ``home`` that serves, be it an earlier langshift's; where none does, start it.

    Raises:
        ClusterError, LangshiftError: as ``up``.
    """
    server = ServerHome.of(home).server()
    return server if server is not None and serves(server.url) else up(home)


def down(home: Path) -> bool:
    """Stop the OpenSearch of ``home``; its data stays.

    Returns:
        Whether it ran.
    """
    place = ServerHome.of(home)
    if not place.node.folder.is_dir():
        return False
    with place.alone():
        return _stop(_find(place.node))


def status(home: Path) -> Server | None:
    """Return the running, once ready OpenSearch of ``home``, or None.

    Nothing is started or changed.
    """
    return ServerHome.of(home).server()


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server, with the end of the log where it died."""
    node = ServerHome.of(home).node
    state = node.state()
    if state.pid is None:
        return "The embedded OpenSearch is not running; start it with `langshift up`."
    if state.process(node.folder) is not None:
        return f"The embedded OpenSearch is starting (process {state.pid})."
    message = (
        f"The embedded OpenSearch is not running: its process {state.pid} ended unexpectedly; "
        "start it again with `langshift up`; the end of its log:"
    )
    return "\n".join((message, *log_end(node)))


def places(home: Path) -> dict[str, Any]:
    """What ``Server.to_dict`` gives, as far as it is known while no server runs."""
    place = ServerHome.of(home)
    files = {"home": str(place.base), "data": str(place.node.data), "log": str(place.node.log)}
    return {"url": None, "pid": None, "version": read_lock().version, **files, "java": None}


def plugins_folder(home: Path) -> Path:
    """The folder of the plugins that the OpenSearch of ``home`` has at its next start beside those it comes with."""
    return ServerHome.of(home).node.installed


def prepare(home: Path) -> Path:
    """Download and assemble for ``home``, without starting anything; return the distribution's folder."""
    place = ServerHome.of(home)
    with place.alone():
        return prepared(place)


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


def _find(node: Node) -> NodeRecord:
    """The server with its process, be it one that the state file does not know, and the state that fits it."""
    state = node.state()
    process = state.process(node.folder)
    if process is None and (found := find_server(node.folder)) is not None:
        # The file was lost, or langshift was killed before it could write it.
        state = replace(found, version=read_lock().version)
        process = state.process(node.folder)
    return NodeRecord(node, state, process)


def _stop(record: NodeRecord) -> bool:
    """Stop the server where it runs; whether it did."""
    if record.process is not None:
        terminate(record.process)
    record.state.stopped().write(record.node.state_file)
    return record.process is not None
