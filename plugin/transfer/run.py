"""One run of a transfer: from which version to which, how, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.patience import Patience
from langshift.plugin import index_settings
from langshift.plugin.meta import uuid_of
from langshift.plugin.transfer.mark import GivenUp, Mark, TakenOver
from langshift.plugin.transfer.plan import Progress, Stage, Watch, Way
from langshift.plugin.versions import version_behind
from langshift.waiting import waited_out

T = TypeVar("T")


@dataclass
class Run:
    """What the steps of a transfer share.

    Attributes:
        client: the cluster.
        name: the alias.
        source: the live version, which people search and write to.
        uuid: its id.
        target: the version that is to take its place.
        way: how a document of the one becomes one of the other.
        mark: the run's note in the target.
        watch: is told how far it is.
        patience: how long no document may be taken.
        checkpoint: the last operation of each shard of the source that the target has.
        slices: how many parts of the first pass are copied at a time.
        throttle: documents a second of the passes that do not hold up writers; None without limit.
        caught_up: documents that were written meanwhile and copied.
        deleted: documents that were deleted meanwhile.
    """

    client: OpenSearch
    name: str
    source: str
    uuid: str
    target: str
    way: Way
    mark: Mark
    watch: Watch
    patience: Patience
    checkpoint: tuple[int, ...] = ()
    slices: int = 1
    throttle: float | None = None
    caught_up: int = 0
    deleted: int = 0

    def ask(self, action: Callable[[], T]) -> T:
        """Do what may be done again, and wait for a cluster that cannot be reached."""
        return waited_out(action, Patience(self.patience.seconds))

    def tell(self, stage: Stage, done: int = 0, total: int | None = None) -> None:
        """Say how far the run is."""
        self.watch(Progress(stage, done, total))

    def require_unchanged(self) -> None:
        """Refuse to go on where what was live is not.

        Raises:
            GivenUp: somebody has deleted it, or let the alias stand for another version.
            TakenOver: another run has finished this one's work.
        """
        if self.ask(lambda: uuid_of(self.client, self.source)) != self.uuid:
            raise GivenUp(
                f"Index {self.source} was deleted by somebody while {self.target} was being made of it: run again."
            )
        try:
            now = self.ask(lambda: version_behind(self.client, self.name))
        except ClusterError as error:
            raise GivenUp(str(error)) from error
        if now == self.target:
            raise TakenOver(f"Another run has let {self.name} stand for {self.target} meanwhile, so this one stops.")
        if now != self.source:
            told = f"stands for {now}" if now else "is gone"
            raise GivenUp(
                f"{self.name} stood for {self.source} when this run began and {told} by now, so {self.target} was not "
                "put in its place: run it again."
            )

    def settings(self, index: str) -> dict[str, Any]:
        """The ``index`` part of a version's settings."""
        return self.ask(lambda: index_settings.read(self.client, index))
