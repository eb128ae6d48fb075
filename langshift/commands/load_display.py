"""What a person sees of a load: the line that says how far it is, and its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from opensearchpy import OpenSearch
from rich.progress import BarColumn, ProgressColumn, Task
from rich.table import Column, Table
from rich.text import Text

from langshift import output
from langshift.errors import LangshiftError
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.progress import LoadSummary, remarks, unfinished_versions
from langshift.ingest.publication import LoadNotPublished
from langshift.log_file import log_to
from langshift.output import emit_json, line, note, table
from langshift.progress_display import ProgressDisplay
from langshift.settings import VERSION
from langshift.wording import pluralize

_log = logging.getLogger(__name__)
_SPEED_OVER_SECONDS = 10.0
# Seconds.
_WORTH_SAYING = 60


class LoadDisplay:
    """A line on standard error while a load runs, as a context manager; off a terminal, one every ten seconds.

    It shows the lines handled, of how many, how many a second over the last seconds, the time left, dead letters,
    retries and how many requests are under way at once: a narrow terminal cuts off the end, which matters least.
    Notes may be written meanwhile, above the line.

    Args:
        total: lines of the input; None where nobody knows.
        handled: lines that an earlier run handled; they count as done, not as speed.
    """

    def __init__(self, total: int | None, handled: int = 0) -> None:
        self._lock = threading.Lock()
        self._handled = handled
        self._unencoded = None if total is None else total - handled
        self._shown = _OneLine(
            BarColumn(bar_width=None),
            _HowFar(Column(no_wrap=True, overflow="ellipsis")),
            console=output.err,
            unit="lines",
            refresh_per_second=4,
            speed_estimate_period=_SPEED_OVER_SECONDS,
            expand=True,
        )
        self._task = self._shown.add_task("", total=total, completed=handled, dead=0, retries=0, at_once=0)

    def __enter__(self) -> LoadDisplay:
        self._shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.stop()

    def update(self, handled: int, retries: int, dead: int, at_once: int) -> None:
        """Show how far the load is, as ``LoadProgress`` says."""
        with self._lock:
            # Of two threads the one that counted first may come last: going back would count the way twice.
            self._handled = max(self._handled, handled)
            counts: dict[str, Any] = {"dead": dead, "retries": retries, "at_once": at_once}
            self._shown.update(self._task, completed=self._handled, **counts)

    def add_encoded(self, documents: int, seconds: float) -> None:
        """Say once, by the first documents, about how long encoding takes, where that is a minute or more."""
        if not documents or self._unencoded is None:
            return
        left, self._unencoded = (self._unencoded - documents) * seconds / documents, None
        if left >= _WORTH_SAYING:
            rate = f"{documents / seconds:,.1f} documents a second, as the first {documents:,}"
            note(f"Encoding the corpus takes about {timedelta(seconds=round(left))} more, at {rate}.")


class _OneLine(ProgressDisplay):
    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """The line as it is now: what stands still has no speed, of which rich takes note only when told something."""
        for task in self.task_ids:
            self.update(task)
        return super().make_tasks_table(tasks)

    def describe(self, task: Task, speed: float) -> str:
        """As the line has it, with what went wrong where anything did."""
        counts = [(task.fields["dead"], "dead letter"), (task.fields["retries"], "request")]
        wrong = [pluralize(count, what) for count, what in counts if count]
        again = " sent again" if task.fields["retries"] else ""
        return ", ".join([super().describe(task, speed), *wrong]) + again


class _HowFar(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Such as ``1,200/20,000  990/s  0:00:19  dead letters 0  retries 2  concurrency 8``."""
        handled, left = int(task.completed), task.time_remaining
        parts = [pluralize(handled, "line") if task.total is None else f"{handled:,}/{int(task.total):,}"]
        parts.append("-/s" if task.speed is None else f"{task.speed:,.0f}/s")
        parts += [] if task.total is None else ["-:--:--" if left is None else str(timedelta(seconds=int(left)))]
        counts = task.fields
        parts += [f"dead letters {counts['dead']:,}", f"retries {counts['retries']:,}"]
        return Text("  ".join([*parts, f"concurrency {counts['at_once']}"]), style="progress.download")


class LoadReporter(AbstractContextManager["LoadReporter"]):
    """Shows how far the load is, and logs it; ``with`` ends both."""

    def __init__(self, corpus: str, pipeline_options: PipelineOptions) -> None:
        """Make one.

        Args:
            corpus: what is loaded, for the log.
            pipeline_options: how its documents are made; kept for dead letters that are sent again.
        """
        self._corpus, self._pipeline_options = corpus, pipeline_options
        self._stack = ExitStack()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if kind is not None:
            _log.error("%s", error if isinstance(error, LangshiftError) else kind.__name__)
        self._stack.close()

    def begin(self, place: LoadWorkspace, total: int | None, handled: int) -> LoadDisplay:
        """The load begins; what is given back is to be told how far it is."""
        self._stack.enter_context(log_to(place.log))
        _log.info("langshift %s: %s into %s", VERSION, self._corpus, place.name)
        self._pipeline_options.keep(place.pipeline_options)
        return self._stack.enter_context(LoadDisplay(total, handled))


def report_end(summary: LoadSummary, pipeline: EmbeddingPipeline, last: str, *, as_json: bool) -> int:
    """What is told of a load after its figures: what a person should know of it, and the last line.

    Args:
        summary: what it did.
        pipeline: how its documents were made.
        last: the last line.
        as_json: whether standard output holds JSON, and nothing else.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    for sentence in remarks(summary, pipeline):
        note(sentence)
    (note if as_json else line)(last)
    return 3 if summary.dead else 0


def open_reporter(client: OpenSearch, name: str, corpus: str, pipeline: PipelineOptions) -> LoadReporter:
    """What shows and logs a load, once the versions are named that others are making."""
    for sentence in unfinished_versions(client, name):
        note(sentence)
    return LoadReporter(corpus, pipeline)


@contextmanager
def json_where_unpublished(document: Callable[[LoadSummary], Mapping[str, Any]], *, as_json: bool) -> Iterator[None]:
    """Around a load: prints what it did also where what it has made does not go live, if JSON is wanted."""
    try:
        yield
    except LoadNotPublished as error:
        if as_json:
            emit_json(document(error.summary))
        raise


def show_languages(counts: list[tuple[str, int]], entries: str = "documents") -> None:
    """Print how many documents, or chunks, a load has written in each language."""
    table(None, ["language", entries], [[tag, f"{count:,}"] for tag, count in counts], right={entries})
