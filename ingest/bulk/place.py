"""Where a load keeps what it must not forget: its journal, its dead letters, its log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opensearchpy import OpenSearch

_LOADS = "loads"


@dataclass(frozen=True)
class LoadPlace:
    """The folder of the loads into one index of one cluster.

    Attributes:
        folder: the folder, with mode 0700.
        name: the index.
    """

    folder: Path
    name: str

    @classmethod
    def of(cls, home: Path, client: OpenSearch, name: str) -> LoadPlace:
        """The place of an index; the cluster is told by its uuid, since its address may change."""
        cluster = str(client.info().get("cluster_uuid", "unknown"))
        # A cluster without a manager calls itself `_na_`; so does nobody else.
        return cls(home / _LOADS / "".join(c for c in cluster if c.isalnum() or c in "_-") / name, name)

    def make(self) -> None:
        """Make the folder, for the present user alone."""
        self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)

    @property
    def journal(self) -> Path:
        """The journal of the load that was begun last."""
        return self.folder / "journal.sqlite"

    @property
    def dead_letters(self) -> Path:
        """The dead letters of all loads."""
        return self.folder / "dead-letters.jsonl"

    @property
    def log(self) -> Path:
        """The log."""
        return self.folder / "load.log"

    @property
    def making(self) -> Path:
        """How the documents of the last load were made."""
        return self.folder / "making.json"


def places(home: Path, name: str | None = None) -> list[LoadPlace]:
    """The places of all clusters' indices, or of those of one name."""
    return [
        LoadPlace(folder, folder.name)
        for folder in sorted((home / _LOADS).glob(f"*/{name or '*'}"))
        if folder.is_dir() and name in (None, folder.name)
    ]
