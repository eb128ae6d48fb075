"""Replays that the console starts: one at a time, each a process of its own whose progress is on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import Signals
from threading import RLock

import msgspec
import psutil

from langshift.errors import UsageError
from langshift.evaluate.replay.journal import PER_QUERY, RESULT, UNFINISHED
from langshift.retrieval.options import written
from langshift.retrieval.wanted import Setting
from langshift.web.evaluations.answered import Answered
from langshift.web.evaluations.job import JOB, Job, end, last_words, read_job, remove_job, write_job
from langshift.web.evaluations.places import FORBIDDEN
from langshift.web.evaluations.running import Running, begun
from langshift.web.evaluations.starting import count, launch, new_folder

# More than a page shows: what was read of a journal is not read again.
_MOST_JOURNALS = 256


class Jobs:
    """The replays of one results folder.

    Attributes:
        results: the results folder.
        datasets: name -> folder: what may be replayed.
        told: how the last replay ended, in a sentence; empty before that.
    """

    def __init__(self, results: Path, datasets: Mapping[str, Path]) -> None:
        self.results, self.datasets, self.told = results, datasets, ""
        self._lock = RLock()
        self._own: tuple[Path, Job, psutil.Popen] | None = None
        self._journals: dict[Path, Answered] = {}

    def start(self, dataset: str, index: str, setting: Setting) -> str:
        """Start a replay, and give the name of its folder.

        Args:
            dataset: a name of ``datasets``.
            index: a live index; that there is one is for the caller to check.
            setting: how to search.

        Raises:
            UsageError: another replay is running, there is no such dataset, or the results folder cannot be written.
        """
        with self._lock:
            self._refuse_second()
            place = self._dataset(dataset)
            job = Job(dataset, index, written(setting), count(place), time.time())
            folder = new_folder(self.results, index)
            self._own, self.told = (folder, *launch(folder, job, place, resume=False)), ""
            return folder.name

    def resume(self, name: str) -> None:
        """Go on with a replay that was cut off, with the options with which it was begun.

        Raises:
            UsageError: another one is running, or this one cannot be gone on with.
        """
        with self._lock:
            self._refuse_second()
            folder = self._folder(name)
            job = None if folder is None else read_job(folder)
            if folder is None or job is None or not (folder / UNFINISHED).is_file():
                raise UsageError(f"{name!r} is no replay of this console that was cut off: start one anew.")
            place = self._dataset(job.dataset)
            now = msgspec.structs.replace(job, queries=count(place), began=time.time(), process=None, ended="")
            self._own, self.told = (folder, *launch(folder, now, place, resume=True)), ""

    def cancel(self, name: str) -> None:
        """End the replay that is running; what was answered is kept.

        Raises:
            UsageError: it is not running.
        """
        with self._lock:
            found = self._living()
            if found is None or found[0].name != name:
                raise UsageError(f"The replay {name!r} is not running any more: there is nothing to cancel.")
            self._end(*found, "It was cancelled.")

    def running(self) -> Running | None:
        """The replay that is running, whichever console of this folder started it; None where none is."""
        with self._lock:
            found = self._living()
            if found is None:
                return None
            folder, job, _ = found
            return Running(folder.name, job, self.answered(folder), begun(folder, job))

    def answered(self, folder: Path) -> int:
        """How many queries of a replay are answered, by its journal."""
        with self._lock:
            if folder not in self._journals and len(self._journals) >= _MOST_JOURNALS:
                self._journals.clear()
            return self._journals.setdefault(folder, Answered(folder / PER_QUERY)).count()

    def why(self, folder: Path) -> str:
        """Why a replay that is not running was cut off, in a sentence."""
        job = read_job(folder)
        if job is None:
            return "It was begun by a command: that with --resume goes on, unless it is still running."
        return last_words(folder) or job.ended or "Its process ended before it was done."

    def close(self) -> None:
        """End the replay that is running, unless another console that lives started it."""
        with self._lock:
            found = self._living()
            if found is None:
                return
            other = found[1].console
            if other is None or other.pid == os.getpid() or other.find() is None:
                self._end(*found, "The console was closed.")

    def _refuse_second(self) -> None:
        if found := self._living():
            raise UsageError(f"The replay {found[0].name} is running: wait until it is done, or cancel it.")

    def _dataset(self, name: str) -> Path:
        if name not in self.datasets:
            raise UsageError(f"There is no dataset {name!r}; there are: {', '.join(self.datasets)}.")
        return self.datasets[name].absolute()

    def _folder(self, name: str) -> Path | None:
        """A folder that is right in the results folder; the console puts its replays nowhere else."""
        folder = self.results.absolute() / name
        if (
            name in ("", ".", "..")
            or folder.parent != self.results.absolute()
            or any(mark in name for mark in FORBIDDEN)
        ):
            return None
        try:
            return folder if folder.is_dir() and not folder.is_symlink() else None
        except OSError:
            # No file system takes a name that long.
            return None

    def _living(self) -> tuple[Path, Job, psutil.Process] | None:
        """Ours, else one that an earlier or another console of this folder started."""
        if self._own is not None:
            folder, job, process = self._own
            if process.poll() is None:
                return self._own
            self._own = None
            self._settle(folder, job, process.returncode)
        for path in sorted(self.results.absolute().glob(f"*/{JOB}")):
            job_there = read_job(path.parent)
            process_there = None if job_there is None else job_there.living(path.parent)
            if job_there is not None and process_there is not None:
                return path.parent, job_there, process_there
        return None

    def _end(self, folder: Path, job: Job, process: psutil.Process, why: str) -> None:
        end(process)
        self._own = None
        self._settle(folder, msgspec.structs.replace(job, ended=why), None)

    def _settle(self, folder: Path, job: Job, code: int | None) -> None:
        """Say how a replay ended, and keep of it what can be gone on with."""
        name = folder.name
        if not folder.is_dir():
            self.told = f"The replay {name} has ended, and its folder is gone: it was removed while it ran."
        elif (folder / UNFINISHED).is_file():
            killed = "" if code is None or code >= 0 else f"Its process was ended by {Signals(-code).name}."
            job = msgspec.structs.replace(job, ended=job.ended or killed)
            _tolerant(write_job, folder, job)
            so_far = f"{self.answered(folder):,} of {job.queries:,} queries are answered and kept"
            self.told = f"The replay {name} was cut off; {so_far}. {self.why(folder)}"
        elif (folder / RESULT).is_file():
            self.told = f"The replay {name} is done." + (f" {words}" if (words := last_words(folder)) else "")
            remove_job(folder)
        else:
            why = last_words(folder) or job.ended or "Its process ended."
            self.told = f"The replay {name} ended before its first query was sent. {why}"
            remove_job(folder)


def _tolerant(write: Callable[[Path, Job], None], folder: Path, job: Job) -> None:
    """A full disk, or a folder that vanished, leaves the file as it was."""
    try:
        write(folder, job)
    except OSError:
        return
