"""Looking through the results folder, only so deep and so far, and never out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from langshift.surrogates import is_text
from langshift.web.evaluations.places import FORBIDDEN

DEPTH, MOST_FOLDERS = 4, 5_000


class Found(NamedTuple):
    """A file that was looked for.

    Attributes:
        when: when it was written, seconds since 1970.
        name: its folder below the root, parts joined by ``/``; empty for the root itself.
        folder: that folder.
    """

    when: float
    name: str
    folder: Path


def look(root: Path, files: tuple[str, ...]) -> dict[str, list[Found]]:
    """Look for files of these names, and give of each name the newest first.

    Args:
        root: where to begin; that there is no such folder is no error.
        files: names without a folder.
    """
    whole = Path(os.path.realpath(root))
    found: dict[str, list[Found]] = {file: [] for file in files}
    for folder, name in _folders(root, whole):
        for file in files:
            when = _written(folder / file, whole)
            if when is not None:
                found[file].append(Found(when, name, folder))
    return {file: sorted(places, key=lambda one: (-one.when, one.name)) for file, places in found.items()}


def _folders(root: Path, whole: Path) -> Iterator[tuple[Path, str]]:
    """Breadth first, so that what is left out of a very large folder is deep in it."""
    level = [(root, "")]
    seen = 0
    for _ in range(DEPTH + 1):
        below: list[tuple[Path, str]] = []
        for folder, name in level:
            if seen == MOST_FOLDERS:
                return
            seen += 1
            yield folder, name
            below += [(folder / one, f"{name}/{one}" if name else one) for one in _within(folder, whole)]
        level = below


def _within(folder: Path, whole: Path) -> list[str]:
    """The folders in it that can be named in an address."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if _enters(entry, whole))
    except OSError:
        return []


def _enters(entry: os.DirEntry[str], whole: Path) -> bool:
    name = entry.name
    if name.startswith(".") or any(mark in name for mark in FORBIDDEN) or not is_text(name):
        return False
    try:
        return entry.is_dir() and (not entry.is_symlink() or _inside(Path(entry.path), whole))
    except OSError:
        return False


def _inside(path: Path, whole: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(whole)


def _written(path: Path, whole: Path) -> float | None:
    try:
        if not path.is_file() or (path.is_symlink() and not _inside(path, whole)):
            return None
        return path.stat().st_mtime
    except OSError:
        return None
