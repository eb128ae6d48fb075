"""Ray Data: places tasks on workers, and does those anew whose worker died."""

import io
import logging
import os
import pickle
import re
import socket
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from langshift.client import address
from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.ingest.parts.run import LINES, PartedRun
from langshift.ingest.progress import LoadObserver
from langshift.ingest.resume import LoadSession
from langshift.ingest.sources import Files
from langshift.ingest.workers.worker import CorpusPart, Done, Job, Task, Worker
from langshift.plugin.versions import Target
from langshift.remote_store import is_remote
from langshift.settings import VERSION

_log = logging.getLogger(__name__)

_HOST_AND_PORT = re.compile(r"(?:ray://)?(.+):(\d+)")
_SECONDS = 10.0
_STORE = 100 << 20  # bytes
# For which workers of a cluster may go on whose load is gone.
_DYING = 3.0


class Workers(NamedTuple):
    """How many workers there are to be, and where.

    Attributes:
        address: of a Ray cluster; None starts one on this machine, for this load alone.
        size: how many; None for as many as the cluster has processors, or GPUs for.
        gpus: how many each has, or what share of one.
        requests: how many bulk requests all of them may have under way at once.
    """

    address: str | None
    size: int | None
    gpus: float
    requests: int


class RayEngine(AbstractContextManager["RayEngine"]):
    """A connection to Ray, as a context manager.

    Attributes:
        count: how many workers there are at most.
        requests: how many bulk requests all of them may have under way at once.
    """

    def __init__(self, workers: Workers, places: Sequence[str]) -> None:
        """Connect.

        Args:
            workers: how many, and where.
            places: paths and addresses that all of them must reach.

        Raises:
            UsageError: there is no such cluster, or not all of its machines reach a place.
            LangshiftError: the extra is not installed, or the cluster cannot be used.
        """
        require_extra("--runner ray needs", "ray", "ray", "pandas")
        # Nothing of a load is anybody else's business.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray: Any = ray
        self._workers, self.requests = workers, workers.requests
        with ExitStack() as stack:
            # What it says of machines that are gone would get between the results, and between sentences.
            stack.enter_context(redirect_stdout(_Log()))
            stack.enter_context(_own_stderr())
            stack.callback(ray.shutdown)
            self._connect()
            self._require_reachable(places)
            self.count = self._count()
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connect(self) -> None:
        address = self._workers.address
        options: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
        if address is None:
            # Of its own it takes a third of the memory; no document of a load gets there.
            options |= {"include_dashboard": False, "object_store_memory": _STORE}
        try:
            if address is not None and (found := _HOST_AND_PORT.fullmatch(address)):
                # Ray itself tries for minutes.
                socket.create_connection((found[1], int(found[2])), _SECONDS).close()
            self._ray.init(address, **options)
        except OSError as error:
            raise UsageError(
                f"--address {address}: no Ray cluster answers there: start one (`ray start --head`), or leave "
                "--address out to use this machine alone."
            ) from error
        except (RuntimeError, ValueError) as error:
            first = str(error).strip().splitlines()[0].rstrip(".")
            raise LangshiftError(f"Ray cannot be used: {first}.") from error

    def _require_reachable(self, places: Sequence[str]) -> None:
        own = self._ray.util.get_node_ip_address()
        local = next((place for place in places if not is_remote(place)), None)
        if local and any(node["Alive"] and node["NodeManagerAddress"] != own for node in self._ray.nodes()):
            raise UsageError(
                f"{local} is on this machine, and the Ray cluster has others: give an address in a store (s3://, gs://)."
            )

    def _count(self) -> int:
        has, given = self._ray.cluster_resources(), self._workers
        if has.get("GPU", 0) < given.gpus:
            raise UsageError(
                f"--gpus-per-worker {given.gpus:g}: the Ray cluster has {has.get('GPU', 0):g} GPUs: leave it out, or "
                "add machines that have some."
            )
        fit = has.get("GPU", 0) / given.gpus if given.gpus else has.get("CPU", 0)
        return given.size or max(1, int(fit))

    def _processors(self) -> int:
        """How many each worker can have where all of them find room on the machines; 1 where they do not."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        most = int(max((has.get("CPU", 0) for has in machines), default=1))

        def room(has: Mapping[str, float], each: int) -> int:
            by_gpus = int(has.get("GPU", 0) / self._workers.gpus) if self._workers.gpus else self.count
            return min(int(has.get("CPU", 0) / each), by_gpus)

        fitting = (each for each in range(most, 0, -1) if sum(room(has, each) for has in machines) >= self.count)
        return next(fitting, 1)

    def run(self, job: Job, tasks: Sequence[Task]) -> Generator[Done]:
        """Have tasks done, in any order; after an error, no worker does anything any more.

        Raises:
            LangshiftError: one broke off, or the workers cannot run.
        """
        if not self._ray.is_initialized():
            self._connect()
        try:
            yield from self._run(job, tasks)
        except BaseException:
            self._ray.shutdown()
            if self._workers.address is not None:
                time.sleep(_DYING)
            raise

    def _run(self, job: Job, tasks: Sequence[Task]) -> Iterator[Done]:
        from ray.data import ActorPoolStrategy, DataContext, from_items
        from ray.exceptions import RayError

        context = DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        count = min(self.count, len(tasks))
        items = [{"task": pickle.dumps(task)} for task in tasks]
        done = from_items(items, override_num_blocks=len(items)).map_batches(
            _Actor,
            fn_constructor_args=(pickle.dumps(job),),
            batch_size=1,
            compute=ActorPoolStrategy(min_size=1, max_size=count, initial_size=count, max_tasks_in_flight_per_actor=1),
            num_cpus=self._processors(),
            num_gpus=self._workers.gpus or None,
        )
        try:
            for row in done.iter_rows():
                answer: Done = pickle.loads(row["done"])  # noqa: S301 - our own workers have written it
                if answer.error is not None:
                    raise answer.error
                yield answer
        except RayError as error:
            last = str(error).strip().splitlines()[-1].rstrip(".")
            raise LangshiftError(
                f"The workers cannot run ({last}): install the same langshift and Python on every machine."
            ) from error


class _Log(io.TextIOBase):
    """Takes what is printed to the log."""

    def write(self, text: str, /) -> int:
        """Take a text."""
        if said := text.strip():
            _log.info("%s", said)
        return len(text)


@contextmanager
def _own_stderr() -> Iterator[None]:
    """Keep standard error for Python: Ray's C++ writes there what it bears by itself, and has logs of its own."""
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):
        # Nothing that C++ knows of.
        yield
        return
    usual = os.dup(descriptor)
    with (
        open(usual, "w", 1, sys.stderr.encoding, sys.stderr.errors) as stream,  # noqa: PTH123 - a descriptor
        Path(os.devnull).open("wb") as nowhere,
        redirect_stderr(stream),
    ):
        os.dup2(nowhere.fileno(), descriptor)
        try:
            yield
        finally:
            os.dup2(usual, descriptor)


class _Actor:
    """A worker as Ray Data has it: takes batches of one row each."""

    def __init__(self, job: bytes) -> None:
        self._worker = Worker(pickle.loads(job))  # noqa: S301 - the load itself has written it

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        tasks = (pickle.loads(task) for task in batch["task"])  # noqa: S301 - likewise
        return {"done": [pickle.dumps(self._worker(task)) for task in tasks]}


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
