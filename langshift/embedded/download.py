"""Fetch the files of the lock file; a file that is not exactly the one named there is never used."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from jgo.maven import MavenContext, PythonResolver
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

from langshift.console import err, note
from langshift.embedded.lock import Artifact, Lock, matches
from langshift.errors import LangshiftError

TRIES = 3
PARALLEL = 8
PAUSE = 0.5  # seconds before the second try, and as many more before each further one
TIMEOUT = 30  # seconds without a byte

Advance = Callable[[int], Any]


def download(lock: Lock, folder: Path, remote_repos: dict[str, str] | None = None) -> dict[Artifact, Path]:
    """Have every artifact of the lock file in ``folder``, checked.

    Args:
        lock: what to fetch.
        folder: where files are kept; those already there are checked, not fetched again.
        remote_repos: name to address of the repositories to fetch from; None for the usual one.

    Returns:
        The checked file of each artifact.

    Raises:
        LangshiftError: an artifact cannot be fetched, or what comes is not what the lock file names.
    """
    # Its warning about a wrong checksum is not news: every file is checked here.
    logging.getLogger("jgo").setLevel(logging.CRITICAL)
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    have = {artifact: file for artifact in lock.artifacts if (file := _kept(artifact, folder))}
    missing = [artifact for artifact in lock.artifacts if artifact not in have]
    if not missing:
        return have
    size = sum(artifact.size for artifact in missing)
    note(f"Downloading OpenSearch {lock.version} ({size / 1e6:.0f} MB, once) to {folder} ...")
    with _progress() as view, ThreadPoolExecutor(PARALLEL) as pool:
        task = view.add_task("OpenSearch", total=size)

        def fetch(artifact: Artifact) -> Path:
            return _fetch(artifact, folder, remote_repos, lambda count: view.advance(task, count))

        try:
            have.update(zip(missing, pool.map(fetch, missing), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return have


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def _kept(artifact: Artifact, folder: Path) -> Path | None:
    """The file of an earlier download if it is whole; a broken one is removed."""
    file: Path = _locate(artifact, MavenContext(repo_cache=folder)).cached_path
    if not file.is_file():
        return None
    if matches(artifact, file):
        return file
    file.unlink()
    return None


def _locate(artifact: Artifact, context: Any) -> Any:  # noqa: ANN401 - jgo carries no types
    group, name, version = artifact.coordinate.split(":")
    return context.project(group, name).at_version(version).artifact(packaging=artifact.packaging)


def _fetch(artifact: Artifact, folder: Path, repos: dict[str, str] | None, advance: Advance) -> Path:
    """Fetch one artifact and check it, at most ``TRIES`` times."""
    reason = ""
    for turn in range(TRIES):
        time.sleep(turn * PAUSE)
        received = 0

        def count(size: int) -> None:
            nonlocal received
            received += size
            advance(size)

        @contextmanager
        def follow(_name: str, _size: int) -> Iterator[Advance]:
            yield count

        resolver = PythonResolver(progress_callback=follow)
        remote = _locate(
            artifact,
            MavenContext(resolver=resolver, repo_cache=folder, remote_repos=repos, timeout=TIMEOUT),
        )
        remote.cached_path.unlink(missing_ok=True)
        try:
            file: Path = remote.resolve()
            if matches(artifact, file):
                advance(artifact.size - received)
                return file
            reason = "what came is not the file that langshift's lock file names (its sha256 differs)"
        except requests.RequestException as error:
            reason = _why(error)
        except (RuntimeError, ValueError, IndexError):  # jgo's, for answers that it did not expect
            reason = "the repository did not give it"
        # A part or a wrong file must not look like a whole one to a later start.
        remote.cached_path.unlink(missing_ok=True)
        advance(-received)
    raise LangshiftError(
        f"{artifact.coordinate}, a part of the embedded OpenSearch, could not be downloaded "
        f"in {TRIES} tries: {reason}; try again later, or set OPENSEARCH_URL to a cluster of yours."
    )


def _why(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT} seconds"
    if isinstance(error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError):
        return "the connection broke off"
    if isinstance(error, requests.exceptions.SSLError):
        return "the repository's certificate could not be verified"
    return "the repository could not be reached"
