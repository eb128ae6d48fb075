"""The lock file: every file that the embedded OpenSearch is made of, pinned by sha256."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Artifact:
    """One file of the distribution.

    Attributes:
        coordinate: ``group:artifact:version``.
        packaging: ``jar``, or ``zip`` for a plugin that is unpacked.
        sha256: of the file, in hexadecimal.
        size: of the file, in bytes.
        folders: where it belongs, relative to the distribution.
    """

    coordinate: str
    packaging: str
    sha256: str
    size: int
    folders: tuple[str, ...]

    @property
    def filename(self) -> str:
        """Name of the file in ``lib/`` or in a module."""
        _, name, version = self.coordinate.split(":")
        return f"{name}-{version}.{self.packaging}"


@dataclass(frozen=True)
class Lock:
    """The lock file's content.

    Attributes:
        version: OpenSearch's version.
        artifacts: every file.
        digest: sha256 of the lock file itself; a distribution carries it as its mark.
    """

    version: str
    artifacts: tuple[Artifact, ...]
    digest: str


@cache
def read_lock() -> Lock:
    """Read the lock file that came with langshift."""
    data = (files("langshift.embedded") / "opensearch.lock.json").read_bytes()
    document = json.loads(data)
    artifacts = tuple(Artifact(**{**entry, "folders": tuple(entry["folders"])}) for entry in document["artifacts"])
    return Lock(document["version"], artifacts, hashlib.sha256(data).hexdigest())


def matches(artifact: Artifact, file: Path) -> bool:
    """Whether the file is, byte for byte, the one that the lock file names."""
    if file.stat().st_size != artifact.size:
        return False
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest() == artifact.sha256
