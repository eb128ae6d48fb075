"""Progress of long work: bars on a terminal; in a file or the log of a build, a line every ten seconds."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from rich import progress as bars
from rich.console import Console
from rich.text import Text

from langshift.wording import escaped

#: Seconds between two lines.
EVERY: Final = 10.0


class ProgressDisplay(bars.Progress):
    """Bars where the console is a terminal; elsewhere lines: how far the work is, how fast, and how long it takes.

    Args:
        columns: of the bars.
        console: where to show it.
        unit: what lines call what is counted, such as ``lines``; empty where the task's description says it.
        options: as for ``rich.progress.Progress``.
    """

    def __init__(self, *columns: bars.ProgressColumn, console: Console, unit: str = "", **options: Any) -> None:  # noqa: ANN401 - rich's
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal, **options)
        self._unit = f" {unit}" if unit else ""
        self._ended = threading.Event()
        self._speaker: threading.Thread | None = None
        # Task -> time and count of the last line that said a speed: what is done by the hundred is not done at once.
        self._before: dict[bars.TaskID, tuple[float, float]] = {}

    def start(self) -> None:
        """Show bars, or say the first line in ten seconds."""
        super().start()
        if self.disable and self._speaker is None:
            self._speaker = threading.Thread(target=self._speak, daemon=True)
            self._speaker.start()

    def stop(self) -> None:
        """Show nothing more."""
        self._ended.set()
        if self._speaker is not None:
            self._speaker.join()
        super().stop()

    def add_task(self, *given: Any, **options: Any) -> bars.TaskID:  # noqa: ANN401 - rich's
        """Add a task; its speed counts from now."""
        task = super().add_task(*given, **options)
        self._before[task] = self.get_time(), self._tasks[task].completed
        return task

    def _speak(self) -> None:
        while not self._ended.wait(EVERY):
            # Whoever reads along may be gone, which is no end of the work.
            with suppress(OSError, ValueError):
                for sentence in self.sentences():
                    self.console.print(Text(escaped(sentence)), soft_wrap=True)

    def sentences(self) -> Iterator[str]:
        """Yield what there is to say: of the first task that is not done."""
        task = next((task for task in self.tasks if task.visible and not task.finished), None)
        if task is None:
            return
        now = self.get_time()
        time, completed = self._before.get(task.id, (now, 0.0))
        # A task that began anew counts from nothing, and from then on.
        time = max(time, task.start_time or time)
        done = task.completed - (completed if completed <= task.completed else 0.0)
        self._before[task.id] = (now, task.completed) if done else (time, completed)
        yield self.describe(task, done / (now - time) if now > time else 0.0)

    def describe(self, task: bars.Task, speed: float) -> str:
        """Such as ``Encoding queries: 1,200 of 20,000, 990/s, about 0:00:19 left``.

        Args:
            task: the work.
            speed: so much of it was done in a second since the last line that said a speed.
        """
        of = "" if task.total is None else f" of {int(task.total):,}"
        parts = [f"{int(task.completed):,}{of}{self._unit}"]
        if task.total is None and not task.completed:
            parts = [f"{timedelta(seconds=int(task.elapsed or 0))} so far"]
        elif not speed:
            parts.append("nothing more since the last line" if task.completed else "nothing yet")
        else:
            parts.append(f"{speed:,.0f}/s" if speed >= _WHOLE else f"{speed:.1f}/s")
            if task.total is not None:
                parts.append(f"about {timedelta(seconds=round((task.total - task.completed) / speed))} left")
        said = ", ".join(parts)
        return f"{task.description}: {said}" if task.description else said


# Of a lower speed the fraction matters.
_WHOLE = 10
