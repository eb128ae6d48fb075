"""Replays that the console starts: one at a time, each a process of its own whose progress is on disk."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import NamedTuple

import msgspec
import psutil
from starlette.exceptions import HTTPException

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import FACTS, HOLDS, QUERIES, Dataset, read_judged
from langshift.evaluate.replay.journal import RESULT, UNFINISHED
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.runs import PER_QUERY, parse_names
from langshift.files import PRIVATE, ensure_folder, numbered_raw_lines, private_file, write_bytes
from langshift.retrieval.settings import SearchSettings, format_settings, read_setting
from langshift.web.context import LruCache


class _Line(msgspec.Struct):
    query: str
    reached: bool = True


class AnsweredQueries:
    """The queries that a journal has answers of; each call reads on from where the last one ended.

    A query that found no cluster is sent again by ``--resume``, so its first line does not count.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._read = path, (0, 0), 0
        self._queries: set[str] = set()

    def count(self) -> int:
        """How many there are now; 0 without a journal."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read:
                    self._file, self._read, self._queries = (status.st_dev, status.st_ino), 0, set()
                file.seek(self._read)
                new = file.read()
        except OSError:
            return 0
        # The last line may be half written.
        lines = new[: new.rfind(b"\n") + 1]
        self._read += len(lines)
        for line in lines.splitlines():
            try:
                row = msgspec.json.decode(line, type=_Line)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if row.reached:
                self._queries.add(row.query)
        return len(self._queries)


JOB, LOG = "console.json", "replay.log"
#: How long a replay that is to end may take before it is killed.
SIGINT_SECONDS = 5.0
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
            UsageError: the setting cannot be read, or how the dataset was judged; or a reranker is asked for.
        """
        if read_setting(self.setting).rerank is not None:
            # No page asks for one: the file came from elsewhere, and may name a server that is to be told the queries.
            raise UsageError(f"{folder / JOB} names a reranker, which no page does: start a new replay.")
        # The page shows LPR, too, which a replay measures only where it is asked to.
        measures = parse_names(None, Dataset(dataset, {}, (), {}, read_judged(dataset / FACTS)))
        words = ["evaluate", "replay", str(dataset), "--index", self.index, "--mode", *shlex.split(self.setting)]
        words += ["--measures", " ".join(measures), "--output", str(folder), "--json", *["--resume"] * resume]
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
    write_bytes(folder / JOB, msgspec.json.encode(job), private=True)


def remove_job(folder: Path) -> None:
    """Take away what the console itself put into a folder, and the folder where nothing else is in it."""
    with suppress(OSError):
        for name in (JOB, LOG):
            (folder / name).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def last_error(folder: Path) -> str:
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
        if sys.platform == "win32":
            process.kill()
            process.wait(SIGINT_SECONDS)
            return
        try:
            # It leads a group of its own, so that whatever it started ends with it.
            os.killpg(process.pid, signal.SIGINT)
            process.wait(SIGINT_SECONDS)
        except psutil.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SIGINT_SECONDS)


REPORT = "report.html"
#: No name that a page links has one of these.
FORBIDDEN = "\\\0"
#: No report is larger: it would be read into memory.
MOST_BYTES = 64 * 2**20


def path_inside(root: Path, name: str) -> Path:
    """The folder or file of a name below the results folder, links followed.

    Args:
        root: the results folder.
        name: parts joined by ``/``, as ``results`` gives them; anything else is refused.

    Raises:
        HTTPException: 403 where it leads elsewhere, 404 where there is nothing.
    """
    parts = PurePosixPath(name).parts
    strange = not parts or "/".join(parts) != name or ".." in parts or any(mark in name for mark in FORBIDDEN)
    if strange or name.startswith("/"):
        raise HTTPException(403, f"{name!r} is not the name of a run: choose one from the table.")
    try:
        whole, place = root.resolve(), root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise HTTPException(404, f"There is no {name!r} in the results folder: it may have been removed.") from None
    if not place.is_relative_to(whole):
        raise HTTPException(403, f"{name!r} leads outside the results folder, so it is not shown.")
    return place


def stored_report(root: Path, name: str) -> bytes:
    """The content of a ``report.html`` in the results folder; no other file is ever given.

    Raises:
        HTTPException: 403 for any other file, 404 where there is none.
    """
    place = path_inside(root, name)
    if place.name != REPORT or PurePosixPath(name).name != REPORT:
        raise HTTPException(403, f"{name!r} is not a report: only files named {REPORT} are shown.")
    if not place.is_file():
        raise HTTPException(404, f"{name!r} is not a file.")
    try:
        if place.stat().st_size > MOST_BYTES:
            raise HTTPException(403, f"{name!r} is larger than any report that langshift writes: open it from disk.")
        return place.read_bytes()
    except OSError as error:
        raise HTTPException(404, f"{name!r} cannot be read: {error.strerror}.") from None


class RunningReplay(NamedTuple):
    """A replay under way.

    Attributes:
        name: its folder in the results folder.
        job: what was asked for.
        answered: how many queries are answered.
        begun: whether queries are being sent; before that they are encoded.
    """

    name: str
    job: Job
    answered: int
    begun: bool

    @property
    def text(self) -> str:
        """How far it is."""
        so_far = f"{self.answered:,} of {self.job.queries:,} queries"
        if not self.begun:
            first = "Encoding queries" if read_setting(self.job.setting).needs_vector else "Preparing"
            return f"{first}: {so_far} were already answered" if self.answered else first
        return f"{so_far}; computing the figures" if self.answered >= self.job.queries else so_far


def begun(folder: Path, job: Job) -> bool:
    """Whether the journal was written to since the process was started."""
    try:
        return (folder / PER_QUERY).stat().st_mtime >= job.began
    except OSError:
        return False


def new_folder(results: Path, index: str) -> Path:
    """Make a folder for a replay that begins now.

    Raises:
        UsageError: the results folder cannot be used.
        LangshiftError: it cannot be written to.
    """
    check_output(results, "--results")
    stamp = f"{index}-{time.strftime('%Y%m%d-%H%M%S')}"
    for name in (stamp, *(f"{stamp}-{number}" for number in range(2, 100))):
        folder = results.absolute() / name
        try:
            ensure_folder(folder.parent)
            folder.mkdir(mode=PRIVATE)
        except FileExistsError:
            continue
        except OSError as error:
            raise LangshiftError(f"{folder} cannot be created: {error.strerror}.") from None
        return folder
    raise UsageError(f"Too many replays of {index} started in this second: try again.")


def launch(folder: Path, job: Job, dataset: Path, *, resume: bool) -> tuple[Job, psutil.Popen]:
    """Start the process of a job, and write down which one it is.

    Args:
        folder: where the replay writes.
        job: what to replay.
        dataset: the folder of its dataset.
        resume: whether to go on with what is there.

    Raises:
        UsageError: the job's setting cannot be read, or how the dataset was judged.
        LangshiftError: it cannot be started, or nothing can be written there.
    """
    process = None
    try:
        command = job.command(dataset, folder, resume=resume)
        # Left behind by an earlier try, its sentence would be taken for this one's.
        with private_file(folder / LOG) as log:
            process = psutil.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
            )
        me = Process.of(psutil.Process())
        job = msgspec.structs.replace(job, process=Process.of(process), console=me)
        write_job(folder, job)
    except (OSError, psutil.Error, UsageError) as error:
        if process is not None:
            end(process)
        if not resume:
            remove_job(folder)
        if isinstance(error, UsageError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LangshiftError(f"The replay cannot be started in {folder}: {reason}.") from None
    return job, process


def count(dataset: Path) -> int:
    """How many queries a dataset has.

    Raises:
        UsageError: there is none.
    """
    try:
        return sum(1 for _ in numbered_raw_lines(dataset / QUERIES))
    except OSError as error:
        raise UsageError(f"{dataset / QUERIES} cannot be read ({error.strerror}): {HOLDS}.") from None


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
        self.results, self.datasets, self.last_message = results, datasets, ""
        self._lock = RLock()
        self._own: tuple[Path, Job, psutil.Popen] | None = None
        self._journals = LruCache[AnsweredQueries](_MOST_JOURNALS)

    def start(self, dataset: str, index: str, setting: SearchSettings) -> str:
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
            job = Job(dataset, index, format_settings(setting), count(place), time.time())
            folder = new_folder(self.results, index)
            self._own, self.last_message = (folder, *launch(folder, job, place, resume=False)), ""
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
                raise UsageError(f"{name!r} is not an interrupted replay of this console: start a new one.")
            place = self._dataset(job.dataset)
            now = msgspec.structs.replace(job, queries=count(place), began=time.time(), process=None, ended="")
            self._own, self.last_message = (folder, *launch(folder, now, place, resume=True)), ""

    def cancel(self, name: str) -> None:
        """End the replay that is running; what was answered is kept.

        Raises:
            UsageError: it is not running.
        """
        with self._lock:
            found = self._living()
            if found is None or found[0].name != name:
                raise UsageError(f"The replay {name!r} is no longer running: there is nothing to cancel.")
            self._end(*found, "It was cancelled.")

    def running(self) -> RunningReplay | None:
        """The replay that is running, whichever console of this folder started it; None where none is."""
        with self._lock:
            found = self._living()
            if found is None:
                return None
            folder, job, _ = found
            return RunningReplay(folder.name, job, self.answered(folder), begun(folder, job))

    def answered(self, folder: Path) -> int:
        """How many queries of a replay are answered, by its journal."""
        with self._lock:
            return self._journals.of(folder, lambda: AnsweredQueries(folder / PER_QUERY)).count()

    def why(self, folder: Path) -> str:
        """Why a replay that is not running was cut off, in a sentence."""
        job = read_job(folder)
        if job is None:
            return "It was started by a command: unless that is still running, continue it with --resume."
        return last_error(folder) or job.ended or "Its process ended before it was done."

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
            raise UsageError(f"There is no dataset {name!r}: choose one of {', '.join(self.datasets)}.")
        return self.datasets[name].absolute()

    def _folder(self, name: str) -> Path | None:
        """A folder that is right in the results folder; the console puts its replays nowhere else."""
        folder = self.results.absolute() / name
        strange = name in ("", ".", "..") or any(mark in name for mark in FORBIDDEN)
        if strange or folder.parent != self.results.absolute():
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
            self.last_message = f"The replay {name} has ended, but its folder was removed while it ran."
        elif (folder / UNFINISHED).is_file():
            killed = "" if code is None or code >= 0 else f"Its process was ended by {signal.Signals(-code).name}."
            job = msgspec.structs.replace(job, ended=job.ended or killed)
            # A full disk, or a folder that vanished, leaves the file as it was.
            with suppress(OSError):
                write_job(folder, job)
            so_far = f"{self.answered(folder):,} of {job.queries:,} queries are answered and saved"
            self.last_message = f"The replay {name} was interrupted; {so_far}. {self.why(folder)}"
        elif (folder / RESULT).is_file():
            self.last_message = f"The replay {name} is done." + (f" {words}" if (words := last_error(folder)) else "")
            remove_job(folder)
        else:
            why = last_error(folder) or job.ended or "Its process ended."
            self.last_message = f"The replay {name} ended before its first query was sent. {why}"
            remove_job(folder)
