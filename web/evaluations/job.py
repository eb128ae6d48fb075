"""A replay that a console started, as a small file beside its results: another console knows it by that."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from langshift.evaluate.datasets.dataset import FACTS, Dataset, read_judged
from langshift.evaluate.scoring import parse_names
from langshift.retrieval.options import read_setting
from langshift.whole import whole

JOB, LOG = "console.json", "replay.log"
SIGINT_SECONDS = 5.0
"""How long a replay that is to end may take before it is killed."""
_LOG_END = 4096
_NEAR_SECONDS = 5.0
# Not `-m`: Python would look for langshift in the working directory first.
_START = "import sys; sys.path = [place for place in sys.path if place]; from langshift.entry import main; main()"


class Process(msgspec.Struct, frozen=True):
    """A process, told from others that had its number before or after it.

    Attributes:
        pid: its number.
        started: when it started, seconds since 1970.
    """

    pid: int
    started: float

    @classmethod
    def of(cls, process: psutil.Process) -> Process:
        """The process as it stands in a file."""
        return cls(process.pid, process.create_time())

    def find(self) -> psutil.Process | None:
        """The living process, or None."""
        try:
            found = psutil.Process(self.pid)
            # It is reckoned from when the system started, which moves a little where the clock is set right.
            same = abs(found.create_time() - self.started) < _NEAR_SECONDS and found.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, ValueError, OverflowError):
            return None
        return found if same else None


class Job(msgspec.Struct, frozen=True):
    """What a console asked for.

    Attributes:
        dataset: the name that the console gives the dataset.
        index: the index.
        setting: how to search, as ``read_setting`` reads it.
        queries: how many the dataset has.
        began: when its process was started, seconds since 1970.
        process: who replays; None before it is started.
        console: who started it.
        ended: why it was ended, in a sentence; empty where nobody did.
    """

    dataset: str
    index: str
    setting: str
    queries: int
    began: float
    process: Process | None = None
    console: Process | None = None
    ended: str = ""

    def command(self, dataset: Path, folder: Path, *, resume: bool) -> list[str]:
        """The command that replays; the cluster's address and credentials come by the environment only.

        Raises:
            UsageError: the setting cannot be read, or how the dataset was judged.
        """
        read_setting(self.setting)
        # The page shows LPR, too, which a replay measures only where it is asked to.
        measures = parse_names(None, Dataset(dataset, {}, (), {}, read_judged(dataset / FACTS)))
        words = ["evaluate", "replay", str(dataset), "--index", self.index, "--mode", *shlex.split(self.setting)]
        words += [
            "--measures",
            " ".join(measures),
            "--output",
            str(folder),
            "--json",
            *(["--resume"] if resume else []),
        ]
        return [sys.executable, "-c", _START, *words]

    def living(self, folder: Path) -> psutil.Process | None:
        """Its process where that lives; the folder must be in its command, so that nobody else's is ever ended."""
        process = None if self.process is None else self.process.find()
        try:
            return process if process is not None and str(folder) in process.cmdline() else None
        except psutil.Error:
            return None


def read_job(folder: Path) -> Job | None:
    """The job of a folder; None where no console began it, or its file is damaged."""
    try:
        # Who opens a pipe waits for ever.
        if not (folder / JOB).is_file():
            return None
        return msgspec.json.decode((folder / JOB).read_bytes(), type=Job)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def write_job(folder: Path, job: Job) -> None:
    """Write it, whole or not at all."""
    with whole(folder / JOB) as partial:
        partial.write_bytes(msgspec.json.encode(job))


def remove_job(folder: Path) -> None:
    """Take away what the console itself put into a folder, and the folder where nothing else is in it."""
    with suppress(OSError):
        for name in (JOB, LOG):
            (folder / name).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def last_words(folder: Path) -> str:
    """The sentence with which a replay failed; empty where it said none."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LOG_END, 0))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return said[-1] if said else ""


def end(process: psutil.Process) -> None:
    """Ask a replay to end as Ctrl-C does, and kill it where it does not."""
    with suppress(psutil.Error, ProcessLookupError):
        _signal(process, interrupt=True)
        try:
            process.wait(SIGINT_SECONDS)
        except psutil.TimeoutExpired:
            _signal(process, interrupt=False)
            process.wait(SIGINT_SECONDS)


def _signal(process: psutil.Process, *, interrupt: bool) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        # It leads a group of its own, so that whatever it started ends with it.
        os.killpg(process.pid, signal.SIGINT if interrupt else signal.SIGKILL)
