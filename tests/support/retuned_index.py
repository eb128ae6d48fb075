"""``langshift retune`` and ``rollback`` in processes of their own, and what must be true of an index after them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from command_line import LANGSHIFT
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.plugin import metadata, versions
from langshift.plugin.transfer import reindex_tasks, state

PATIENCE = 120  # seconds


class Process:
    """A command under way."""

    def __init__(self, url: str, home: Path, *command: object) -> None:
        env = {**os.environ, "LANGSHIFT_HOME": str(home), "OPENSEARCH_URL": os.environ.get("OPENSEARCH_URL", url)}
        self._process = subprocess.Popen(
            [LANGSHIFT, *map(str, command), "--json"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self.runs and not condition():
            assert time.monotonic() < deadline, "the command stands still"
            time.sleep(0.005)

    def kill(self) -> bool:
        """Kill it; whether it had not ended before."""
        self._process.kill()
        _, err = self._process.communicate(timeout=PATIENCE)
        killed = self._process.returncode == -signal.SIGKILL
        assert killed or self._process.returncode == 0, err.decode()
        return killed

    def done(self, patience: float = PATIENCE) -> dict[str, Any]:
        """What it printed when it had ended well, within so many seconds."""
        out, err = self._process.communicate(timeout=patience)
        assert self._process.returncode == 0, err.decode()
        told: dict[str, Any] = json.loads(out)
        return told


def note(client: OpenSearch, name: str) -> tuple[str, dict[str, Any]] | None:
    """The version that a command works on, and what it has noted there."""
    for index in reversed(versions.versions_of(client, name)):
        if found := transfer_note(client, index):
            return index, found[1]
    return None


def transfer_note(client: OpenSearch, index: str) -> tuple[str, dict[str, Any]] | None:
    """What a command has noted in a version; None where none has, or where the version is gone."""
    with suppress(NotFoundError):
        return state.transfer_note_from_metadata(metadata.read_metadata(client, index))
    return None


def live(client: OpenSearch, name: str) -> str:
    """The one version that the alias stands for."""
    (index,) = client.indices.get_alias(name=name)
    return str(index)


def before(client: OpenSearch, index: str) -> str | None:
    """The version that a rollback would go back to."""
    found = metadata.read_origin(client, index)
    return found.version if found is not None and found.kind == "retune" else None


def require_tidy(client: OpenSearch, name: str) -> None:
    """Nothing of a command is left: no block, no setting, no mark and no task."""
    settings = client.indices.get_settings(index=name)[live(client, name)]["settings"]["index"]
    assert settings.keys().isdisjoint({"blocks", "refresh_interval", "gc_deletes", "final_pipeline"}), settings
    assert versions.unfinished(client, name) == {}
    assert note(client, name) is None
    for index in versions.versions_of(client, name):
        assert reindex_tasks.running(client, index) == []


def swapped(client: OpenSearch, name: str, index: str) -> bool:
    """Whether the alias does not stand for a version any more."""
    try:
        return live(client, name) != index
    except NotFoundError:
        return False
