"""Files of the results folder by the names that a browser sends; nothing outside of it is reached."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from starlette.exceptions import HTTPException

REPORT = "report.html"
FORBIDDEN = "\\\0"
"""No name that a page links has one of these."""
MOST_BYTES = 64 * 2**20
"""No report is larger: it would be read into memory."""


def inside(root: Path, name: str) -> Path:
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
        raise HTTPException(403, f"{name!r} is no name of a run: choose one of those in the table.")
    try:
        whole, place = root.resolve(), root.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise HTTPException(404, f"There is no {name!r} in the results folder: it may have been removed.") from None
    if not place.is_relative_to(whole):
        raise HTTPException(403, f"{name!r} leads out of the results folder, so it is not shown.")
    return place


def stored_report(root: Path, name: str) -> bytes:
    """The content of a ``report.html`` in the results folder; no other file is ever given.

    Raises:
        HTTPException: 403 for any other file, 404 where there is none.
    """
    place = inside(root, name)
    if place.name != REPORT or PurePosixPath(name).name != REPORT:
        raise HTTPException(403, f"{name!r} is no report: of the results folder only files {REPORT} are shown.")
    if not place.is_file():
        raise HTTPException(404, f"{name!r} is no file.")
    try:
        if place.stat().st_size > MOST_BYTES:
            raise HTTPException(403, f"{name!r} is larger than any report of langshift: open it from disk.")
        return place.read_bytes()
    except OSError as error:
        raise HTTPException(404, f"{name!r} cannot be read: {error.strerror}.") from None
