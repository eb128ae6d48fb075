"""What a person sees while a load runs: one line that says how far it is."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import TracebackType

from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from langshift import console

_SPEED_OVER_SECONDS = 10.0
# Wider than any terminal.
_AMPLE = 1000


class LoadProgress:
    """A line on standard error while a load runs, as a context manager; silent where that is not a terminal.

    It shows the lines handled, of how many, documents a second over the last seconds, the time left, retries, dead
    letters and how many requests are under way at once. What a narrow terminal has no room for is left out, the
    least important first. ``console.note`` may be called meanwhile: it writes above the line.

    Args:
        total: lines of the input; None where nobody knows.
        handled: lines that an earlier run handled; they count as done, not as speed.
        documents: documents that an earlier run wrote, where ``update`` counts them too.
    """

    def __init__(self, total: int | None, handled: int = 0, documents: int = 0) -> None:
        terminal = console.err.is_terminal
        self._lock = threading.Lock()
        self._handled, self._documents = handled, documents
        self._shown = _OneLine(
            console=console.err,
            transient=True,
            disable=not terminal,
            refresh_per_second=4,
            speed_estimate_period=_SPEED_OVER_SECONDS,
        )
        # Lines tell how long it will take, documents how fast it goes: of each rich keeps account.
        self._writing = self._shown.add_task("documents", total=None, completed=documents, visible=False)
        self._handling = self._shown.add_task(
            "load",
            total=total,
            completed=handled,
            writing=self._shown.tasks[0],
            retries=0,
            dead=0,
            at_once=0,
        )

    def __enter__(self) -> LoadProgress:
        self._shown.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.stop()

    def update(self, handled: int, documents: int, retries: int, dead: int, at_once: int) -> None:
        """Tell how far the load is; to be called after each answer, from any thread.

        Args:
            handled: lines handled so far.
            documents: documents written so far.
            retries: requests that were sent again.
            dead: dead letters.
            at_once: requests that may be under way at once.
        """
        if self._shown.disable:
            return
        with self._lock:
            # Of two threads the one that counted first may come last: going back would count the way twice.
            self._handled, self._documents = max(self._handled, handled), max(self._documents, documents)
            self._shown.update(self._writing, completed=self._documents)
            self._shown.update(self._handling, completed=self._handled, retries=retries, dead=dead, at_once=at_once)


class _OneLine(Progress):
    """A progress display of one visible task that leaves columns out rather than take a second line."""

    @cached_property
    def _every(self) -> dict[str, ProgressColumn]:
        # One set for each display, as columns remember what they have shown.
        return _columns()

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """The line, with as many columns as there is room for."""
        tasks = list(tasks)
        for task in tasks:
            # rich forgets what is older than the period only when told something: what stands still has no speed.
            self.update(task.id)
            if task.visible:
                self.columns = _fitting(self._every, task)
        return super().make_tasks_table(tasks)


def _fitting(every: Mapping[str, ProgressColumn], task: Task) -> tuple[ProgressColumn, ...]:
    without = () if task.total is not None else ("bar", "time left")
    widths = {name: _width(column, task) for name, column in every.items() if name not in without}
    for name in _LEAST_IMPORTANT_FIRST:
        if sum(widths.values()) + len(widths) - 1 <= console.err.width:
            break
        widths.pop(name, None)
    return tuple(every[name] for name in widths)


def _width(column: ProgressColumn, task: Task) -> int:
    least, most = Measurement.get(console.err, console.err.options.update_width(_AMPLE), column(task))
    return least if isinstance(column, BarColumn) else most


class _Count(ProgressColumn):
    """Lines handled, of how many where that is known."""

    def render(self, task: Task) -> Text:
        """Such as ``1,200/20,000``, or ``1,200 lines``."""
        handled = int(task.completed)
        told = console.counted(handled, "line") if task.total is None else f"{handled:,}/{int(task.total):,}"
        return Text(told, style="progress.download")


class _Speed(ProgressColumn):
    """Documents a second."""

    def render(self, task: Task) -> Text:
        """Such as ``1,200/s``; ``-/s`` where nothing moves."""
        speed = task.fields["writing"].speed
        return Text("-/s" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


_LEAST_IMPORTANT_FIRST = ("at once", "retries", "spinner", "dead", "speed", "time left", "bar")


def _columns() -> dict[str, ProgressColumn]:
    def unbroken() -> Column:
        return Column(no_wrap=True)

    return {
        "spinner": SpinnerColumn(table_column=unbroken()),
        "bar": BarColumn(bar_width=None),
        "count": _Count(unbroken()),
        "speed": _Speed(unbroken()),
        "time left": TimeRemainingColumn(table_column=unbroken()),
        "retries": TextColumn("retries {task.fields[retries]:,}", table_column=unbroken()),
        "dead": TextColumn("dead letters {task.fields[dead]:,}", table_column=unbroken()),
        "at once": TextColumn("at once {task.fields[at_once]}", table_column=unbroken()),
    }
