"""A load by several workers: this process gives them splits and buckets, checks the whole, and publishes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from langshift.client import address
from langshift.ingest.parts.run import LINES, PartedRun
from langshift.ingest.progress import LoadObserver
from langshift.ingest.resume import LoadSession
from langshift.ingest.sources import Files
from langshift.ingest.workers.engine import RayEngine
from langshift.ingest.workers.job import CorpusPart, Job
from langshift.ingest.workers.worker import Task
from langshift.plugin.versions import Target
from langshift.remote_store import is_remote
from langshift.settings import VERSION

# What a worker has to do is cut so small that none of them is left with much when the others are done.
_TASKS_OF_A_WORKER, _LEAST_LINES = 8, 1000
# What says where the cluster and the store are, and by what keys they are reached.
_NEEDED = ("OPENSEARCH_", "AWS_", "GOOGLE_", "LANGSHIFT_", "STORAGE_EMULATOR_HOST")
_OWN = "LANGSHIFT_HOME"


class WorkersRun(PartedRun):
    """One run of a load that workers do."""

    _source: Files

    def __init__(self, opened: LoadSession, watch: LoadObserver | None, scratch: Path, engine: RayEngine) -> None:
        """Take a load that is open, who looks on, a folder for this process, and what has tasks done."""
        super().__init__(opened, watch, scratch)
        self._engine = engine

    def _write_whole_documents(self) -> None:
        target = self._opened.target
        assert target is not None  # noqa: S101 - there is something to write
        lines = -(-(self._source.total or 0) // (self._engine.count * _TASKS_OF_A_WORKER))
        splits = self._source.splits(max(_LEAST_LINES, min(LINES, lines)))
        handled = self._journal.handled()
        self._do([Task(split) for split in splits if not handled.covers(split.first, split.last)], target)
        handled = self._journal.handled()
        put_off = [first for first, last in self._journal.attempts() if first == last and first not in handled]
        again = [split for split in splits if any(split.first <= line <= split.last for line in put_off)]
        self._do([Task(split, last=True) for split in again], target)

    def _write_buckets(self, buckets: Iterable[int], target: Target) -> None:
        self._do([Task(None, bucket) for bucket in buckets], target)

    def _do(self, tasks: Sequence[Task], target: Target) -> None:
        if not tasks:
            return
        try:
            with closing(self._engine.run(self._job(target), tasks)) as finished:
                for done in finished:
                    self._journal.require_own()
                    self._rows.add_retries(done.retries)
                    for stage, seconds in done.seconds.items():
                        self._stage(stage, 0, seconds)
                    self._report_progress(done.lines, done.dead)
        finally:
            # Whatever ends this, what workers have done is not discarded.
            self._journal.look_again()

    def _job(self, target: Target) -> Job:
        opened = self._opened
        environment = {name: value for name, value in os.environ.items() if name.startswith(_NEEDED) and name != _OWN}
        environment.setdefault("OPENSEARCH_URL", address(opened.client))
        requests = max(1, self._engine.requests // self._engine.count)
        return Job(
            VERSION,
            environment,
            [CorpusPart(file.shown, _anywhere(file.shown), file.total, file.state) for file in self._source.files],
            self._source.parser.embeddings,
            self._source.parser.dimension,
            self._source.parser.weighted,
            opened.place.pipeline_options.read_bytes(),
            self._summary.made.to_dict(),
            target,
            opened.base,
            _anywhere(self._journal.folder.shown),
            self._journal.owner,
            opened.options._replace(requests=requests),
        )


def _anywhere(path: str) -> str:
    """A path or an address, whatever folder a process works in."""
    return path if is_remote(path) else str(Path(path).absolute())
