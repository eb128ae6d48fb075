"""Starting the process of a replay."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import msgspec
import psutil

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import HOLDS, QUERIES
from langshift.evaluate.replay.result import check_output
from langshift.reading import raw_lines
from langshift.web.evaluations.job import LOG, Job, Process, end, remove_job, write_job


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
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise LangshiftError(f"{folder} cannot be made: {error.strerror}.") from None
        return folder
    raise UsageError(f"Too many replays of {index} begin in this second: try again.")


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
        with (folder / LOG).open("wb") as log:
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
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise LangshiftError(f"The replay cannot be started in {folder}: {told}.") from None
    return job, process


def count(dataset: Path) -> int:
    """How many queries a dataset has.

    Raises:
        UsageError: there is none.
    """
    try:
        return sum(1 for _ in raw_lines(dataset / QUERIES))
    except OSError as error:
        raise UsageError(f"{dataset / QUERIES} cannot be read ({error.strerror}): {HOLDS}.") from None
