"""The files of the results folder that pages may show: found by name, and never outside it."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from starlette.exceptions import HTTPException

from langshift.files import is_text

REPORT = "report.html"
#: No name that a page links has one of these.
FORBIDDEN = "\\\0"
#: No report is larger: it would be read into memory.
MOST_BYTES = 64 * 2**20


def path_inside(root: Path, name: str) -> Path:
    """The folder or file of a name below the results folder, links followed.

    Args:
        root: the results folder.
        name: parts joined by ``/``, as ``results`` gives them; anything else is refused.

    Raises:
        HTTPException: 403 where it leads elsewhere, 404 where there is nothing.
    """
    parts = PurePosixPath(name).parts
    strange = not parts or "/".join(parts) != name or ".." in parts or any(mark in name for mark in FORBIDDEN)
    if strange or name.startswith("/"):
        raise HTTPException(403, f"{name!r} is not the name of a run: choose one from the table.")
    try:
        whole, place = root.resolve(), root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise HTTPException(404, f"There is no {name!r} in the results folder: it may have been removed.") from None
    if not place.is_relative_to(whole):
        raise HTTPException(403, f"{name!r} leads outside the results folder, so it is not shown.")
    return place


def stored_report(root: Path, name: str) -> bytes:
    """The content of a ``report.html`` in the results folder; no other file is ever given.

    Raises:
        HTTPException: 403 for any other file, 404 where there is none.
    """
    place = path_inside(root, name)
    if place.name != REPORT or PurePosixPath(name).name != REPORT:
        raise HTTPException(403, f"{name!r} is not a report: only files named {REPORT} are shown.")
    if not place.is_file():
        raise HTTPException(404, f"{name!r} is not a file.")
    try:
        if place.stat().st_size > MOST_BYTES:
            raise HTTPException(403, f"{name!r} is larger than any report that langshift writes: open it from disk.")
        return place.read_bytes()
    except OSError as error:
        raise HTTPException(404, f"{name!r} cannot be read: {error.strerror}.") from None


DEPTH, MOST_FOLDERS = 4, 5_000


def find_files(root: Path, files: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """Look for files of these names.

    Args:
        root: where to begin; that there is no such folder is no error.
        files: names without a folder.

    Returns:
        Of each name the folders below the root that hold it, parts joined by ``/`` and empty for the root itself, and
        when it was written, seconds since 1970; the newest first.
    """
    whole = Path(os.path.realpath(root))
    found: dict[str, list[tuple[str, float]]] = {file: [] for file in files}
    for name in _folders(root, whole):
        for file in files:
            place = root / name / file
            # What goes meanwhile, or may not be read, is as if it were not there.
            with suppress(OSError):
                if place.is_file() and _inside(place, whole):
                    found[file].append((name, place.stat().st_mtime))
    return {file: sorted(places, key=lambda one: (-one[1], one[0])) for file, places in found.items()}


def _folders(root: Path, whole: Path) -> Iterator[str]:
    """Breadth first, so that what is left out of a very large folder is deep in it."""
    waiting = deque([("", 0)])
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        name, depth = waiting.popleft()
        yield name
        if depth < DEPTH:
            waiting += [(f"{name}/{one}".lstrip("/"), depth + 1) for one in _within(root / name, whole)]


def _within(folder: Path, whole: Path) -> list[str]:
    """The folders in it that can be named in an address."""
    try:
        return sorted(one.name for one in folder.iterdir() if _enters(one, whole))
    except OSError:
        return []


def _enters(place: Path, whole: Path) -> bool:
    name = place.name
    if name.startswith(".") or any(mark in name for mark in FORBIDDEN) or not is_text(name):
        return False
    # pathlib raises where it may not look.
    return os.path.isdir(place) and _inside(place, whole)  # noqa: PTH112


def _inside(path: Path, whole: Path) -> bool:
    """Whether what lies in a folder inside does so in truth; only a link may lead elsewhere."""
    return not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(whole)
