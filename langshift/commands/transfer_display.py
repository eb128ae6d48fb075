"""What a person sees of a retune, a reencode or a rollback: how far it is, and its end."""

from dataclasses import replace
from datetime import timedelta

from opensearchpy import OpenSearch
from rich.progress import Progress, Task

from langshift import output
from langshift.plugin.inventory import DocumentCount, count_documents
from langshift.plugin.metadata import FieldNames, read_metadata
from langshift.plugin.transfer.state import Stage, TransferProgress, TransferResult


def counted(client: OpenSearch, done: TransferResult) -> TransferResult:
    """The same, which of an index of chunks tells documents and chunks apart."""
    fields = FieldNames.from_meta(read_metadata(client, done.index))
    if fields.parent is None:
        return done
    return replace(done, **count_documents(client, done.index, fields)._asdict())


def note_aliases_left(client: OpenSearch, index: str) -> None:
    """Name the aliases of a version that a retune, a reencode or a rollback has left behind a write block."""
    # Somebody may have dropped it since.
    found = client.indices.get_alias(index=index, params={"ignore": 404}).get(index, {})
    for alias in sorted(found.get("aliases", {})):
        output.note(f"The alias {alias} still points to {index}, now read-only: point it to the live version too.")


_IN_WORDS: dict[Stage, str] = {
    "copying": "Copying",
    "catching up": "Catching up",
    "deleting": "Carrying over deletes",
    "checking": "Searching both versions",
    "settling": "Waiting for replicas",
    "blocked": "Catching up, writes blocked",
    "verifying": "Checking",
    "swapping": "Swapping",
    "done": "Swapped",
}


class TransferReporter:
    """Shows in ``bars`` how far it is."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._stage: Stage | None = None

    def update(self, progress: TransferProgress) -> None:
        """It has come further."""
        # Searching both versions counts searches, not documents.
        if progress.stage != "checking":
            self.show(progress.stage, progress.done, progress.total)

    def show(self, stage: Stage, done: int, total: int | None) -> None:
        """It is so far in a stage."""
        if stage != self._stage:
            self._stage = stage
            # A task of its own for each stage: what has a total cannot lose it.
            for before in self._bars.task_ids:
                self._bars.remove_task(before)
            self._bars.add_task(_IN_WORDS[stage], total=total, rate="")
        task = self._bars.tasks[0]
        rate = _rate(task) if stage == "copying" else ""
        self._bars.update(task.id, completed=done, total=total, rate=rate)


def _rate(task: Task) -> str:
    """Documents a second, and how long the rest takes; empty where nobody knows."""
    if not task.speed or task.time_remaining is None:
        return ""
    return f"{task.speed:,.0f} documents/s, {timedelta(seconds=round(task.time_remaining))} left"


def replaced(done: TransferResult, made: str, without: str = "") -> str:
    """What a retune or reencode did, in sentences.

    Args:
        done: what it did.
        made: how the new version was made, as it follows its name.
        without: what follows the number of its documents.
    """
    deleted = f", {done.deleted:,} deleted" if done.deleted else ""
    return (
        f"{done.name} now points to {done.index}{made}: {DocumentCount(done.documents, done.chunks)}{without}, "
        f"{done.caught_up:,} caught up{deleted}, checked. The previous version, {done.before}, is kept: "
        f"`langshift rollback {done.name}` returns to it."
    )
