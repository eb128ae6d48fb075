"""A worker: writes splits of a corpus, and buckets of late lines, each of which leaves a part of the state."""

import logging
import os
import platform
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from opensearchpy.exceptions import OpenSearchException

from langshift.client import open_cluster
from langshift.corpus_file import ChangedError, FileState, Start, state_of
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import LangshiftError
from langshift.files import LineNumbers
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import PipelineOptions
from langshift.ingest.documents import Embeddings, InvalidRow, SourceRow
from langshift.ingest.open_corpus import open_rows
from langshift.ingest.parsing import Parser
from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import OPTIONS, StateJournal
from langshift.ingest.parts.run import LINES, PartedRun, Run
from langshift.ingest.resume import DOCUMENTS, LoadOptions, LoadSession, OwnershipLost
from langshift.ingest.sources import NumberedFiles, Split
from langshift.plugin import metadata
from langshift.plugin.versions import Target
from langshift.server_errors import failure
from langshift.settings import VERSION

_log = logging.getLogger(__name__)

# How many lines are tried at once, by how many workers had died of them before; then each one alone. A worker may die
# by chance even then: such a line is tried once more, after all others.
_TRIED = (LINES, 200)
_ALONE = 2


class CorpusPart(NamedTuple):
    """A file of the corpus.

    Attributes:
        shown: how messages name it.
        path: its path, wherever one is, or its address.
        total: how many lines it has.
        state: what every change of it changes.
    """

    shown: str
    path: str
    total: int
    state: FileState | None


class Job(NamedTuple):
    """A load, as each of its workers is told of it.

    Attributes:
        version: langshift's, which must be the same everywhere.
        environment: the variables that say where the cluster and the store are, and by what keys they are reached.
        files: the corpus.
        embeddings: what becomes of vectors that come with documents.
        dimension: the one that all of those must have; None where nobody knows.
        weighted: whether documents bring the weights of tokens that the index keeps.
        making: the options of the pipeline, as ``PipelineOptions.keep`` writes them.
        fingerprint: what the documents' vectors must be.
        target: the version that is written to.
        base: the version that line 0 would have.
        state: the folder of the load's state.
        owner: names the process whose load it is.
        options: how the load is done.
    """

    version: str
    environment: Mapping[str, str]
    files: Sequence[CorpusPart]
    embeddings: Embeddings
    dimension: int | None
    weighted: bool
    making: bytes
    fingerprint: Mapping[str, Any]
    target: Target
    base: int
    state: str
    owner: str | None
    options: LoadOptions


class Done(NamedTuple):
    """What became of a task.

    Attributes:
        lines: how many lines came to an end.
        dead: how many of them in the dead letters.
        retries: how many requests were sent again.
        seconds: time spent in each stage.
        error: what broke it off; None where nothing did.
    """

    lines: int = 0
    dead: int = 0
    retries: int = 0
    seconds: Mapping[str, float] = {}
    error: Exception | None = None


class SplitFiles(NumberedFiles):
    """A corpus of which others have seen that it holds documents, read split by split.

    Args:
        job: the load.
    """

    resumable = True
    content = vector_spec = None

    def __init__(self, job: Job) -> None:
        parser = Parser(job.embeddings, job.dimension, job.options.fields, job.weighted)
        super().__init__(parser, [file.shown for file in job.files])
        self._number(file.total for file in job.files)
        self.files, self._patience = job.files, job.options.patience

    def read(self, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines in their order; see ``DocumentSource.read``."""
        for number, (file, before) in enumerate(zip(self.files, self._before, strict=True)):
            yield from self.read_split(Split(number, Start(1, 0), before + 1, before + file.total), skip)

    def read_split(self, split: Split, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines of a split in their order.

        Args:
            split: the split.
            skip: numbers of lines that are passed over.

        Raises:
            ChangedError: the file is not what it was when the load was opened.
            UsageError: it is not there.
            UnreachableError: its store does not answer.
        """
        file, before = self.files[split.file], self._before[split.file]
        with ExitStack() as stack:
            stream, rows = open_rows(file.path, self._patience, self.parser, stack)

            def require_unchanged() -> None:
                if state_of(stream) != file.state:
                    raise ChangedError.of(file.shown)

            require_unchanged()
            with closing(rows.part(split.start, split.last - before, skip, before)) as part:
                yield from part
            require_unchanged()


class Task(NamedTuple):
    """Lines to be written.

    Attributes:
        split: a split of the corpus; None for the late lines of a bucket.
        bucket: the bucket.
        last: whether lines are tried, too, at which a worker has died that tried nothing else.
    """

    split: Split | None
    bucket: int = 0
    last: bool = False


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
            self._write_split(task.split, last=task.last)
        else:
            self._journal.require_own()
            self.write_late(task.bucket, self._target)
            self._forget_buckets()
        spent = {stage: now - seconds[stage] for stage, now in self._summary.seconds.items()}
        return Done(self._handled, self._dead, self._rows.retries - before, spent)

    def _write_split(self, split: Split, *, last: bool) -> None:
        """Write the lines of a split that no part has; each attempt is noted before its first line is read."""
        attempts, handled = self._journal.attempts(), self._journal.handled()
        with closing(self._source.read_split(split, handled)) as rows:
            line, begin = split.first, None
            while line := next((one for one in range(line, split.last + 1) if one not in handled), 0):
                self._journal.require_own()
                deaths = self._deaths(attempts, line)
                with self._journal.attempt(line, min(line + _most(deaths) - 1, split.last)):
                    if (begin := begin or next(rows, None)) is None:
                        return
                    if begin.line > line:
                        # Blank lines are before it.
                        line = begin.line
                        continue
                    if last or 1 not in deaths:
                        run = Run(_unless_deadly(begin, deaths), rows, _most(deaths))
                        self.write_run(run)
                        line = run.last
                line, begin = line + 1, None

    def _late_runs(self, bucket: int) -> Iterator[Iterator[SourceRow]]:
        attempts, late = self._journal.attempts(bucket), self._journal.late(bucket)
        for line, original in late:
            self._journal.require_own()
            deaths = self._deaths(attempts, line, bucket)
            lines = [(line, original), *islice(late, _most(deaths) - 1)]
            with self._journal.attempt(line, lines[-1][0], bucket):
                yield (_unless_deadly(self._source.parsed(*one), deaths) for one in lines)

    def _deaths(self, attempts: Sequence[tuple[int, int]], line: int, bucket: int | None = None) -> list[int]:
        """For each worker that died at a line, how many lines it tried."""
        deaths = [last - first + 1 for first, last in attempts if first <= line <= last]
        if deaths.count(1) > _ALONE:
            # Whoever goes on with the load has given them more of what they lacked.
            self._journal.forget_attempts(line, bucket)
            file, number = self._source.place(line)
            raise LangshiftError(
                f"Line {number} of {file} has ended {len(deaths)} workers, the last one as it was read: give workers "
                "more memory, or load the corpus without that line."
            )
        return deaths


def _most(deaths: Sequence[int]) -> int:
    return _TRIED[len(deaths)] if len(deaths) < len(_TRIED) else 1


def _unless_deadly(row: SourceRow, deaths: Sequence[int]) -> SourceRow:
    """The line; as one that cannot be used where workers have died of it alone."""
    if deaths.count(1) < _ALONE:
        return row
    why = f"has ended {len(deaths)} workers, two of which did nothing else."
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
