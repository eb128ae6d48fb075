"""The commit of langshift, where it runs from a git checkout of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import langshift

_PATIENCE_S = 10


def commit() -> str | None:
    """The commit, with ``, with changes`` where files differ from it; None without git or outside of a checkout."""
    folder = Path(langshift.__file__).parent
    # Installed below somebody else's repository, langshift is no file of it.
    if _git(folder, "ls-files", "--error-unmatch", Path(langshift.__file__).name) is None:
        return None
    found = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/")
    return f"{found}, with changes" if found and changed else found


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, None where it fails."""
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-C", folder, *arguments], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
