"""A worker: writes splits of a corpus, and buckets of late lines, each of which leaves a part of the state."""

from __future__ import annotations

import logging
import os
import platform
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from opensearchpy.exceptions import OpenSearchException

from langshift.client import open_cluster
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import LangshiftError
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import PipelineOptions
from langshift.ingest.documents import InvalidRow, SourceRow
from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import OPTIONS, StateJournal
from langshift.ingest.parts.run import LINES, PartedRun, Run
from langshift.ingest.resume import DOCUMENTS, LoadSession, OwnershipLost
from langshift.ingest.sources import Split
from langshift.ingest.workers.job import Done, Job, SplitFiles
from langshift.plugin import metadata
from langshift.plugin.versions import Target
from langshift.server_errors import failure
from langshift.settings import VERSION

_log = logging.getLogger(__name__)

# How many lines are tried at once, by how many workers had died of them before: then each one alone, so that none but
# the one that is to blame is given up.
_TRIED = (LINES, 1000, 30)


class Task(NamedTuple):
    """Lines to be written.

    Attributes:
        split: a split of the corpus; None for the late lines of a bucket.
        bucket: the bucket.
    """

    split: Split | None
    bucket: int = 0


class WorkerRun(PartedRun):
    """What one worker does of a load's run."""

    _source: SplitFiles

    def __init__(self, opened: LoadSession, target: Target, scratch: Path) -> None:
        """Take the load as the worker has opened it, its version, and a folder for this process alone."""
        super().__init__(opened, None, scratch)
        self._target = target
        self._begin_writing(target)

    def do(self, task: Task) -> Done:
        """Do a task; what came to an end before an error has a part, and is not counted.

        Raises:
            LangshiftError: it cannot be done.
        """
        self._handled, self._dead = 0, 0
        before, seconds = self._rows.retries, dict(self._summary.seconds)
        # What others have done since, or a worker that died of this task.
        self._journal.look_again()
        if task.split is not None:
            self._write_split(task.split)
        else:
            self._journal.require_own()
            self.write_late(task.bucket, self._target)
            self._forget_buckets()
        spent = {stage: now - seconds[stage] for stage, now in self._summary.seconds.items()}
        return Done(self._handled, self._dead, self._rows.retries - before, spent)

    def _write_split(self, split: Split) -> None:
        """Write the lines of a split that no part has.

        Lines at which a worker has died are tried in ever smaller runs, in the end each alone; one at which a worker
        dies even so goes to the dead letters.
        """
        attempts = self._journal.attempts()
        with closing(self._source.read_split(split, self._journal.handled())) as rows:
            for begin in rows:
                self._journal.require_own()
                lengths = [last - first + 1 for first, last in attempts if first <= begin.line <= last]
                if len(lengths) > len(_TRIED) and 1 in lengths:
                    self.write_run(Run(_give_up(begin, len(lengths)), rows, 1))
                    continue
                most = _TRIED[len(lengths)] if len(lengths) < len(_TRIED) else 1
                with self._journal.attempt(begin.line, begin.line + most - 1):
                    self.write_run(Run(begin, rows, most))


def _give_up(row: SourceRow, deaths: int) -> SourceRow:
    why = f"has ended {deaths} workers, one of which did nothing else."
    return row._replace(content=InvalidRow("worker_died", why, getattr(row.content, "id", None)))


class Worker:
    """Does tasks of a load, one after the other; the cluster, the state and the encoder are opened for the first."""

    def __init__(self, job: Job) -> None:
        """Take the load."""
        self._job = job
        self._stack = ExitStack()
        self._run: WorkerRun | None = None

    def __call__(self, task: Task) -> Done:
        """Do a task; what goes wrong is said in the answer."""
        try:
            self._run = self._run or self._opened()
            return self._run.do(task)
        except OpenSearchException as error:
            return self._report(failure(error, self._job.environment["OPENSEARCH_URL"]))
        except LangshiftError as error:
            return self._report(error)
        except OSError as error:
            return self._report(LangshiftError(f"{error}."))
        except Exception as error:  # a mistake of ours, to be shown as any other
            _log.exception("a mistake")
            return Done(error=error)

    @staticmethod
    def _report(error: LangshiftError) -> Done:
        return Done(error=error.reworded(f"A worker on {platform.node()} stopped: {error.sentence}"))

    def _opened(self) -> WorkerRun:
        job = self._job
        if job.version != VERSION:
            raise LangshiftError(
                f"langshift {VERSION} is installed there, and {job.version} here: install the same on every machine."
            )
        os.environ.update(job.environment)
        client = open_cluster()
        scratch = Path(self._stack.enter_context(TemporaryDirectory()))
        folder = StateFolder(job.state, job.options.patience)
        journal = StateJournal(scratch / "load.sqlite", folder, 1)
        self._stack.callback(journal.close)
        if journal.owner != job.owner:
            raise OwnershipLost(f"Another process has taken over the load with the state {folder.shown}.")
        # Written where it is read: the options know a file alone.
        (scratch / OPTIONS).write_bytes(job.making)
        meta, made = metadata.read_metadata(client, job.target.index), Fingerprint.from_dict(job.fingerprint)
        pipeline = PipelineOptions.read(scratch / OPTIONS).open_for(made, meta).for_fields(job.options.fields)
        made.require_same(pipeline.fingerprint(), job.target.name, "install the same model on every machine")
        place = LoadWorkspace(scratch, job.target.name)
        opened = LoadSession(client, SplitFiles(job), pipeline, job.options, DOCUMENTS, place, journal)
        opened.base, opened.target, opened.goes_on = job.base, job.target, True
        return WorkerRun(opened, job.target, scratch)
