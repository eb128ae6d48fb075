"""Up, down and status: one server per home, whatever state the last one was left in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from langshift.console import note
from langshift.embedded import Server
from langshift.embedded.distribution import assemble, is_assembled
from langshift.embedded.java import choose_java
from langshift.embedded.lock import read_lock
from langshift.embedded.node import check_folder, single_node_settings
from langshift.embedded.place import Place
from langshift.embedded.process import answers, launch, log_end, terminate, wait_until_healthy
from langshift.embedded.state import State, find_server


def up(home: Path, settings: Mapping[str, Any] | None = None) -> Server:
    """Return the running server of ``home``, or start one; see :func:`langshift.embedded.up`.

    Args:
        home: langshift's folder.
        settings: settings of OpenSearch beside our own; they win.
    """
    place = Place.of(home)
    running = status(home)
    if running is not None and answers(running.url):
        return running
    with place.alone():
        state, process = _running(place)
        if process is not None:
            state = wait_until_healthy(place.node, state, process, place.console)
        else:
            state = _start(place, state, settings or {})
        state.write(place.state_file)
        return place.server(state)


def down(home: Path) -> bool:
    """Stop the server of ``home``; whether there was one."""
    place = Place.of(home)
    if not place.node.folder.is_dir():
        return False
    with place.alone():
        state, process = _running(place)
        if process is not None:
            terminate(process)
        state.stopped().write(place.state_file)
        return process is not None


def status(home: Path) -> Server | None:
    """Return the running, once healthy server of ``home``, or None."""
    place = Place.of(home)
    state = place.state()
    if not state.ready or state.process(place.node.folder) is None:
        return None
    return place.server(state)


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server, with the end of the log where one died."""
    place = Place.of(home)
    state = place.state()
    if state.pid is None:
        return "The embedded OpenSearch is not running; langshift up starts it."
    if state.process(place.node.folder) is not None:
        return f"The embedded OpenSearch is starting (process {state.pid})."
    return (
        f"The embedded OpenSearch is not running: its process {state.pid} is gone, though nobody stopped it; "
        f"langshift up starts it again; the end of its log:\n{log_end(place.node, place.console)}"
    )


def places(home: Path) -> dict[str, str | None]:
    """Where the files of a server that does not run are."""
    place = Place.of(home)
    return {
        "url": None,
        "pid": None,
        "version": read_lock().version,
        "home": str(place.base),
        "data": str(place.node.data),
        "log": str(place.node.log),
        "java": None,
    }


def prepare(home: Path) -> Path:
    """Download and assemble for ``home``; the distribution's folder."""
    place = Place.of(home)
    with place.alone():
        return _distribution(place)


def _running(place: Place) -> tuple[State, psutil.Process | None]:
    """The server's process, be it one that the state file does not know, and the state that fits it."""
    state = place.state()
    process = state.process(place.node.folder)
    if process is None and (found := find_server(place.node.folder)) is not None:
        # The file was lost, or langshift was killed before it could write it.
        state = replace(found, version=read_lock().version)
        process = state.process(place.node.folder)
    return state, process


def _start(place: Place, last: State, settings: Mapping[str, Any]) -> State:
    """Start the server and wait until it is healthy; what does not become healthy is stopped again."""
    check_folder(place.node.folder)
    if place.account and place.base != place.home.resolve():
        note(
            f"OpenSearch cannot run as root, and the user {place.account.name} cannot reach {place.home}: "
            f"its files, the data included, are in {place.base}."
        )
    distribution = _distribution(place)
    java = choose_java(place.account)
    ours = single_node_settings(last.port, last.transport)
    place.node.lay_out(distribution, {**ours, **settings}, place.account)
    process = launch(place.node, java, place.account, place.console)
    state = State(
        pid=process.pid,
        created=process.create_time(),
        port=last.port,
        transport=last.transport,
        java=str(java.program),
        version=read_lock().version,
    )
    try:
        state.write(place.state_file)
        return wait_until_healthy(place.node, state, process, place.console)
    except BaseException:  # Ctrl-C included
        terminate(process)
        state.stopped().write(place.state_file)
        raise


def _distribution(place: Place) -> Path:
    """The assembled distribution, where the server's user can read it."""
    lock = read_lock()
    folder = place.base / f"opensearch-{lock.version}"
    reachable = place.account is None or (folder.exists() and place.account.reaches(folder))
    if not (reachable and is_assembled(lock, folder)):
        # Slow to load, and needed once in a home's life.
        from langshift.embedded.download import download

        assemble(lock, download(lock, place.home / "downloads"), folder)
    return folder.resolve()
