"""Which user the server runs as: OpenSearch refuses to be root, and then runs as ``nobody``."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langshift.errors import LangshiftError

# Every user can reach it, which root's own home and its temporary folders often do not allow.
SHARED = Path("/var/lib/langshift")


@dataclass(frozen=True)
class Account:
    """Another user than the one who runs langshift."""

    name: str
    uid: int
    gid: int

    def reaches(self, path: Path) -> bool:
        """Whether this user may read ``path`` (and enter it, where it is a folder)."""
        path = path.resolve()
        if not all(self._may(folder, stat.S_IXOTH) for folder in path.parents):
            return False
        return self._may(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))

    def _may(self, path: Path, wanted: int) -> bool:
        """Whether the mode of ``path`` grants ``wanted`` (bits of "others") to this user."""
        state = path.stat()
        if state.st_uid == self.uid:
            wanted <<= 6
        elif state.st_gid == self.gid:
            wanted <<= 3
        return state.st_mode & wanted == wanted

    def own(self, folder: Path) -> None:
        """Make ``folder`` and all in it this user's; links are not followed."""
        for path in (folder, *folder.rglob("*")):
            if path.lstat().st_uid != self.uid:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def server_account() -> Account | None:
    """The user to start the server as; None where it can run as the present one.

    Raises:
        LangshiftError: langshift runs as root and the system has no ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise LangshiftError(
            "OpenSearch refuses to run as root, and this system has no user named nobody to run it as; "
            "run langshift as a plain user, or set OPENSEARCH_URL to a cluster of yours."
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def popen_options(account: Account | None) -> dict[str, Any]:
    """What ``subprocess`` is told so that a program runs as that user."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def reachable_base(home: Path, account: Account | None) -> Path:
    """The folder for the server's files: ``home`` resolved, or a shared one that the user can reach.

    Once made, the shared folder stays the one in use: the data is in it.
    """
    home = home.resolve()
    if account is None:
        return home
    shared = SHARED / hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    if shared.is_dir():
        return shared
    return home if account.reaches(_nearest_existing(home)) else shared


def make_folder(folder: Path, account: Account | None) -> None:
    """Make a folder with its parents; where another user is to reach it, whatever the umask."""
    if folder.is_dir():
        return
    make_folder(folder.parent, account)
    folder.mkdir(exist_ok=True)
    if account is not None:
        folder.chmod(0o755)


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
