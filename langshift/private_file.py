"""Files that only their owner can read: they hold documents."""

from __future__ import annotations

import os
from pathlib import Path


def ensure_private(path: Path) -> bool:
    """Make an empty file (mode 0600), and the folders on the way (0700), where they are missing.

    What is there already is left as it is: it may be a device, or somebody's decision.

    Returns:
        Whether the file was made.

    Raises:
        OSError: it cannot be made.
    """
    _ensure_folder(path.parent)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        # The umask may have taken the owner's rights too.
        path.chmod(0o600)
    finally:
        os.close(opened)
    return True


def sync_folder(folder: Path) -> None:
    """Let a file's new name outlive a power cut.

    Raises:
        OSError: the disk fails.
    """
    if os.name == "nt":
        return  # A folder cannot be opened there, and its entries need no such step.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _ensure_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _ensure_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
