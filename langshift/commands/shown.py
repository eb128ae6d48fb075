"""How far a retune or a rollback is, and what it has done, in words."""

from __future__ import annotations

from contextlib import ExitStack

from rich.progress import TaskID

from langshift import console
from langshift.console import counted
from langshift.plugin.retune import Retuned
from langshift.plugin.transfer.plan import Progress, RolledBack, Stage

_IN_WORDS: dict[Stage, str] = {
    "copying": "Copying",
    "catching up": "Catching up",
    "deleting": "Carrying deletes over",
    "checking": "Searching both versions",
    "settling": "Waiting for replicas",
    "blocked": "Catching up, writes blocked",
    "verifying": "Checking",
    "swapping": "Swapping",
    "done": "Swapped",
}


class TransferShown:
    """Shows on standard error how far it is, where that is a terminal; ``with`` ends it."""

    def __init__(self) -> None:
        self._bars = console.progress()
        self._task: TaskID | None = None
        self._stage: Stage | None = None
        self._stack = ExitStack()

    def __enter__(self) -> TransferShown:
        self._stack.enter_context(self._bars)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def update(self, progress: Progress) -> None:
        """It has come further."""
        # Searching both versions counts searches, not documents.
        if progress.stage != "checking":
            self._show(progress.stage, progress.done, progress.total)

    def begin_searching(self, total: int) -> None:
        """The gate begins."""
        self._show("checking", 0, total)

    def searched(self) -> None:
        """One more search is done."""
        if self._task is not None:
            self._bars.advance(self._task)

    def _show(self, stage: Stage, done: int, total: int | None) -> None:
        if self._task is None or stage != self._stage:
            # A task of its own for each stage: what has a total cannot lose it.
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task, self._stage = self._bars.add_task(_IN_WORDS[stage], total=total, rate=""), stage
        self._bars.update(self._task, completed=done, total=total)


def retuned(done: Retuned) -> str:
    """What a retune did, in a sentence."""
    single = ", ".join(f"{tag} {alpha:g}" for tag, alpha in done.alphas.items())
    scales = f"alpha {done.alpha:g}{f' ({single})' if single else ''}"
    if not done.changed:
        return f"{done.name} ({done.index}) has {scales} and these language vectors already: nothing is changed."
    deleted = f", {done.deleted:,} deleted" if done.deleted else ""
    return (
        f"{done.name} is now {done.index} at {scales}: {counted(done.documents, 'document')}, "
        f"{done.caught_up:,} caught up{deleted}, checked; the version before, {done.before}, is kept: "
        f"`langshift rollback {done.name}` goes back to it."
    )


def rolled_back(done: RolledBack) -> str:
    """What a rollback did, in a sentence."""
    again = f"{done.name} is {done.index} again: {counted(done.documents, 'document')}"
    if done.kind == "load":
        return f"{again}; what only {done.left} holds, which a load made, is not in it; {done.left} is kept."
    return (
        f"{again}, {done.caught_up:,} carried over and {done.deleted:,} deleted since {done.left} took its place; "
        f"{done.left} is kept."
    )
