"""Several processes that serve together at one address, started anew where one of them ends."""

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from langshift.reporting import note

#: Names the folder where processes leave their figures for each other, as prometheus_client has it.
FIGURES: Final = "PROMETHEUS_MULTIPROC_DIR"
# Seconds that a process has to end in order.
_PATIENCE: Final = 5.0
# One that ends so soon after its start would do so again.
_SOON: Final = 2.0
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_together(
    listener: socket.socket,
    serve: Callable[..., None],
    arguments: tuple[Any, ...],
    count: int,
    on_start: Callable[[], None],
) -> None:
    """Have several processes serve until this one is stopped.

    Args:
        listener: where all of them take connections from.
        serve: does it; a function of a module, called with the listener and the arguments in each process.
        arguments: which can be sent to another process.
        count: how many.
        on_start: called once all have begun.
    """
    os.environ[FIGURES] = figures = tempfile.mkdtemp(prefix="langshift-figures-")
    # No event: a signal that came while its lock is taken would wait for it for ever.
    stopped, made = list[int](), get_context("spawn")

    def started() -> tuple[SpawnProcess, float]:
        process = made.Process(target=_work, args=(listener, serve, arguments))
        process.start()
        return process, time.monotonic()

    for number in _STOPPING:
        signal.signal(number, lambda received, _: stopped.append(received))
    running = [started() for _ in range(count)]
    on_start()
    try:
        while not stopped:
            wait([process.sentinel for process, _ in running], 0.5)
            for place, (process, since) in enumerate(running):
                if process.exitcode is None or stopped:
                    continue
                _forget(process.pid)
                note(f"A process of the service ended with code {process.exitcode}; another takes its place.")
                if (now := time.monotonic()) - since < _SOON:
                    while not stopped and time.monotonic() < now + _SOON:
                        time.sleep(0.1)
                running[place] = started()
    finally:
        _end([process for process, _ in running])
        shutil.rmtree(figures, ignore_errors=True)


def _work(listener: socket.socket, serve: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(listener, *arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _end(processes: list[SpawnProcess]) -> None:
    for process in processes:
        process.terminate()
    late = time.monotonic() + _PATIENCE
    for process in processes:
        process.join(max(0.0, late - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()


def _forget(process: int | None) -> None:
    """Leave out of the figures what is of a process that has ended: who waited there."""
    with suppress(ImportError):
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process)  # type: ignore[no-untyped-call]
